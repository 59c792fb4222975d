package exec

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	namevalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kjson "sigs.k8s.io/json"

	"github.com/espalier-dev/espalier/internal/jsondoc"
)

// Upstream validates metadata with ValidateObjectMetaDeclaratively, which runs
// generated rules besides the written ones. Up to v0.37 all of those for
// ObjectMeta are alpha, which are never enforced, whatever the feature gate
// DeclarativeValidationBeta says. What remains of them is that an error is not
// said twice, and that takes time and memory quadratic in the metadata. So the
// written rules are called here, and a test says when that is no longer enough.

// embeddedErrors returns upstream's errors about the apiVersion, kind and metadata
// of the embedded resource v, whose path is at.
func embeddedErrors(d *jsondoc.Doc, v jsondoc.Value, at path) []Violation {
	if d.Kind(v) != jsondoc.Object {
		return nil
	}
	r := metadataErrors{d: d, resource: v, prefix: at.field()}
	version, hasVersion := d.Get(v, "apiVersion")
	kind, hasKind := d.Get(v, "kind")
	r.metadata, r.hasMetadata = d.Get(v, "metadata")
	if !hasVersion {
		r.add(v, field.Required(field.NewPath("apiVersion"), ""))
	}
	if !hasKind {
		r.add(v, field.Required(field.NewPath("kind"), ""))
	}
	if hasVersion {
		r.nameOfType(version, "apiVersion", func(s string) string {
			if _, err := schema.ParseGroupVersion(s); err != nil {
				return err.Error()
			}
			return ""
		})
	}
	if hasKind {
		r.nameOfType(kind, "kind", func(s string) string {
			if faults := namevalidation.IsDNS1035Label(strings.ToLower(s)); len(faults) > 0 {
				return "may have mixed case, but should otherwise match: " + strings.Join(faults, ",")
			}
			return ""
		})
	}
	if r.hasMetadata {
		r.embedded()
	}
	return r.list
}

// RootMetadata returns upstream's errors about the metadata of the object itself:
// of a new one or, if old is not nil, of an update of old.
func RootMetadata(d, old *jsondoc.Doc, namespaced bool) []Violation {
	r := metadataErrors{d: d, resource: jsondoc.Root}
	r.metadata, r.hasMetadata = d.Get(jsondoc.Root, "metadata")
	meta, fault := rootMeta(d)
	if fault != nil {
		r.add(r.metadata, fault)
		return r.list
	}
	if old == nil {
		r.addAll(validation.ValidateObjectMeta(meta, namespaced, validation.NameIsDNSSubdomain, metadataPath))
		return r.list
	}
	before, fault := rootMeta(old)
	if fault != nil {
		r.add(r.metadata, fault)
		return r.list
	}
	r.addAll(validation.ValidateObjectMetaUpdate(meta, before, metadataPath))
	return r.list
}

// metadataPath is what paths of errors start with before they are placed.
var metadataPath = field.NewPath("metadata")

// rootMeta decodes the metadata of an object with apimachinery's converter: it
// words its errors otherwise than the JSON decoder.
func rootMeta(d *jsondoc.Doc) (*metav1.ObjectMeta, *field.Error) {
	meta := &metav1.ObjectMeta{}
	v, ok := d.Get(jsondoc.Root, "metadata")
	if !ok || d.Kind(v) == jsondoc.Null {
		return meta, nil
	}
	content := d.Any(v)
	object, ok := content.(map[string]any)
	if !ok {
		return nil, field.Invalid(metadataPath, content, fmt.Sprintf("expected map[string]interface{}, got %T", content))
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object, meta); err != nil {
		return nil, field.Invalid(metadataPath, content, err.Error())
	}
	fewControllers(meta)
	return meta, nil
}

// fewControllers bounds the errors about owners that are controllers: each
// repeats the name of the first, as long as that may be.
func fewControllers(meta *metav1.ObjectMeta) {
	left := maxViolationBytes
	for i := range meta.OwnerReferences {
		owner := &meta.OwnerReferences[i]
		if owner.Controller == nil || !*owner.Controller {
			continue
		}
		if left == maxViolationBytes {
			left /= len(owner.Kind) + len(owner.Name) + 128
		} else if left--; left < 0 {
			owner.Controller = nil
		}
	}
}

// metadataErrors collects the errors of one resource, up to maxViolations and
// maxViolationBytes of rendered text: a long key above them, or a long value
// that each repeats, would make it quadratic.
type metadataErrors struct {
	d           *jsondoc.Doc
	resource    jsondoc.Value // the object whose metadata it is
	metadata    jsondoc.Value
	hasMetadata bool
	prefix      string // path of the resource
	list        []Violation

	size        int
	field, path string // of the last error: those about labels share theirs
	said        map[said]bool

	// Where the search for an item has stopped; errors come in order of items.
	fields  [metaFieldCount]jsondoc.Value
	indexed bool
	inList  jsondoc.Value
	at      int
	item    jsondoc.Value
}

// said tells errors apart as their texts do. Bad values other than strings
// differ only where the rest does.
type said struct {
	kind               field.ErrorType
	field, bad, detail string
}

