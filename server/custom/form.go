package custom

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	serializer "k8s.io/apimachinery/pkg/runtime/serializer/json"
	kjson "sigs.k8s.io/json"

	"github.com/espalier-dev/espalier"
	"github.com/espalier-dev/espalier/internal/object"
)

// Form reads the objects of one version of a resource. It implements
// codec.Form.
type Form struct {
	kind    schema.GroupVersionKind
	schemas *atomic.Pointer[schemaSet] // of the resource, shared by the forms of all versions
}

// noted is the stamp of an object of a request about which more is to be said
// than by which schema it is normalized. Decoding knows no request to say it to.
type noted struct {
	schema     *versionSchema
	mismatched bool     // a value is not of its schema's type
	pruned     []string // paths
}

// stampOf returns the schema that an object has been normalized with, if known.
func stampOf(o *object.Object) *versionSchema {
	switch s := o.Stamp().(type) {
	case *versionSchema:
		return s
	case *noted:
		return s.schema
	}
	return nil
}

// Kind implements codec.Form.
func (f *Form) Kind() schema.GroupVersionKind { return f.kind }

// Identifier tells the shapes apart that the form has in its life: what has
// been encoded for a watch is shared by those who see the same.
func (f *Form) Identifier() string { return f.current(f.kind.Version).id }

// current returns the schema of a version of the resource, nil if it has no
// such version.
func (f *Form) current(version string) *versionSchema { return (*f.schemas.Load())[version] }

// FromRequest implements codec.Form. Defaults are not used: an object without
// Go type has to say what it is.
func (f *Form) FromRequest(data []byte, _ *schema.GroupVersionKind, strict bool) (*object.Object, schema.GroupVersionKind, []error, error) {
	s, err := f.current(f.kind.Version).compiled()
	if err != nil {
		return nil, f.kind, nil, err
	}
	o, changes, err := read(s.normalize, data, nil)
	if err != nil {
		return nil, kindOf(data), nil, requestError(data, err)
	}
	gvk := o.GroupVersionKind()
	if gvk.Kind == "" {
		return nil, gvk, nil, runtime.NewMissingKindErr(string(data))
	}
	if gvk != f.kind {
		// The handlers are going to refuse it. Until then it stays what it is.
		other, err := foreign(data)
		return other, gvk, nil, err
	}
	if changes&^espalier.Defaulted == 0 {
		o.SetStamp(s)
		return o, gvk, nil, nil
	}
	var report espalier.Report
	if o, changes, err = read(s.normalize, data, &report); err != nil {
		return nil, gvk, nil, err
	}
	note := &noted{schema: s, mismatched: changes&espalier.Mismatched != 0, pruned: metadataFirst(report.Pruned())}
	o.SetStamp(s)
	if note.mismatched || len(note.pruned) > 0 {
		o.SetStamp(note)
	}
	if !strict {
		return o, gvk, nil, nil
	}
	return o, gvk, strictErrors(data, note.pruned), nil
}

// foreign reads an object of another kind than the form's.
func foreign(data []byte) (*object.Object, error) {
	all, err := everything()
	if err != nil {
		return nil, err
	}
	o, _, err := read(all, data, nil)
	return o, err
}

// kindOf reads what a body says it is, as far as that can be told.
func kindOf(data []byte) schema.GroupVersionKind {
	if gvk, err := serializer.DefaultMetaFactory.Interpret(data); err == nil {
		return *gvk
	}
	return schema.GroupVersionKind{}
}

// read normalizes what a client has sent.
func read(s *espalier.Schema, data []byte, report *espalier.Report) (*object.Object, espalier.Changes, error) {
	result, err := s.Normalize(data, espalier.NormalizeOptions{Source: espalier.Request, Report: report})
	if err != nil {
		return nil, 0, err
	}
	o, err := object.FromJSON(result.Bytes)
	return o, result.Changes, err
}

// requestError returns the error that API servers give for a body that cannot
// be read. They look for the kind first, then decode, then look at metadata.
func requestError(data []byte, err error) error {
	kind, unkind := serializer.DefaultMetaFactory.Interpret(data)
	if unkind != nil {
		return unkind
	}
	var syntax *espalier.SyntaxError
	if errors.As(err, &syntax) {
		if undecoded := json.Unmarshal(data, &map[string]json.RawMessage{}); undecoded != nil {
			return undecoded
		}
	}
	if kind.Kind == "" {
		return runtime.NewMissingKindErr(string(data))
	}
	return err
}

// metadataFirst sorts paths as API servers list them: what the decoder of
// metadata does not know comes before what the schema does not specify.
func metadataFirst(paths []string) []string {
	slices.SortStableFunc(paths, func(a, b string) int { return rank(a) - rank(b) })
	return paths
}

func rank(path string) int {
	if strings.HasPrefix(path, "metadata.") {
		return 0
	}
	return 1
}

