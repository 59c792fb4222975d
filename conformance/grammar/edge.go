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
	for i := range list {
		list[i].Seed = uint64(i)
	}
	return list
}()
