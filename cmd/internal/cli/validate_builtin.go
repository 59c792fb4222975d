package cli

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/espalier-dev/espalier/cmd/internal/report"
	"github.com/espalier-dev/espalier/crd/kinds"
	"github.com/espalier-dev/espalier/crd/offline"
	"github.com/espalier-dev/espalier/crd/request"
	"github.com/espalier-dev/espalier/finding"
)

func (t typeMeta) groupVersionKind() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: t.group(), Version: t.version(), Kind: t.kind}
}

// builtin validates an object of a built-in kind. It reports false if a server of that
// version does not have the kind by default.
func (v *validator) builtin(meta typeMeta, out *result) bool {
	kind := offline.Find(meta.groupVersionKind())
	if kind == nil {
		return false
	}
	out.into.subject(out.document, out.object)
	v.known.Store(true)
	if since := kind.Since(); v.options.version < since {
		out.add(report.Diagnostic{Check: idVersionUnknown, Message: meta.noMatches(), Pointer: "/apiVersion", Place: out.of("/apiVersion"),
			Fix: fmt.Sprintf("Kubernetes has %s of %s since version %s", kind.Kind, meta.apiVersion, since)})
		return true
	}
	if text := kind.Deprecated(); text != "" {
		out.add(report.Diagnostic{Check: idVersionDeprecate, Message: text, Pointer: "/apiVersion", Place: out.of("/apiVersion")})
	}
	if !kind.Complete() {
		out.add(report.Diagnostic{Check: idFieldsOnly, Message: fmt.Sprintf("%s: fields, types and metadata were validated; the other rules of %s are not known", out.object, kind.Kind), Pointer: "/kind", Place: out.of("/kind")})
	}
	status := v.options.subresource == "status"
	if status && !kind.Status {
		out.add(report.Diagnostic{Check: idNoSubresource, Pointer: "/apiVersion", Place: out.of("/apiVersion"), Message: "the server could not find the requested resource"})
		return true
	}
	obj, ok := v.decodeBuiltin(kind, out)
	if !ok {
		return true
	}
	var old runtime.Object
	if v.old != nil {
		if old, ok = v.builtinBefore(kind, meta, out); !ok {
			return true
		}
	}
	v.answer(kind, obj, old, out)
	return true
}

// decodeBuiltin reads an object, and reports what a server refuses in its fields.
func (v *validator) decodeBuiltin(kind *offline.Kind, out *result) (runtime.Object, bool) {
	obj, strict, err := kind.Decode(out.document.JSON, v.options.version)
	if err != nil {
		out.undecodable(err, "")
		return nil, false
	}
	for _, e := range strict {
		if v.options.fields == fieldsIgnore {
			break
		}
		d := report.Diagnostic{Check: idFieldDuplicate, Message: e.Error(), Path: e.Path, Place: out.at(out.document.At(out.boundedLookup(e.Path)))}
		if e.Unknown {
			d.Check = idFieldUnknown
			switch {
			case e.Since != "":
				d.Fix = "the field exists since Kubernetes " + e.Since
			case e.Nearest != "":
				d.Fix = fmt.Sprintf("did you mean %q?", e.Nearest)
			}
		}
		out.field(d, v.options.fields)
	}
	return obj, true
}

// undecodable reports an object that a server cannot read.
func (v *result) undecodable(err error, prefix string) {
	d := report.Diagnostic{Check: "value-type", Message: prefix + err.Error()}
	var e *offline.DecodeError
	if errors.As(err, &e) {
		d.Place = v.at(v.document.Of(e.Offset))
		d.Fix = hintType(e.Type, d.Place)
	}
	v.add(d)
}

// builtinBefore returns the object as it is now. It reports false if that cannot be read;
// there is nothing if the object is new.
func (v *validator) builtinBefore(kind *offline.Kind, meta typeMeta, out *result) (runtime.Object, bool) {
	d, ok := v.old[v.resources.identity(meta)]
	if !ok {
		out.isNew()
		return nil, true
	}
	if other := offline.Find(typeMetaOf(d).groupVersionKind()); other != kind {
		out.add(report.Diagnostic{Check: idObjectType, Message: fmt.Sprintf("the old object is of %s: espalier converts no built-in kinds", d.APIVersion), Place: out.of("/apiVersion")})
		return nil, false
	}
	obj, _, err := kind.Decode(d.JSON, offline.Latest)
	if err != nil {
		hidden := &result{document: d, object: out.object, into: out.into}
		hidden.undecodable(err, "the old object: ")
		return nil, false
	}
	return obj, true
}