// strictErrors words what strict field validation refuses. Duplicates are
// reported wherever they are, also in what is pruned, by the decoder that other
// servers use: the engine, which has other things to do there, names only some.
func strictErrors(data []byte, pruned []string) []error {
	var ignored map[string]any
	errs, err := kjson.UnmarshalStrict(data, &ignored, kjson.DisallowDuplicateFields)
	if err != nil {
		errs = nil // cannot be: the engine has read it
	}
	for _, path := range pruned {
		errs = append(errs, fmt.Errorf(`unknown field "%s"`, path))
	}
	return errs
}

// FromStorage implements codec.Form.
func (f *Form) FromStorage(data []byte) (*object.Object, error) {
	s := f.storedSchema(data)
	if s == nil {
		// Stored in a version that the CRD no longer has: no converter takes it, and one
		// such object would have the conversion of a whole list fail.
		return nil, storedError(data)
	}
	s, err := s.compiled()
	if err != nil {
		return nil, err
	}
	result, err := s.normalize.Normalize(data, espalier.NormalizeOptions{Source: espalier.Storage})
	if err != nil {
		return nil, err
	}
	o, err := object.FromJSON(result.Bytes)
	if err != nil {
		return nil, err
	}
	if !sameBytes(result.Bytes, data) {
		o.SetSource(data)
	}
	if o.GetGeneration() == 0 {
		o.SetGeneration(1) // objects of servers that did not count
	}
	o.SetStamp(s)
	return o, nil
}

// storedError says why a stored value is no object of a version that there is. The
// text for those of another version is upstream's.
func storedError(data []byte) error {
	kind, err := serializer.DefaultMetaFactory.Interpret(data)
	if err != nil {
		return err
	}
	return fmt.Errorf("request to convert CR from an invalid group/version: %s", kind.GroupVersion())
}

// storedSchema returns the schema of the version that an object was stored in,
// nil if there is none.
func (f *Form) storedSchema(data []byte) *versionSchema {
	const first = `{"apiVersion":"`
	if rest, ok := bytes.CutPrefix(data, []byte(first)); ok {
		if end := bytes.IndexByte(rest, '"'); end > 0 {
			group, version, ok := bytes.Cut(rest[:end], []byte("/"))
			if ok && string(group) == f.kind.Group {
				return (*f.schemas.Load())[string(version)]
			}
		}
	}
	kind := kindOf(data)
	if kind.Group != f.kind.Group {
		return nil
	}
	return f.current(kind.Version)
}

func sameBytes(a, b []byte) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0] || bytes.Equal(a, b))
}

// currentFor returns the schema for an object, nil if it is of another resource
// or of no version that there is.
func (f *Form) currentFor(o *object.Object) *versionSchema {
	group, version, ok := strings.Cut(o.APIVersion(), "/")
	if !ok || group != f.kind.Group || o.Kind() != f.kind.Kind {
		return nil
	}
	return f.current(version)
}

// Fresh implements codec.Form. An object that cannot be normalized is returned
// as it is: it was readable once, and hiding it helps nobody.
func (f *Form) Fresh(o *object.Object) *object.Object {
	s := f.currentFor(o)
	if s == nil || stampOf(o) == s {
		return o
	}
	fresh, err := renew(o, s)
	if err != nil {
		return o
	}
	return fresh
}

// renew normalizes an object again. Its metadata stays: the resourceVersion,
// for one, is not among the stored bytes.
func renew(o *object.Object, s *versionSchema) (*object.Object, error) {
	s, err := s.compiled()
	if err != nil {
		return nil, err
	}
	before := o.JSON()
	from := before
	if o.Source() != nil && stampOf(o) != nil { // otherwise the object is no longer what was stored
		from = o.Source()
	}
	result, err := s.normalize.Normalize(from, espalier.NormalizeOptions{Source: espalier.Storage})
	if err != nil {
		return nil, err
	}
	fresh := o.DeepCopy()
	if !sameBytes(result.Bytes, before) {
		if err := replaceBody(fresh, before, result.Bytes); err != nil {
			return nil, err
		}
		fresh.SetSource(from)
	}
	fresh.SetStamp(s)
	return fresh, nil
}

// replaceBody sets everything in o but metadata to what is in now; before is
// o's own JSON.
func replaceBody(o *object.Object, before, now []byte) error {
	var old, members map[string]json.RawMessage
	if err := json.Unmarshal(before, &old); err != nil {
		return err
	}
	if err := json.Unmarshal(now, &members); err != nil {
		return err
	}
	for name := range old {
		if _, ok := members[name]; !ok && !isMeta(name) {
			o.SetMember(name, nil)
		}
	}
	for name, value := range members {
		if !isMeta(name) && !bytes.Equal(value, old[name]) {
			o.SetMember(name, value)
		}
	}
	return nil
}

func isMeta(member string) bool {
	return member == "apiVersion" || member == "kind" || member == "metadata"
}
