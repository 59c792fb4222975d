package lsp

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/espalier-dev/espalier/crd/kinds"
	"github.com/espalier-dev/espalier/internal/jsondoc"
)

// node is what is known about the values at a place of objects.
type node interface {
	// member returns the node of a field, or of any field if they are not specified by name.
	member(name string) node
	// item returns the node of the items of a list.
	item() node
	// members returns the fields that are specified, in the order of the schema.
	members() []member
	facts() facts
}

type member struct {
	name     string
	required bool
}

// facts are what editors show about a value.
type facts struct {
	typ         string // such as string, or []object; empty if any
	description string
	enum        []string // JSON
	value       string   // the default, JSON
	constraints []string // such as maxLength: 64
	rules       []ruleText
	keys        []string // of the items of a list of type map
}

type ruleText struct{ rule, message string }

// schemaNode is a node of the schema of a CRD.
type schemaNode struct {
	doc  *jsondoc.Doc
	v    jsondoc.Value
	root bool
}

// newSchemaNode reads a schema. The caller must not keep the node longer than the schema's bytes.
func newSchemaNode(schema []byte) (node, bool) {
	doc, err := jsondoc.Parse(schema, jsondoc.Limits{})
	if err != nil || doc.Kind(jsondoc.Root) != jsondoc.Object {
		return nil, false
	}
	return schemaNode{doc, jsondoc.Root, true}, true
}

func (n schemaNode) get(name string) (jsondoc.Value, bool) {
	v, ok := n.doc.Get(n.v, name)
	return v, ok
}

func (n schemaNode) text(name string) string {
	if v, ok := n.get(name); ok && n.doc.Kind(v) == jsondoc.String {
		return n.doc.Text(v)
	}
	return ""
}

func (n schemaNode) yes(name string) bool {
	v, ok := n.get(name)
	return ok && string(n.doc.Raw(v)) == "true"
}

func (n schemaNode) texts(name string) []string {
	v, ok := n.get(name)
	if !ok || n.doc.Kind(v) != jsondoc.Array {
		return nil
	}
	var all []string
	for _, item := range n.doc.Items(v) {
		if n.doc.Kind(item) == jsondoc.String {
			all = append(all, n.doc.Text(item))
		}
	}
	return all
}

// object returns the node of a keyword that is a schema.
func (n schemaNode) object(v jsondoc.Value, ok bool) node {
	if !ok || n.doc.Kind(v) != jsondoc.Object {
		return nil
	}
	return schemaNode{doc: n.doc, v: v}
}

func (n schemaNode) embedded() bool { return n.root || n.yes("x-kubernetes-embedded-resource") }

func (n schemaNode) member(name string) node {
	if n.embedded() {
		switch name {
		case "metadata":
			return goNode{t: reflect.TypeFor[metav1.ObjectMeta]()}
		case "apiVersion", "kind":
			return goNode{t: reflect.TypeFor[string](), about: typeMetaDocs[name]}
		}
	}
	if properties, ok := n.get("properties"); ok && n.doc.Kind(properties) == jsondoc.Object {
		if v, ok := n.doc.Get(properties, name); ok {
			return n.object(v, true)
		}
	}
	return n.object(n.get("additionalProperties"))
}

var typeMetaDocs = map[string]string{
	"apiVersion": "The group and version of the kind, such as apps/v1.",
	"kind":       "The kind of the object.",
}

func (n schemaNode) item() node { return n.object(n.get("items")) }

func (n schemaNode) members() []member {
	var all []member
	if n.embedded() {
		all = append(all, member{"apiVersion", true}, member{"kind", true}, member{"metadata", true})
	}
	required := n.texts("required")
	properties, ok := n.get("properties")
	if !ok || n.doc.Kind(properties) != jsondoc.Object {
		return all
	}
	for m := range n.doc.Members(properties) {
		name := string(n.doc.AppendText(nil, m.Key))
		if n.embedded() && (name == "apiVersion" || name == "kind" || name == "metadata") {
			continue
		}
		all = append(all, member{name, slices.Contains(required, name)})
	}
	return all
}

// bounds are the keywords that are shown as they are.
var bounds = []string{
	"format", "pattern", "minLength", "maxLength", "minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum", "multipleOf", "minItems", "maxItems",
	"uniqueItems", "minProperties", "maxProperties", "nullable", "x-kubernetes-list-type", "x-kubernetes-map-type", "x-kubernetes-preserve-unknown-fields",
}

func (n schemaNode) facts() facts {
	f := facts{typ: n.text("type"), description: n.text("description"), keys: n.texts("x-kubernetes-list-map-keys")}
	if n.yes("x-kubernetes-int-or-string") {
		f.typ = "integer or string"
	}
	if items := n.item(); f.typ == "array" && items != nil {
		f.typ = "[]" + items.facts().typ
	}
	if v, ok := n.get("enum"); ok && n.doc.Kind(v) == jsondoc.Array {
		for _, item := range n.doc.Items(v) {
			f.enum = append(f.enum, string(n.doc.Raw(item)))
		}
	}
	if v, ok := n.get("default"); ok {
		f.value = string(n.doc.Raw(v))
	}
	for _, name := range bounds {
		if v, ok := n.get(name); ok {
			f.constraints = append(f.constraints, name+": "+string(n.doc.Raw(v)))
		}
	}
	if v, ok := n.get("x-kubernetes-validations"); ok && n.doc.Kind(v) == jsondoc.Array {
		for _, item := range n.doc.Items(v) {
			if n.doc.Kind(item) == jsondoc.Object {
				r := schemaNode{doc: n.doc, v: item}
				f.rules = append(f.rules, ruleText{r.text("rule"), r.text("message")})
			}
		}
	}
	return f
}

