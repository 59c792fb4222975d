package crd_test

import (
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/crd"
)

// shared reports whether a server takes two versions for the same in one respect: it then
// reports what is wrong once, directly below spec, and not below each version.
func shared(t *testing.T, first, second, path string) bool {
	t.Helper()
	const frame = `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"trees.orchard.example"},
		"spec":{"group":"orchard.example","scope":"Namespaced","names":{"plural":"trees","kind":"Tree"},"versions":[
		{"name":"v1","served":true,"storage":true,1},{"name":"v2","served":true,"storage":false,2}]}}`
	doc := strings.NewReplacer(",1}", ","+first+"}", ",2}", ","+second+"}").Replace(frame)
	found, err := validate([]byte(doc), crd.ValidateOptions{})
	if err != nil {
		t.Fatalf("%s: %v", doc, err)
	}
	once, each := false, false
	for _, f := range found {
		once = once || strings.HasPrefix(f.Path, "spec."+path)
		each = each || strings.HasPrefix(f.Path, "spec.versions[")
	}
	if once == each {
		t.Fatalf("%s\nfindings below spec: %t, below versions: %t: %v", doc, once, each, found)
	}
	return once
}

// Schemas are the same if they are after decoding.
func TestEqualSchemas(t *testing.T) {
	schema := func(keywords string) string {
		return `"schema":{"openAPIV3Schema":{"type":"object","properties":{"wrong":{"type":"strange"},"f":{` + keywords + `}}}}`
	}
	same := func(a, b string, want bool) {
		t.Helper()
		if shared(t, schema(a), schema(b), "validation") != want || shared(t, schema(b), schema(a), "validation") != want {
			t.Errorf("{%s} and {%s}: the same is not %t", a, b, want)
		}
	}
	// A keyword with two values that differ, written as JSON.
	for _, c := range [][3]string{
		{"type", `"string"`, `"integer"`}, {"format", `"date"`, `"byte"`}, {"description", `"a"`, `"b"`}, {"pattern", `"a"`, `"b"`}, {"title", `"a"`, `"b"`},
		{"id", `"a"`, `"b"`}, {"$schema", `"a"`, `"b"`}, {"$ref", `"a"`, `"b"`},
		{"maximum", `1`, `2`}, {"minimum", `1`, `2`}, {"multipleOf", `1`, `2`}, {"maxLength", `1`, `2`}, {"minLength", `1`, `2`},
		{"maxItems", `1`, `2`}, {"minItems", `1`, `2`}, {"maxProperties", `1`, `2`}, {"minProperties", `1`, `2`},
		{"x-kubernetes-preserve-unknown-fields", `true`, `false`}, {"x-kubernetes-list-type", `"set"`, `"map"`}, {"x-kubernetes-map-type", `"atomic"`, `"granular"`},
		{"x-kubernetes-list-map-keys", `["a"]`, `["b"]`}, {"required", `["a"]`, `["b"]`}, {"required", `["a"]`, `["a","b"]`},
		{"externalDocs", `{"url":"a"}`, `{"url":"b"}`}, {"example", `1`, `2`}, {"additionalItems", `true`, `false`}, {"additionalItems", `true`, `{"type":"string"}`},
		{"additionalProperties", `true`, `false`}, {"additionalProperties", `{"type":"string"}`, `{"type":"integer"}`}, {"additionalProperties", `true`, `{"type":"integer"}`},
		{"patternProperties", `{"a":{}}`, `{"b":{}}`}, {"patternProperties", `{"a":{}}`, `{"a":{"type":"string"}}`}, {"definitions", `{"a":{}}`, `{"b":{}}`},
		{"dependencies", `{"a":["b"]}`, `{"c":["b"]}`}, {"dependencies", `{"a":["b"]}`, `{"a":["c"]}`}, {"dependencies", `{"a":{"type":"string"}}`, `{"a":{"type":"object"}}`},
		{"items", `{"type":"string"}`, `{"type":"integer"}`}, {"items", `[{"type":"string"}]`, `[{"type":"integer"}]`}, {"items", `[{"type":"string"}]`, `{"type":"string"}`},
		{"allOf", `[{"minLength":1}]`, `[{"minLength":2}]`}, {"anyOf", `[{"minLength":1}]`, `[{"minLength":2}]`}, {"oneOf", `[{"minLength":1}]`, `[{"minLength":2}]`}, {"not", `{"minLength":1}`, `{"minLength":2}`},
		{"properties", `{"a":{"type":"string"}}`, `{"a":{"type":"integer"}}`}, {"properties", `{"a":{"type":"string"}}`, `{"b":{"type":"string"}}`},
		{"x-kubernetes-validations", `[{"rule":"a"}]`, `[{"rule":"b"}]`}, {"x-kubernetes-validations", `[{"rule":"a","message":"a"}]`, `[{"rule":"a","message":"b"}]`},
		{"x-kubernetes-validations", `[{"rule":"a","messageExpression":"a"}]`, `[{"rule":"a","messageExpression":"b"}]`},
		{"x-kubernetes-validations", `[{"rule":"a","fieldPath":".a"}]`, `[{"rule":"a","fieldPath":".b"}]`},
		{"x-kubernetes-validations", `[{"rule":"a","reason":"FieldValueInvalid"}]`, `[{"rule":"a","reason":"FieldValueRequired"}]`},
		{"x-kubernetes-validations", `[{"rule":"a","optionalOldSelf":true}]`, `[{"rule":"a","optionalOldSelf":false}]`},
		{"x-kubernetes-validations", `[{"rule":"a","optionalOldSelf":true}]`, `[{"rule":"a"}]`},
		{"default", `1`, `2`}, {"default", `1`, `1.0`}, {"default", `1.5`, `2.5`}, {"default", `"a"`, `"b"`}, {"default", `"1"`, `1`}, {"default", `true`, `false`},
		{"default", `[1,2]`, `[1,3]`}, {"default", `[2,1]`, `[3,1]`}, {"default", `[1]`, `[1,2]`}, {"default", `[[1],2]`, `[[1],3]`}, {"default", `{"a":1}`, `{"b":1}`}, {"default", `{"a":1}`, `{"a":2}`}, {"default", `{"a":1}`, `{"a":1,"b":2}`},
		{"enum", `[1,2]`, `[2,1]`}, {"enum", `[1]`, `[1,2]`},
	} {
		a, b := `"`+c[0]+`":`+c[1], `"`+c[0]+`":`+c[2]
		same(a, b, false)
		same(a, ``, false)
		same(a, `"`+c[0]+`" : `+strings.ReplaceAll(c[1], ",", " , "), true)
	}
	for _, keyword := range []string{"nullable", "exclusiveMaximum", "exclusiveMinimum", "uniqueItems", "x-kubernetes-embedded-resource", "x-kubernetes-int-or-string"} {
		same(`"`+keyword+`":true`, ``, false)
		same(`"`+keyword+`":false`, ``, true)
	}
	// The same, written in other ways.
	for _, c := range [][2]string{
		{`"type":"string","format":"date"`, `"format":"date","type":"string"`}, {`"required":[]`, ``}, {`"properties":{}`, ``}, {`"x-unknown":1`, ``}, {`"type":"a"`, `"type":"\u0061"`},
		{`"default":{"a":1,"b":2}`, `"default":{"b":2,"a":1}`}, {`"default":"a"`, `"default":"\u0061"`}, {`"default":1.5`, `"default":1.50`}, {`"default":[1,[2],3]`, `"default":[1, [2], 3]`},
		{`"default":{"a":[1,2],"b":2}`, `"default":{"b":2,"a":[1,2]}`},
		{`"properties":{"a":{},"b":{}}`, `"properties":{"b":{},"a":{}}`},
	} {
		same(c[0], c[1], true)
	}
}

