package grammar

import (
	"strconv"
	"strings"

	"github.com/espalier-dev/espalier/conformance/tree"
)

// own is a value that a keyword is made for, mostly one that is accepted. t is the type of the schema around it, depth
// bounds the schemas below it.
func (d *Dice) own(keyword, t string, depth int) string {
	switch keyword {
	case "type":
		return tree.Quote(t)
	case "format":
		return d.ownFormat(t)
	case "title", "description", "$ref", "$schema", "id":
		return d.text(d.n(6))
	case "default", "example":
		return d.ownDefault(t)
	case "minimum", "maximum":
		return d.of(written)
	case "multipleOf":
		return d.of([]string{"1", "2", "3", "2.0", "20e-1", "0.5", "0.1", "0.01", "1e-7", "1.5", "7", "100", "1e2", "9007199254740993", "9223372036854775807", "9223372036854775808", "1e19", "0", "-2", "-0.5", "5e-324", "0.3", d.of(written)})
	case "exclusiveMinimum", "exclusiveMaximum", "nullable", "uniqueItems", "x-kubernetes-preserve-unknown-fields", "x-kubernetes-embedded-resource", "x-kubernetes-int-or-string":
		if d.one(4) {
			return "false"
		}
		return "true"
	case "minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties":
		if d.one(6) {
			return d.of([]string{"-1", "9223372036854775807", "1.0", "1e1", "-0", "2.0", "3e0"})
		}
		return strconv.Itoa(d.n(5))
	case "pattern":
		expr, _ := d.expression()
		return tree.Quote(expr)
	case "enum":
		return d.enum(t)
	case "required":
		return d.of([]string{`["a"]`, `["a","b"]`, `["f"]`, `["a","a"]`, `["k"]`, `[""]`, `["metadata"]`, `["kind","apiVersion"]`, `["missing"]`, `[]`, `["\u0061"]`, `["é"]`, `["a.b","a/b"]`})
	case "properties", "patternProperties", "definitions":
		return d.ownProperties(depth)
	case "additionalProperties", "items", "additionalItems":
		if keyword != "items" && d.one(4) {
			return d.of([]string{"true", "false"})
		}
		return d.schema(depth - 1)
	case "allOf", "anyOf", "oneOf":
		list := make([]string, 1+d.n(3))
		for i := range list {
			list[i] = d.branch(t, depth-1)
		}
		return "[" + strings.Join(list, ",") + "]"
	case "not":
		return d.branch(t, depth-1)
	case "x-kubernetes-list-type":
		return d.of([]string{`"set"`, `"map"`, `"atomic"`, `"set"`, `"Set"`, `"list"`})
	case "x-kubernetes-list-map-keys":
		return d.of([]string{`["k"]`, `["k","l"]`, `["k","k"]`, `["missing"]`, `["l"]`, `[""]`})
	case "x-kubernetes-map-type":
		return d.of([]string{`"atomic"`, `"granular"`, `"map"`})
	case "externalDocs":
		return d.of([]string{`{"url":"https://example.com"}`, `{"description":"x"}`, `{"url":1}`})
	case "dependencies":
		return d.of([]string{`{"a":["b"]}`, `{"a":{"required":["b"]}}`})
	}
	return d.scalar()
}

// ownProperties has the names that object values and required lists use.
func (d *Dice) ownProperties(depth int) string {
	var b strings.Builder
	b.WriteByte('{')
	for i, name := range []string{`"a"`, d.of([]string{`"b"`, `"k"`, `"é"`, `"a.b"`, `"metadata"`, `"\u0062"`, `""`, `"kind"`})} {
		if i > 0 {
			if d.one(3) {
				break
			}
			b.WriteByte(',')
		}
		b.WriteString(name + ":" + d.schema(depth-1))
	}
	b.WriteByte('}')
	return b.String()
}

// ownDefault is mostly a value of the type.
func (d *Dice) ownDefault(t string) string {
	if d.one(4) {
		return d.scalar()
	}
	switch t {
	case "string":
		return d.text(d.n(4))
	case "integer", "number":
		return d.of(written)
	case "boolean":
		return d.of([]string{"true", "false"})
	case "array":
		return d.of([]string{"[]", "[1]", "[1,1.0]", `["a"]`, "[null]", `[{"k":"a"}]`, `[{"k":1},{"k":1.0}]`, "[-0,0]", `["a","a"]`})
	}
	return d.of([]string{"{}", `{"a":1}`, `{"a":"x"}`, `{"b":null,"a":-0}`, `{"a":1,"a":2}`, `{"z":1}`, `{"\u0061":"x"}`, `{"a":{}}`, `{"a":1.0}`})
}

// enum lists values, mostly of the type, in several written forms.
func (d *Dice) enum(t string) string {
	list := make([]string, 1+d.n(4))
	for i := range list {
		list[i] = d.member(t)
		if i > 0 && d.one(6) {
			list[i] = list[i-1]
		}
	}
	if d.one(8) {
		list = append(list, "null")
	}
	return "[" + strings.Join(list, ",") + "]"
}

