package grammar

import (
	"strings"

	"github.com/espalier-dev/espalier/conformance/tree"
)

// edges are the first seeds: every bound at which a machine number ends or changes its form, with every keyword that has
// bounds, and enums, sets and map keys of every written form, with nothing beside them. What goes wrong there must not
// depend on chance.
var edges = func() []Case {
	bounds := []string{
		"0", "-0", "0.5", "-0.5", "2.5", "1e-7", "5e-324", "2.0", "9007199254740993", "9223372036854774784", "9223372036854775807", "9223372036854775808", "-9223372036854775808", "-9223372036854775809", "18446744073709551616", "1e19", "-1e19", "1e308",
	}
	var list []Case
	add := func(keyword, t string, members ...string) {
		schema := `{"type":"object","properties":{"f":{"type":` + tree.Quote(t) + "," + strings.Join(members, ",") + `}}}`
		list = append(list, Case{Keyword: keyword, Class: own, Position: "property", Type: t, Schema: []byte(schema)})
	}
	for _, t := range []string{"number", "integer"} {
		for _, bound := range bounds {
			add("minimum", t, `"minimum":`+bound)
			add("maximum", t, `"maximum":`+bound)
			add("exclusiveMinimum", t, `"minimum":`+bound, `"exclusiveMinimum":true`)
			add("exclusiveMaximum", t, `"maximum":`+bound, `"exclusiveMaximum":true`)
			add("multipleOf", t, `"multipleOf":`+bound)
		}
		add("enum", t, `"nullable":true`, `"enum":[null,1]`)
		add("x-kubernetes-list-type", "array", `"items":{"type":"`+t+`"}`, `"x-kubernetes-list-type":"set"`)
		add("x-kubernetes-list-map-keys", "array", `"items":{"type":"object","required":["k"],"properties":{"k":{"type":"`+t+`"}}}`, `"x-kubernetes-list-type":"map"`, `"x-kubernetes-list-map-keys":["k"]`)
	}
	for _, member := range []string{"0", "-0", "0.0", "-0.0", "1", "1.0", "1e0", "10E-1", "1.5", "1e2", "9007199254740993", "9223372036854775807", "9223372036854775808", "18446744073709551616", "5e-324"} {
		add("enum", "number", `"enum":[`+member+`]`)
		add("enum", "array", `"items":{"type":"number"}`, `"enum":[[`+member+`]]`)
		add("enum", "object", `"properties":{"a":{"type":"number"}}`, `"enum":[{"a":`+member+`}]`)
		add("default", "number", `"default":`+member)
	}
	for _, k := range []string{"0", "1", "2", "3"} {
		add("minLength", "string", `"minLength":`+k)
		add("maxLength", "string", `"maxLength":`+k)
		add("minItems", "array", `"items":{"type":"string"}`, `"minItems":`+k)
		add("maxItems", "array", `"items":{"type":"string"}`, `"maxItems":`+k)
		add("minProperties", "object", `"additionalProperties":{"type":"string"}`, `"minProperties":`+k)
		add("maxProperties", "object", `"additionalProperties":{"type":"string"}`, `"maxProperties":`+k)
	}
	for _, f := range []string{"int32", "int64", "float", "double"} {
		add("format", "number", `"format":"`+f+`"`)
		add("format", "integer", `"format":"`+f+`"`)
	}
	for _, keys := range []string{`["k","l"]`, `["l","k"]`} {
		add("x-kubernetes-list-map-keys", "array", `"items":{"type":"object","required":["k"],"properties":{"k":{"type":"number"},"l":{"type":"string","default":"a"}}}`, `"x-kubernetes-list-type":"map"`, `"x-kubernetes-list-map-keys":`+keys)
	}
	for _, t := range []string{"string", "integer", "boolean", "number"} {
		add("enum", t, `"enum":["A","1",true,null]`)
		add("not", t, `"nullable":true`, `"not":{"enum":["A",1,true,null]}`)
	}
	list = append(list, empties()...)
	for i := range list {
		list[i].Seed = uint64(i)
	}
	return list
}()

// empties has every keyword at every position with null, which is accepted where no other value of the keyword may stand.
// The type is outside, so that there is an object to compare.
func empties() []Case {
	var list []Case
	for _, keyword := range Keywords {
		for _, p := range positions {
			t := "string"
			if p.name == "root" {
				t = "object"
			}
			d := NewDice(uint64(len(list)), 6)
			d.alone = true
			outer, inner := single("type", tree.Quote(t)), single(keyword, "null")
			switch {
			case keyword == "type" && !p.branch:
				inner = &members{} // the type itself is the value
			case keyword == "x-kubernetes-int-or-string" && p.name == "int-or-string":
				inner = single(keyword, "true")
			}
			list = append(list, Case{Keyword: keyword, Class: "null", Position: p.name, Type: t, Schema: []byte(p.place(d, t, outer, inner))})
		}
	}
	return list
}