// nameOfType checks apiVersion or kind; other says what is wrong with a string
// that is not empty.
func (r *metadataErrors) nameOfType(v jsondoc.Value, name string, other func(string) string) {
	if r.d.Kind(v) != jsondoc.String {
		r.add(v, field.Invalid(field.NewPath(name), r.d.Any(v), "must be a string"))
		return
	}
	s := r.d.Text(v)
	fault := "must not be empty"
	if s != "" {
		fault = other(s)
	}
	if fault != "" {
		r.add(v, field.Invalid(field.NewPath(name), s, fault))
	}
}

// embedded checks the metadata of an embedded resource.
func (r *metadataErrors) embedded() {
	meta := &metav1.ObjectMeta{}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(r.d.AppendCanonical(nil, r.metadata), meta); err != nil {
		r.add(r.metadata, field.Invalid(metadataPath, r.d.Any(r.metadata), err.Error()))
		return
	}
	if meta.Name == "" {
		meta.Name = "fakename" // embedded resources need none
	}
	fewControllers(meta)
	r.addAll(validation.ValidateObjectMeta(meta, meta.Namespace != "", pathSegment, metadataPath))
}

// pathSegment is how embedded resources are named: their type is not known,
// and every type demands as much.
func pathSegment(name string, prefix bool) []string {
	if prefix {
		return content.IsPathSegmentPrefix(name)
	}
	return content.IsPathSegmentName(name)
}

// addAll adds apimachinery's errors. Those about labels and annotations come
// in the random order of a map, and leave in that of their values.
func (r *metadataErrors) addAll(errs field.ErrorList) {
	for i := 0; i < len(errs); {
		j := i + 1
		for j < len(errs) && errs[j].Field == errs[i].Field && errs[j].Type == errs[i].Type {
			j++
		}
		if f := errs[i].Field; f == "metadata.labels" || f == "metadata.annotations" {
			slices.SortStableFunc(errs[i:j], func(a, b *field.Error) int {
				x, _ := a.BadValue.(string)
				y, _ := b.BadValue.(string)
				return cmp.Compare(x, y)
			})
		}
		i = j
	}
	for _, e := range errs {
		r.add(r.locate(e.Field), e)
	}
}

// add adds an error about the value v, placing its path under the resource's.
func (r *metadataErrors) add(v jsondoc.Value, e *field.Error) {
	bad, ok := e.BadValue.(string)
	r.size += len(r.prefix) + len(e.Field) + len(e.Detail) + len(bad)
	if !ok {
		r.size += r.d.End(v) - r.d.Offset(v)
	}
	if len(r.list) > 0 && (r.size > maxViolationBytes || len(r.list) >= maxViolations) {
		return
	}
	if key := (said{e.Type, e.Field, bad, e.Detail}); r.said[key] {
		return
	} else if r.said == nil {
		r.said = map[said]bool{key: true}
	} else {
		r.said[key] = true
	}
	if r.field != e.Field {
		r.field, r.path = e.Field, e.Field
		if r.prefix != "" {
			r.path = r.prefix + "." + e.Field
		}
	}
	r.list = append(r.list, Violation{
		Type: e.Type, Path: r.path, BadValue: e.BadValue, Detail: e.Detail,
		Keyword: "metadata", At: r.path, Offset: r.d.Offset(v),
	})
}

// locate returns the value at a path such as metadata.ownerReferences[1].uid,
// or, if it is absent, the innermost existing value around it.
func (r *metadataErrors) locate(at string) jsondoc.Value {
	if !r.hasMetadata {
		return r.resource
	}
	r.index()
	at = strings.TrimPrefix(strings.TrimPrefix(at, "metadata"), ".")
	name, rest, _ := strings.Cut(at, "[")
	rank := objectMetaStructure.names.Lookup([]byte(name))
	if rank < 0 || r.fields[rank] == 0 {
		return r.metadata
	}
	v := r.fields[rank]
	number, member, inItem := strings.Cut(rest, "]")
	i, err := strconv.Atoi(number)
	if !inItem || err != nil || r.d.Kind(v) != jsondoc.Array {
		return v
	}
	item, ok := r.itemAt(v, i)
	if !ok {
		return v
	}
	if m, ok := r.d.Get(item, strings.TrimPrefix(member, ".")); ok {
		return m
	}
	return item
}

// index finds the fields of the metadata, once for all errors.
func (r *metadataErrors) index() {
	if r.indexed {
		return
	}
	r.indexed = true
	for m := range r.d.Members(r.metadata) {
		if rank := objectMetaStructure.names.Lookup(r.d.Key(m.Key)); rank >= 0 {
			r.fields[rank] = m.Value
		}
	}
}

// itemAt finds item i of a list, going on from the one it found before.
func (r *metadataErrors) itemAt(list jsondoc.Value, i int) (jsondoc.Value, bool) {
	if r.inList != list || i < r.at {
		r.inList, r.at, r.item = list, 0, list+1
	}
	end := r.d.Next(list)
	for ; r.at < i && r.item < end; r.at++ {
		r.item = r.d.Next(r.item)
	}
	return r.item, r.item < end
}
