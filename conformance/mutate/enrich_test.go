package mutate

import (
	"bytes"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/conformance/oracle"
	"github.com/espalier-dev/espalier/conformance/tree"
)

// Enriched schemas are of use only if nearly all of them are accepted and everything occurs in them.
func TestEnrichedSchemasSpread(t *testing.T) {
	p := pool(t)
	const n = 600
	accepted, applied, words := 0, map[string]int{}, map[string]int{}
	for seed := range uint64(n) {
		m := p.Enrich(seed)
		if again := p.Enrich(seed); !bytes.Equal(m.Schema, again.Schema) {
			t.Fatalf("seed %d gave two schemas", seed)
		}
		if v := oracle.Check(m.Schema, false); v.Accepted() {
			accepted++
		} else if testing.Verbose() && seed%97 == 0 {
			t.Log(v)
		}
		for _, name := range m.Applied {
			applied[name]++
		}
		for _, kw := range keywords {
			if strings.Contains(string(m.Schema), `"`+kw+`":`) {
				words[kw]++
			}
		}
	}
	t.Logf("%d of %d accepted", accepted, n)
	if accepted < n*8/10 {
		t.Errorf("only %d of %d accepted", accepted, n)
	}
	for _, e := range enrichments {
		if applied[e.name] == 0 {
			t.Errorf("%s never applied", e.name)
		}
	}
	for _, kw := range []string{"format", "maximum", "exclusiveMaximum", "minimum", "exclusiveMinimum", "maxLength", "minLength", "pattern", "maxItems", "minItems", "multipleOf", "enum", "maxProperties", "minProperties", "required", "allOf", "oneOf", "anyOf", "not",
		"additionalProperties", "nullable", "x-kubernetes-embedded-resource", "x-kubernetes-int-or-string", "x-kubernetes-list-map-keys", "x-kubernetes-list-type", "x-kubernetes-map-type", "x-kubernetes-validations"} {
		if words[kw] < n/100 {
			t.Errorf("%s in %d of %d", kw, words[kw], n)
		}
	}
}

// Every template must compile on the type it is for, or it tests nothing.
func TestTemplatesCompile(t *testing.T) {
	schemas := map[string]string{
		"string": `{"type":"string","maxLength":9}`, "integer": `{"type":"integer"}`, "number": `{"type":"number"}`, "boolean": `{"type":"boolean"}`,
		"array": `{"type":"array","maxItems":3,"items":{"type":"integer"}}`, "strings": `{"type":"array","maxItems":3,"items":{"type":"string","maxLength":5}}`, "object": `{"type":"object","properties":{"a":{"type":"string"}}}`,
		"map": `{"type":"object","maxProperties":3,"additionalProperties":{"type":"integer"}}`, "int-or-string": `{"x-kubernetes-int-or-string":true,"maxLength":9}`,
		"bytes": `{"type":"string","format":"byte","maxLength":9}`, "datetime": `{"type":"string","format":"date-time"}`, "duration": `{"type":"string","format":"duration"}`,
	}
	count := 0
	for kind, list := range ruleTemplates {
		for _, template := range list {
			count++
			n := tree.Obj()
			self, old := "self.x", "oldSelf.x"
			if kind == "resource" {
				self, old = "self", "oldSelf"
			} else {
				n.Add("properties", tree.Obj())
				n.Get("properties").Add("x", tree.Must(schemas[kind]))
			}
			n.Add("type", tree.Str("object"))
			rule := tree.Obj()
			rule.Add("rule", tree.Str(fill(template.rule, self, old)))
			if expr, ok := strings.CutPrefix(template.message, "="); ok && expr != "" {
				rule.Add("messageExpression", tree.Str(fill(expr, self, old)))
			}
			n.Add("x-kubernetes-validations", tree.Arr(rule))
			v := oracle.Check(n.Bytes(), false)
			for _, e := range append(v.CEL, v.Errors...) {
				if !strings.Contains(e, "cost") { // too costly in general, yet fine on small objects
					t.Errorf("%s: %s: %s", kind, template.rule, e)
				}
			}
		}
	}
	if count < 100 {
		t.Errorf("%d templates", count)
	}
}