// The same holds for what else versions may have in common.
func TestEqualVersions(t *testing.T) {
	const (
		schema = `"schema":{"openAPIV3Schema":{"type":"object","properties":{"spec":{"type":"object","properties":{"n":{"type":"integer"}}}}}},`
		column = `"additionalPrinterColumns":[{"name":"A","type":"x","jsonPath":".a"}]`
		scale  = `"subresources":{"scale":{"specReplicasPath":"a","statusReplicasPath":".status.a","labelSelectorPath":".status.l"}}`
		field  = `"selectableFields":[{"jsonPath":".a"}]`
	)
	for _, c := range []struct{ path, all string }{{"additionalPrinterColumns", column}, {"subresources", scale}} {
		if !shared(t, schema+c.all, schema+strings.ReplaceAll(c.all, ",", " ,"), c.path) {
			t.Errorf("%s is not the same", c.all)
		}
	}
	for _, c := range []struct{ path, first, second string }{
		{"additionalPrinterColumns", column, strings.Replace(column, `"A"`, `"B"`, 1)},
		{"additionalPrinterColumns", column, strings.Replace(column, `"x"`, `"y"`, 1)},
		{"additionalPrinterColumns", column, strings.Replace(column, `".a"`, `".b"`, 1)},
		{"additionalPrinterColumns", column, strings.Replace(column, `"A"`, `"A","priority":1`, 1)},
		{"additionalPrinterColumns", column, `"additionalPrinterColumns":[]`},
		{"subresources", scale, strings.Replace(scale, `{"scale"`, `{"status":{},"scale"`, 1)},
		{"subresources", scale, strings.Replace(scale, `"a"`, `"b"`, 1)},
		{"subresources", scale, strings.Replace(scale, `".status.a"`, `".status.b"`, 1)},
		{"subresources", scale, strings.Replace(scale, `".status.l"`, `".status.m"`, 1)},
		{"subresources", scale, strings.Replace(scale, `,"labelSelectorPath":".status.l"`, ``, 1)},
		{"subresources", scale, `"subresources":{}`},
		{"subresources", scale, `"served":true`},
	} {
		if shared(t, schema+c.first, schema+c.second, c.path) || shared(t, schema+c.second, schema+c.first, c.path) {
			t.Errorf("%s and %s are the same", c.first, c.second)
		}
	}
	// Selectable fields and schemas must both be the same or both differ.
	if !shared(t, schema+field, schema+field, "selectableFields") {
		t.Error("the selectable fields are not the same")
	}
	if shared(t, schema+field, schema+`"selectableFields":[{"jsonPath":".b"}]`, "selectableFields") || shared(t, schema+field, schema+`"served":true`, "selectableFields") {
		t.Error("different selectable fields are the same")
	}
}
