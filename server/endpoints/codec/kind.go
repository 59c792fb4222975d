package codec

import (
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"

	"github.com/espalier-dev/espalier/internal/jsondoc"
)

// Meta returns the kind that JSON says it is, after defaults if there are any,
// and the errors that upstream has for JSON that does not say it. An apiVersion
// may be missing; whether that is an error differs.
//
// The kind is known, as far as it can be, also if err != nil.
func Meta(data []byte, defaults *schema.GroupVersionKind) (schema.GroupVersionKind, error) {
	gvk, err := written(data)
	if err != nil {
		return schema.GroupVersionKind{}, err
	}
	gvk = withDefaults(gvk, defaults)
	if gvk.Kind == "" {
		return gvk, runtime.NewMissingKindErr(string(data))
	}
	return gvk, nil
}

// withDefaults fills in what is missing, if there are defaults.
func withDefaults(gvk schema.GroupVersionKind, defaults *schema.GroupVersionKind) schema.GroupVersionKind {
	if defaults == nil {
		return gvk
	}
	if gvk.Kind == "" {
		gvk.Kind = defaults.Kind
	}
	if gvk.Version == "" && (gvk.Group == "" || gvk.Group == defaults.Group) {
		gvk.Group, gvk.Version = defaults.Group, defaults.Version
	}
	return gvk
}

// written returns the kind as it is written. Where something is odd upstream's
// function is asked, for its errors.
func written(data []byte) (schema.GroupVersionKind, error) {
	doc, err := jsondoc.Parse(data, jsondoc.Limits{})
	if err != nil {
		// There are numbers that it accepts and the decoder of objects does not.
		gvk, err := json.DefaultMetaFactory.Interpret(data)
		if err != nil {
			return schema.GroupVersionKind{}, err
		}
		return *gvk, nil
	}
	defer doc.Release()
	version, kind, odd := survey(doc)
	if odd {
		if _, err := json.DefaultMetaFactory.Interpret(data); err != nil {
			return schema.GroupVersionKind{}, err
		}
	}
	gv, err := schema.ParseGroupVersion(version)
	if err != nil {
		return schema.GroupVersionKind{}, err
	}
	return gv.WithKind(kind), nil
}

// survey finds apiVersion and kind. It is odd if there are members that
// upstream, which first looks with a decoder that ignores case, takes for one
// of them, or that are no strings.
func survey(doc *jsondoc.Doc) (version, kind string, odd bool) {
	if doc.Kind(jsondoc.Root) != jsondoc.Object {
		return "", "", true
	}
	for m := range doc.Members(jsondoc.Root) {
		key := string(doc.Key(m.Key))
		if !strings.EqualFold(key, "apiVersion") && !strings.EqualFold(key, "kind") {
			continue
		}
		isText := doc.Kind(m.Value) == jsondoc.String
		odd = odd || m.Duplicate
		switch {
		case isText && key == "apiVersion":
			version = doc.Text(m.Value)
		case isText && key == "kind":
			kind = doc.Text(m.Value)
		default:
			odd = true
		}
	}
	return version, kind, odd
}