// goNode is a node of a built-in kind, whose fields are those of a Go type.
type goNode struct {
	t     reflect.Type
	about string
	known *kinds.Facts // nil if nothing is
}

// documented types describe their fields.
type documented interface{ SwaggerDoc() map[string]string }

// stands are the types whose JSON is that of another one.
var stands = map[reflect.Type]reflect.Type{
	reflect.TypeFor[apiextensions.JSONSchemaPropsOrBool]():        reflect.TypeFor[apiextensions.JSONSchemaProps](),
	reflect.TypeFor[apiextensions.JSONSchemaPropsOrArray]():       reflect.TypeFor[apiextensions.JSONSchemaProps](),
	reflect.TypeFor[apiextensions.JSONSchemaPropsOrStringArray](): reflect.TypeFor[apiextensions.JSONSchemaProps](),
}

func (n goNode) base() reflect.Type {
	t := n.t
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if other, ok := stands[t]; ok {
		return other
	}
	return t
}

// plain reports whether values of a struct have a JSON of their own, such as times and quantities.
func plain(t reflect.Type) bool {
	return t.Implements(reflect.TypeFor[json.Marshaler]()) || reflect.PointerTo(t).Implements(reflect.TypeFor[json.Marshaler]())
}

// walk calls f for the fields of a struct, those of embedded ones among them, until it returns true.
func walkFields(t reflect.Type, f func(name string, field reflect.StructField, docs map[string]string) bool) bool {
	var docs map[string]string
	if d, ok := reflect.Zero(t).Interface().(documented); ok {
		docs = d.SwaggerDoc()
	}
	for i := range t.NumField() {
		field := t.Field(i)
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name == "" && (strings.Contains(options, "inline") || field.Anonymous) {
			inner := goNode{t: field.Type}.base()
			if inner.Kind() == reflect.Struct && walkFields(inner, f) {
				return true
			}
			continue
		}
		if name == "" || name == "-" {
			continue
		}
		if f(name, field, docs) {
			return true
		}
	}
	return false
}

func (n goNode) member(name string) node {
	t := n.base()
	switch {
	case t.Kind() == reflect.Map:
		return goNode{t: t.Elem()}
	case t.Kind() != reflect.Struct || plain(t):
		return nil
	}
	var found node
	walkFields(t, func(candidate string, field reflect.StructField, docs map[string]string) bool {
		if candidate == name {
			found = goNode{t: field.Type, about: docs[name], known: kinds.Describe(typeName(t), name)}
			if about := keywordDocs[name]; about != "" && t == reflect.TypeFor[apiextensions.JSONSchemaProps]() {
				found = goNode{t: field.Type, about: about}
			}
			return true
		}
		return false
	})
	return found
}

func (n goNode) item() node {
	if t := n.base(); t.Kind() == reflect.Slice && t.Elem().Kind() != reflect.Uint8 {
		n := goNode{t: t.Elem(), known: n.known}
		if n.known != nil {
			n.known = n.known.Items
		}
		return n
	}
	return nil
}

// typeName is the name of a type in the data of built-in kinds, such as core/v1.Container.
func typeName(t reflect.Type) string {
	path := strings.TrimPrefix(strings.TrimPrefix(t.PkgPath(), "k8s.io/api/"), "k8s.io/apimachinery/pkg/apis/")
	return path + "." + t.Name()
}

// hidden are fields that servers set, or that schemas of CRDs may not have.
var hidden = map[reflect.Type]map[string]bool{
	reflect.TypeFor[metav1.ObjectMeta]():             {"managedFields": true, "selfLink": true},
	reflect.TypeFor[apiextensions.JSONSchemaProps](): {"$ref": true, "$schema": true, "id": true, "definitions": true, "dependencies": true, "patternProperties": true, "additionalItems": true},
}

func (n goNode) members() []member {
	t := n.base()
	if t.Kind() != reflect.Struct || plain(t) {
		return nil
	}
	var all []member
	walkFields(t, func(name string, field reflect.StructField, _ map[string]string) bool {
		if hidden[t][name] {
			return false
		}
		options := field.Tag.Get("json")
		optional := strings.Contains(options, "omitempty") || strings.Contains(options, "omitzero") || name == "status"
		all = append(all, member{name, !optional})
		return false
	})
	return all
}

