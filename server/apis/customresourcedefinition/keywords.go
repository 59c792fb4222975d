package customresourcedefinition

import (
	"encoding/json"
	"reflect"
	"slices"

	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/espalier-dev/espalier/internal/jsondoc"
)

// Keywords are those of schemas that this engine understands and the Go types
// of the API do not have. They survive decoding and conversion.
var Keywords = []string{"readOnly", "x-kubernetes-unions"}

// maxWork bounds what decoding a CRD may cost: about two seconds. The Go
// types decode and encode a schema below items or additionalProperties by
// scanning it once more, at every level. The most costly CRD of the
// corpus, of 850 KB, takes a quarter of it.
const maxWork = 64 << 20

// survey is what is known of a document before it is decoded.
type survey struct {
	work     int  // the bytes of all objects and arrays, with nested ones counted again
	keywords bool // there may be some of Keywords
}

func explore(doc *jsondoc.Doc) survey {
	var s survey
	s.visit(doc, jsondoc.Root)
	return s
}

func (s *survey) visit(doc *jsondoc.Doc, v jsondoc.Value) {
	if s.work > maxWork {
		return
	}
	switch doc.Kind(v) {
	case jsondoc.Object:
		s.work += doc.End(v) - doc.Offset(v)
		for m := range doc.Members(v) {
			s.keywords = s.keywords || slices.Contains(Keywords, string(doc.Key(m.Key)))
			s.visit(doc, m.Value)
		}
	case jsondoc.Array:
		s.work += doc.End(v) - doc.Offset(v)
		for _, item := range doc.Items(v) {
			s.visit(doc, item)
		}
	}
}

// render returns the canonical JSON of what has become of the CRD after
// defaulting and conversion from one version to another, with the keywords of
// the source that the types have lost.
func (r *reading) render(typed runtime.Object, from, to schema.GroupVersion) ([]byte, error) {
	if x, ok := typed.(*v1.CustomResourceDefinition); ok {
		forgetEmptyWebhook(x)
	}
	data, err := json.Marshal(typed)
	if err != nil {
		return nil, err
	}
	if !r.survey.keywords {
		return canonical(data)
	}
	before, err := decode(r.source)
	if err != nil {
		return nil, err
	}
	after, err := decode(data)
	if err != nil {
		return nil, err
	}
	carryAll(before, after, from, to)
	return jsondoc.AppendAny(make([]byte, 0, len(data)), after)
}

// forgetEmptyWebhook leaves out what a conversion through upstream's internal
// type would leave out.
func forgetEmptyWebhook(x *v1.CustomResourceDefinition) {
	if c := x.Spec.Conversion; c != nil && c.Webhook != nil && c.Webhook.ClientConfig == nil && c.Webhook.ConversionReviewVersions == nil {
		c.Webhook = nil
	}
}

// canonical returns JSON in canonical form.
func canonical(data []byte) ([]byte, error) {
	doc, err := jsondoc.Parse(data, jsondoc.Limits{})
	if err != nil {
		return nil, err
	}
	defer doc.Release()
	return doc.AppendCanonical(make([]byte, 0, len(data)), jsondoc.Root), nil
}

func decode(data []byte) (map[string]any, error) {
	doc, err := jsondoc.Parse(data, jsondoc.Limits{})
	if err != nil {
		return nil, err
	}
	defer doc.Release()
	m, _ := doc.Any(jsondoc.Root).(map[string]any)
	return m, nil
}

// at returns the object at a path of member names, nil if there is none.
func at(v any, path ...string) map[string]any {
	m, _ := v.(map[string]any)
	for _, name := range path {
		m, _ = m[name].(map[string]any)
	}
	return m
}

// shelf holds the schemas of a CRD.
type shelf struct {
	shared map[string]any   // for all versions; only in v1beta1
	each   []map[string]any // by version
}

func schemasOf(content map[string]any, gv schema.GroupVersion) shelf {
	var s shelf
	if gv == beta {
		s.shared = at(content, "spec", "validation", "openAPIV3Schema")
	}
	versions, _ := at(content, "spec")["versions"].([]any)
	for _, v := range versions {
		s.each = append(s.each, at(v, "schema", "openAPIV3Schema"))
	}
	return s
}

// of returns the schema of the version at index i, nil if there is none.
func (s shelf) of(i int) map[string]any {
	if s.shared != nil {
		return s.shared
	}
	if i < len(s.each) {
		return s.each[i]
	}
	return nil
}

// differ reports whether versions have schemas of their own.
func (s shelf) differ() bool {
	return s.shared == nil && slices.ContainsFunc(s.each, func(x map[string]any) bool { return !reflect.DeepEqual(x, s.each[0]) })
}

// carryAll carries the keywords of the schemas of a CRD to what it has
// become.
func carryAll(before, after map[string]any, from, to schema.GroupVersion) {
	source, result := schemasOf(before, from), schemasOf(after, to)
	if result.shared != nil && source.differ() {
		// To the types they were the same.
		versions, _ := at(after, "spec")["versions"].([]any)
		for i, v := range versions {
			result.each[i] = runtime.DeepCopyJSON(result.shared)
			at(v)["schema"] = map[string]any{"openAPIV3Schema": result.each[i]}
		}
		delete(at(after, "spec"), "validation")
		result.shared = nil
	}
	if result.shared != nil {
		carry(source.of(0), result.shared)
		return
	}
	for i := range result.each {
		carry(source.of(i), result.each[i])
	}
}

// The keywords under which there are schemas: one, a list, or many by name.
// items is one or a list.
var (
	holdOne   = []string{"items", "additionalProperties", "additionalItems", "not"}
	holdList  = []string{"allOf", "anyOf", "oneOf", "items"}
	holdNamed = []string{"properties", "patternProperties", "definitions", "dependencies"}
)

// carry puts the keywords of a schema, and of all in it, into what the types
// have made of it.
func carry(from, into map[string]any) {
	if from == nil || into == nil {
		return
	}
	for _, k := range Keywords {
		if x := from[k]; x != nil {
			into[k] = x
		}
	}
	for _, k := range holdOne {
		carry(at(from[k]), at(into[k]))
	}
	for _, k := range holdList {
		list, _ := from[k].([]any)
		result, _ := into[k].([]any)
		for i := range min(len(list), len(result)) {
			carry(at(list[i]), at(result[i]))
		}
	}
	for _, k := range holdNamed {
		source := at(from[k])
		for name, schema := range at(into[k]) {
			carry(at(source[name]), at(schema))
		}
	}
}

// each calls f for a schema and every schema in it.
func each(schema map[string]any, f func(map[string]any)) {
	if schema == nil {
		return
	}
	f(schema)
	for _, k := range holdOne {
		each(at(schema[k]), f)
	}
	for _, k := range holdList {
		list, _ := schema[k].([]any)
		for _, s := range list {
			each(at(s), f)
		}
	}
	for _, k := range holdNamed {
		for _, s := range at(schema[k]) {
			each(at(s), f)
		}
	}
}
