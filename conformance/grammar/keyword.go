package grammar

// Keywords are the keywords of a schema: those of JSONSchemaProps, and one that no side knows.
var Keywords = []string{
	"type", "format", "title", "description", "example", "externalDocs", "default",
	"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minLength", "maxLength", "pattern", "enum",
	"minItems", "maxItems", "uniqueItems", "minProperties", "maxProperties", "required", "properties", "additionalProperties", "items",
	"allOf", "anyOf", "oneOf", "not", "nullable",
	"x-kubernetes-preserve-unknown-fields", "x-kubernetes-embedded-resource", "x-kubernetes-int-or-string", "x-kubernetes-list-type",
	"x-kubernetes-list-map-keys", "x-kubernetes-map-type",
	"$ref", "$schema", "id", "definitions", "dependencies", "patternProperties", "additionalItems", "unknownKeyword",
}

// A class of values of a keyword. Every keyword gets values of every class: what is no value for it is of the wrong type.
type class struct {
	name string
	raw  []string // JSON; none for what the keyword itself determines
}

// The classes that the keyword determines.
const (
	own       = "own"       // a value that the grammar of the keyword makes, which need not be accepted
	duplicate = "duplicate" // two values, both of the grammar
	// Absent is no value: the keyword's neighbours alone.
	Absent = "absent"
)

var classes = []class{
	{own, nil},
	{"zero", []string{"0"}},
	{"-0", []string{"-0"}},
	{"0.0", []string{"0.0", "-0.0", "0e0"}},
	{"small", []string{"1", "2", "3", "5"}},
	{"negative", []string{"-1", "-2", "-7"}},
	{"n.0", []string{"1.0", "2.0", "5.00"}},
	{"exponent", []string{"1e2", "1E0", "20e-1", "1e+0"}},
	{own, nil},
	{"fraction", []string{"0.5", "1.5", "2.5", "0.1", "-0.5", "1e-7"}},
	{"2^53", []string{"9007199254740991", "9007199254740992", "9007199254740993", "-9007199254740993"}},
	{"2^63-1", []string{"9223372036854775807", "9223372036854775806", "9223372036854774784", "-9223372036854775808"}},
	{"2^63", []string{"9223372036854775808", "9223372036854775809", "-9223372036854775809", "9223372036854775808.0"}},
	{"2^64", []string{"18446744073709551615", "18446744073709551616", "18446744073709551617"}},
	{"1e19", []string{"1e19", "-1e19", "1e20", "1e21"}},
	{"huge", []string{"1e308", "-1e308", "123456789012345678901234567890", "1.7976931348623157e308"}},
	{"tiny", []string{"5e-324", "2e-324", "1e-400", "2.2250738585072014e-308"}},
	{own, nil},
	{"overflow", []string{"1e400", "-1e400", "1.7976931348623159e308"}},
	{"long digits", []string{"0.1000000000000000055511151231257827", "2.99999999999999999999999999999", "1.00000000000000000000000000001"}},
	{"null", []string{"null"}},
	{"true", []string{"true"}},
	{"false", []string{"false"}},
	{"empty string", []string{`""`}},
	{"string", []string{`"x"`, `"1"`, `"true"`, `"string"`, `"\u0000"`, `"\ud800"`, "\"\xff\"", `" "`}},
	{own, nil},
	{"empty array", []string{"[]"}},
	{"array of strings", []string{`["a"]`, `["a","a"]`, `[""]`, `["a","b","metadata"]`}},
	{"array of schemas", []string{`[{}]`, `[{"type":"string"}]`, `[{"enum":[1]},{"enum":["a"]}]`, `[null]`}},
	{"array of others", []string{`[1]`, `[null]`, `[[]]`, `[true,1]`, `[1,1.0]`}},
	{"empty object", []string{"{}"}},
	{"schema", []string{`{"type":"string"}`, `{"type":"object","properties":{"a":{"type":"string"}}}`, `{"type":"array","items":{"type":"string"}}`, `{"enum":["a",1]}`}},
	{"object of schemas", []string{`{"a":{"type":"string"}}`, `{"a":{"type":"object"},"b":{"type":"integer"}}`, `{"a":{}}`}},
	{"object of others", []string{`{"a":1}`, `{"a":null}`, `{"a":["b"]}`, `{"a":true}`}},
	{own, nil},
	{duplicate, nil},
	{Absent, nil},
	{own, nil},
	{own, nil},
	{own, nil},
}

// Classes are the names of the classes.
var Classes = func() []string {
	var list []string
	seen := map[string]bool{}
	for _, c := range classes {
		if !seen[c.name] {
			list = append(list, c.name)
		}
		seen[c.name] = true
	}
	return list
}()

// typeOf is the type that a keyword restricts, if it is one only.
var typeOf = map[string][]string{
	"minimum": {"integer", "number"}, "maximum": {"integer", "number"}, "exclusiveMinimum": {"integer", "number"}, "exclusiveMaximum": {"integer", "number"}, "multipleOf": {"integer", "number"},
	"minLength": {"string"}, "maxLength": {"string"}, "pattern": {"string"}, "format": {"string", "string", "string", "integer", "number"},
	"minItems": {"array"}, "maxItems": {"array"}, "uniqueItems": {"array"}, "items": {"array"}, "additionalItems": {"array"},
	"x-kubernetes-list-type": {"array"}, "x-kubernetes-list-map-keys": {"array"},
	"minProperties": {"object"}, "maxProperties": {"object"}, "required": {"object"}, "properties": {"object"}, "additionalProperties": {"object"},
	"x-kubernetes-embedded-resource": {"object"}, "x-kubernetes-map-type": {"object"}, "x-kubernetes-preserve-unknown-fields": {"object", "array", "string"},
	"dependencies": {"object"}, "patternProperties": {"object"},
}

var allTypes = []string{"string", "integer", "number", "boolean", "object", "array"}

// Composite reports whether values of a keyword are schemas, or lists or objects of them.
func Composite(keyword string) bool {
	switch keyword {
	case "properties", "additionalProperties", "items", "allOf", "anyOf", "oneOf", "not", "definitions", "dependencies", "patternProperties", "additionalItems", "externalDocs":
		return true
	}
	return false
}