func (d *Dice) member(t string) string {
	if d.one(5) {
		return d.scalar()
	}
	switch t {
	case "string":
		return d.of([]string{`"a"`, `"\u0061"`, `""`, `"A"`, `"é"`, `"e\u0301"`, `"\ud800"`, `"\ufffd"`, "\"\xff\"", `"\/"`, `"1"`, `"\u003c&"`, `"null"`, `"\u2028"`, `"ab"`})
	case "integer", "number":
		return d.of(written)
	case "boolean":
		return d.of([]string{"true", "false"})
	case "array":
		return d.of([]string{"[]", "[1]", "[1.0]", "[[2]]", "[[2.0]]", "[-0]", "[0]", "[0.0]", `["a"]`, `["\u0061"]`, "[null]", "[1e2]", "[100]", "[1,2]", "[2,1]", `[{"a":1}]`, `[{"a":1.0}]`, "[9007199254740993]", "[9007199254740993.0]"})
	}
	return d.of([]string{"{}", `{"a":1}`, `{"a":1.0}`, `{"a":1,"b":2}`, `{"b":2,"a":1}`, `{"a":2,"a":1}`, `{"a":null}`, `{"a":-0}`, `{"a":0}`, `{"\u0061":1}`, `{"a":[1.0]}`, `{"a":{"b":1e0}}`, `{"a":"x"}`})
}

// scalar is any small value.
func (d *Dice) scalar() string {
	return d.of([]string{"null", "true", "false", "0", "-0", "1", "1.0", "1.5", `""`, `"a"`, "[]", "{}", "[null]", `{"a":null}`, `"1"`, "65", `"A"`, "[[]]", "-0.0", "1e2"})
}

// schema is a small schema with a type.
func (d *Dice) schema(depth int) string {
	if depth <= 0 {
		return d.of([]string{`{"type":"string"}`, `{"type":"integer"}`, `{"type":"number"}`, `{"type":"boolean"}`, `{"x-kubernetes-int-or-string":true}`, `{"type":"object","x-kubernetes-preserve-unknown-fields":true}`, `{"type":"string","nullable":true}`})
	}
	t := d.of(allTypes)
	n := &members{}
	n.add("type", tree.Quote(t))
	d.complete(n, t, depth)
	for range 1 + d.n(2) {
		d.restrict(n, t, depth)
	}
	return n.String()
}

// complete adds what a type needs to be accepted.
func (d *Dice) complete(n *members, t string, depth int) {
	switch t {
	case "array":
		if !n.has("items") {
			n.add("items", d.schema(depth-1))
		}
	case "object":
		if d.one(2) && !n.has("additionalProperties") && !n.has("properties") {
			n.add("properties", d.ownProperties(depth))
		}
	}
}

var restrictions = map[string][]string{
	"string": {"minLength", "maxLength", "pattern", "format", "enum", "nullable", "default"}, "boolean": {"enum", "nullable", "default"},
	"integer": {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "enum", "format", "nullable", "default"},
	"number":  {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "enum", "format", "nullable", "default"},
	"array":   {"minItems", "maxItems", "x-kubernetes-list-type", "nullable", "default", "enum"},
	"object":  {"minProperties", "maxProperties", "required", "x-kubernetes-preserve-unknown-fields", "x-kubernetes-embedded-resource", "x-kubernetes-map-type", "nullable", "default", "enum"},
}

// restrict adds another keyword of a type.
func (d *Dice) restrict(n *members, t string, depth int) {
	if keyword := d.of(restrictions[t]); !n.has(keyword) {
		n.add(keyword, d.own(keyword, t, depth))
	}
}

// values are the keywords that may stand in allOf, anyOf, oneOf and not.
var values = map[string][]string{
	"string": {"minLength", "maxLength", "pattern", "format", "enum"}, "boolean": {"enum"},
	"integer": {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "enum", "format"}, "number": {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "enum", "format"},
	"array": {"minItems", "maxItems", "enum"}, "object": {"minProperties", "maxProperties", "required", "enum"},
}

// branch is a schema for allOf, anyOf, oneOf or not.
func (d *Dice) branch(t string, depth int) string {
	n := &members{}
	if t == "" {
		t = d.of(allTypes)
	}
	for range 1 + d.n(2) {
		if keyword := d.of(values[t]); !n.has(keyword) {
			n.add(keyword, d.own(keyword, t, depth))
		}
	}
	if depth > 0 && d.one(4) {
		keyword := d.of([]string{"allOf", "anyOf", "oneOf", "not"})
		n.add(keyword, d.own(keyword, t, depth-1))
	}
	return n.String()
}

// members is an object that is being written. Names may be added twice.
type members struct{ names, raws []string }

func (m *members) add(name, raw string) {
	m.names, m.raws = append(m.names, name), append(m.raws, raw)
}

func (m *members) has(name string) bool {
	for _, n := range m.names {
		if n == name {
			return true
		}
	}
	return false
}

func (m *members) String() string {
	var b strings.Builder
	b.WriteByte('{')
	for i, name := range m.names {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(tree.Quote(name) + ":" + m.raws[i])
	}
	b.WriteByte('}')
	return b.String()
}