// answer reports what a server answers to a create or update.
func (v *validator) answer(kind *offline.Kind, obj, old runtime.Object, out *result) {
	meta := kinds.Metadata(obj)
	if old != nil && !request.SameUID(meta, kinds.Metadata(old)) {
		out.otherUID(meta.GetUID(), kinds.Metadata(old).GetUID())
		return
	}
	out.ignored(kind.Kind, meta, !kind.Namespaced, old == nil)
	namespace := meta.GetNamespace()
	if namespace == "" {
		namespace = defaultNamespace
	}
	var answer offline.Answer
	if old == nil {
		answer = kind.Create(obj, namespace)
	} else {
		answer = kind.Update(obj, old, v.options.subresource, namespace)
	}
	for _, e := range answer.Errors {
		out.fieldError(e)
	}
	for _, text := range answer.Warnings {
		path, _, _ := strings.Cut(text, ": ")
		out.add(report.Diagnostic{Check: idServerWarning, Message: text, Path: path, Place: out.at(out.document.At(out.boundedLookup(path)))})
	}
}

// checkOfType are the checks of the server's types of errors.
var checkOfType = map[field.ErrorType]finding.ID{
	field.ErrorTypeRequired:     "value-required",
	field.ErrorTypeNotSupported: "value-enum",
	field.ErrorTypeTooLong:      "value-length",
	field.ErrorTypeTooShort:     "value-length",
	field.ErrorTypeTooMany:      "value-items",
	field.ErrorTypeDuplicate:    "value-list-duplicate",
	field.ErrorTypeTypeInvalid:  "value-type",
}

// fieldError reports an error of a field.
func (v *result) fieldError(e *field.Error) {
	d := report.Diagnostic{Check: idInvalid, Message: e.Error(), Path: e.Field, Place: v.at(v.document.At(0))}
	if id, ok := checkOfType[e.Type]; ok {
		d.Check = id
	} else if strings.HasPrefix(e.Field, "metadata.") {
		d.Check = idMetadata
	}
	at, found := v.spot(e.Field)
	if found {
		d.Place = v.at(at)
	}
	switch e.Type {
	case field.ErrorTypeRequired:
		if name := lastStep(e.Field); name != "" && e.Detail == "" {
			d.Fix = "add " + name
		}
	case field.ErrorTypeNotSupported:
		if near := nearestSupported(e); near != "" {
			d.Fix = fmt.Sprintf("did you mean %q?", near)
		}
	}
	v.add(d)
}

// lastStep is the name of the field that a path leads to; nothing for items of lists.
func lastStep(path string) string {
	if strings.HasSuffix(path, "]") {
		return ""
	}
	return path[strings.LastIndexByte(path, '.')+1:]
}

// nearestSupported returns the supported value that is most like the one that is not.
func nearestSupported(e *field.Error) string {
	list, ok := strings.CutPrefix(e.Detail, "supported values: ")
	if !ok {
		return ""
	}
	var values []string
	for quoted := range strings.SplitSeq(list, ", ") {
		if value, err := strconv.Unquote(quoted); err == nil {
			values = append(values, value)
		}
	}
	return nearest(fmt.Sprint(e.BadValue), values)
}

// unknownKind is the diagnostic for an object of a built-in group and a kind or version
// that servers do not have by default.
func unknownKind(t typeMeta) report.Diagnostic {
	gvk := t.groupVersionKind()
	if offline.OffByDefault(gvk, offline.Latest) {
		return report.Diagnostic{Check: idObjectSkipped, Message: fmt.Sprintf("%s is not validated: %s is off by default", t.object(), t.apiVersion)}
	}
	d := report.Diagnostic{Check: idKindUnknown, Message: t.noMatches()}
	var versions, siblings []string
	for _, k := range offline.All() {
		if k.Kind == t.kind {
			versions = append(versions, k.GroupVersion().String())
		}
		if k.GroupVersion() == gvk.GroupVersion() {
			siblings = append(siblings, k.Kind)
		}
	}
	if len(versions) > 0 {
		d.Check, d.Fix = idVersionUnknown, "use apiVersion: "+strings.Join(slices.Compact(versions), " or ")
	} else if near := nearest(t.kind, siblings); near != "" {
		d.Fix = fmt.Sprintf("did you mean kind %q?", near)
	}
	return d
}

// noMatches is what kubectl says about a kind that the server does not have.
func (t typeMeta) noMatches() string {
	return fmt.Sprintf("no matches for kind %q in version %q", t.kind, t.apiVersion)
}

// boundedLookup is lookup for the first paths of an object.
func (v *result) boundedLookup(path string) int {
	if v.lookups >= maxLookups {
		return 0
	}
	v.lookups++
	return v.lookup(path)
}