func (n goNode) facts() facts {
	f := facts{typ: goType(n.base()), description: n.about, enum: enumOf(n.base())}
	k := n.known
	if k == nil {
		return f
	}
	for _, value := range k.Enum {
		f.enum = append(f.enum, strconv.Quote(value))
	}
	if text, err := json.Marshal(k.Default); err == nil && k.Default != nil {
		f.value = string(text)
	}
	bound := func(name string, set bool, value any) {
		if set {
			f.constraints = append(f.constraints, fmt.Sprintf("%s: %v", name, value))
		}
	}
	bound("format", k.Format != "", k.Format)
	bound("maxLength", k.MaxLength > 0, k.MaxLength)
	bound("maxItems", k.MaxItems > 0, k.MaxItems)
	if k.Minimum != nil {
		bound("minimum", true, *k.Minimum)
	}
	if k.Maximum != nil {
		bound("maximum", true, *k.Maximum)
	}
	return f
}

func goType(t reflect.Type) string {
	switch t.Kind() {
	case reflect.String:
		return "string"
	case reflect.Bool:
		return "boolean"
	case reflect.Int, reflect.Int32, reflect.Int64, reflect.Uint8, reflect.Uint32, reflect.Uint64:
		return "integer"
	case reflect.Float32, reflect.Float64:
		return "number"
	case reflect.Map:
		return "object"
	case reflect.Pointer:
		return goType(t.Elem())
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return "string"
		}
		return "[]" + goType(goNode{t: t.Elem()}.base())
	case reflect.Struct:
		switch {
		case t.Name() == "IntOrString":
			return "integer or string"
		case t.Name() == "JSON" || t.Name() == "RawExtension":
			return ""
		case plain(t):
			return "string"
		}
		return "object"
	}
	return ""
}

// enums are the values of types of CRDs.
var enums = map[string][]string{
	"ResourceScope":          {"Namespaced", "Cluster"},
	"ConversionStrategyType": {"None", "Webhook"},
}

func enumOf(t reflect.Type) []string {
	var all []string
	for _, value := range enums[t.Name()] {
		all = append(all, strconv.Quote(value))
	}
	return all
}

// keywordDocs describe the keywords of schemas, which upstream describes by reference to JSON Schema only.
var keywordDocs = map[string]string{
	"type":                                 "The type of the value: object, array, string, integer, number or boolean. Required everywhere, except below x-kubernetes-int-or-string and x-kubernetes-preserve-unknown-fields.",
	"properties":                           "The fields of an object, by name. API servers prune fields that are not specified.",
	"additionalProperties":                 "The schema of all values of a map. Not allowed beside properties.",
	"items":                                "The schema of the items of a list.",
	"required":                             "The fields that must be set. A field with a default is always set.",
	"enum":                                 "The values that are allowed.",
	"default":                              "The value of a field that is not set. API servers set it when they read a request, and when they read an object from etcd.",
	"nullable":                             "Whether null is allowed. Without it, API servers drop null, or set the default instead.",
	"pattern":                              "A regular expression (RE2) that strings must match. It matches anywhere, unless ^ and $ say otherwise.",
	"format":                               "The format of a string or number, such as date-time, int32 or uuid. API servers ignore formats that they do not know.",
	"maxLength":                            "The greatest length of a string, in characters. It also lowers the estimated cost of CEL rules.",
	"minLength":                            "The least length of a string, in characters.",
	"maxItems":                             "The greatest number of items of a list. It also lowers the estimated cost of CEL rules.",
	"minItems":                             "The least number of items of a list.",
	"maxProperties":                        "The greatest number of fields of a map. It also lowers the estimated cost of CEL rules.",
	"minProperties":                        "The least number of fields of an object.",
	"maximum":                              "The greatest number that is allowed.",
	"minimum":                              "The least number that is allowed.",
	"exclusiveMaximum":                     "Whether the maximum itself is refused. A boolean.",
	"exclusiveMinimum":                     "Whether the minimum itself is refused. A boolean.",
	"multipleOf":                           "The number that values must be multiples of.",
	"uniqueItems":                          "Must not be true: use x-kubernetes-list-type: set.",
	"allOf":                                "Schemas that a value must all match. They validate values; fields and types must be specified outside them, too.",
	"anyOf":                                "Schemas. A value must match at least one of them. They validate values; fields and types must be specified outside them, too.",
	"oneOf":                                "Schemas. A value must match exactly one of them. They validate values; fields and types must be specified outside them, too.",
	"not":                                  "A schema that a value must not match.",
	"description":                          "What the field means. kubectl explain and editors show it.",
	"x-kubernetes-validations":             "CEL rules that the value must satisfy. self is the value, oldSelf the value before an update.",
	"x-kubernetes-preserve-unknown-fields": "API servers keep fields below that are not specified. Must be true if it is set.",
	"x-kubernetes-embedded-resource":       "The value is an object of Kubernetes with apiVersion, kind and metadata. Must be true if it is set.",
	"x-kubernetes-int-or-string":           "The value is an integer or a string. Must be true if it is set, without a type.",
	"x-kubernetes-list-type":               "How server-side apply merges lists: atomic (as a whole), set (by value) or map (by keys).",
	"x-kubernetes-list-map-keys":           "The fields of items that identify them, for x-kubernetes-list-type: map.",
	"x-kubernetes-map-type":                "How server-side apply merges objects: granular (by field) or atomic (as a whole).",
}
