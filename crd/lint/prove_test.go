package lint

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/espalier-dev/espalier"
	"github.com/espalier-dev/espalier/crd/cel"
	"github.com/espalier-dev/espalier/finding"
)

// TestCode: a fix is code only where the schema with it compiles and keeps what the
// schema shows.
func TestCode(t *testing.T) {
	for _, c := range []struct {
		check        finding.ID
		name, schema string
		want         string // the last line of the code; empty if there is none
	}{
		{"default-unreachable", "right", `{type: object, properties: {a: {type: object, properties: {b: {type: integer, default: 1}}}}}`, "default: {} #"},
		{"default-unreachable", "a rule refuses the default", `{type: object, properties: {a: {type: object, properties: {b: {type: integer, default: 1}}, x-kubernetes-validations: [{rule: self.b > 1}]}}}`, ""},
		{"pattern-unanchored", "right", `{type: object, properties: {a: {type: string, pattern: "^[a-z]+", default: abc}}}`, "pattern: '^[a-z]+$'"},
		{"pattern-unanchored", "the default has more", `{type: object, properties: {a: {type: string, pattern: "^[a-z]+", default: abc1}}}`, ""},
		{"pattern-unanchored", "the example has more", `{type: object, properties: {a: {type: string, pattern: "^[a-z]+", example: abc1}}}`, ""},
		{"pattern-vacuous", "the enum has more", `{type: object, properties: {a: {type: string, pattern: "[a-z]*", enum: [a, "1"]}}}`, ""},
		{"pattern-vacuous", "right", `{type: object, properties: {a: {type: string, pattern: "a*|b*", enum: [a, b]}}}`, "pattern: '^(?:a*|b*)$'"},
		{"list-type-missing", "right", `{type: object, properties: {a: {type: array, items: {type: object, required: [name], properties: {name: {type: string}}}}}}`, "x-kubernetes-list-map-keys: [name]"},
		{"list-type-missing", "items may be null", `{type: object, properties: {a: {type: array, items: {type: object, nullable: true, required: [name], properties: {name: {type: string}}}}}}`, ""},
		{"immutable-optional", "right", `{type: object, properties: {a-b: {type: string, x-kubernetes-validations: [{rule: self == oldSelf}]}}}`, "  message: 'a-b cannot be removed once it is set'"},
		{"immutable-optional", "beside other rules", `{type: object, x-kubernetes-validations: [{rule: "true"}], properties: {a: {type: string, x-kubernetes-validations: [{rule: self == oldSelf}]}}}`, "  message: 'a cannot be removed once it is set'"},
		{"immutable-optional", "a name that CEL cannot write", `{type: object, properties: {"a b": {type: string, x-kubernetes-validations: [{rule: self == oldSelf}]}}}`, ""},
		{"union-as-rule", "exactly one", `{type: object, properties: {spec: {type: object, properties: {a: {type: string}, b: {type: string}}, x-kubernetes-validations: [{rule: has(self.a) != has(self.b)}]}}}`, "- required: [b]"},
		{"union-as-rule", "at the root, where the status subresource allows no oneOf", `{type: object, properties: {a: {type: string}, b: {type: string}}, x-kubernetes-validations: [{rule: has(self.a) != has(self.b)}]}`, ""},
		{"union-as-rule", "at most one", `{type: object, properties: {spec: {type: object, properties: {a: {type: string}, b: {type: string}}, x-kubernetes-validations: [{rule: "[has(self.a), has(self.b)].filter(x, x).size() <= 1"}]}}}`, "    - required: [b]"},
		{"union-as-rule", "a null", `{type: object, properties: {a: {type: string, nullable: true}, b: {type: string}}, x-kubernetes-validations: [{rule: has(self.a) != has(self.b)}]}`, ""},
		{"union-as-rule", "another union", `{type: object, oneOf: [{required: [c]}, {required: [a]}], properties: {a: {type: string}, b: {type: string}, c: {type: string}}, x-kubernetes-validations: [{rule: has(self.a) != has(self.b)}]}`, ""},
		{"union-as-rule", "a discriminator", `{type: object, required: [type], properties: {type: {type: string}, a: {type: string}, b: {type: string}}, x-kubernetes-validations: [{rule: "self.type == 'A' ? has(self.a) : !has(self.a)"}, {rule: "self.type == 'B' ? has(self.b) : !has(self.b)"}]}`, ""},
		{"unbounded", "an ARN", `{type: object, properties: {roleArn: {type: string}}}`, "maxLength: 2048 # ARNs have at most 2048 characters"},
		{"unbounded", "hosts", `{type: object, properties: {hosts: {type: array, maxItems: 2, items: {type: string}}}}`, "maxLength: 253 # DNS names have at most 253 characters"},
		{"missing-bounds", "hosts", `{type: object, properties: {hosts: {type: array, maxItems: 100, items: {type: string}}}, x-kubernetes-validations: [{rule: "self.hosts.all(x, self.hosts.exists_one(y, x == y))"}]}`,
			"maxLength: 253 # at hosts[]: DNS names have at most 253 characters; then the cost is 11 % of the limit"},
		{"additional-properties-any", "right", `{type: object, properties: {a: {type: object, additionalProperties: true}}}`, "  x-kubernetes-preserve-unknown-fields: true"},
		{"additional-properties-any", "a schema with errors", `{type: object, properties: {a: {type: object, additionalProperties: true}, b: {}}}`, ""},
		{"embedded-metadata-bare", "right", `{type: object, properties: {template: {type: object, properties: {metadata: {type: object}}}}}`, "    additionalProperties: {type: string}"},
		{"payload-pruned", "right", `{type: object, properties: {parameters: {type: object, description: "arbitrary parameters of the provider"}}}`, "x-kubernetes-preserve-unknown-fields: true #"},
		{"rule-unguarded-optional", "a schema with errors", `{type: object, properties: {a: {type: integer}, b: {}}, x-kubernetes-validations: [{rule: self.a > 0}]}`, ""},
	} {
		found := of(t, c.check, c.schema)
		if len(found) != 1 {
			t.Errorf("%s, %s: %v", c.check, c.name, found)
			continue
		}
		fix := found[0].Fix
		var code map[string]any
		isCode := yaml.Unmarshal([]byte(fix), &code) == nil
		lines := strings.Split(fix, "\n")
		if last := lines[len(lines)-1]; c.want == "" && isCode || c.want != "" && (!isCode || !strings.HasPrefix(last, c.want)) {
			t.Errorf("%s, %s: %s", c.check, c.name, fix)
		}
	}
}

// TestUnionsAreEqual: oneOf accepts what the rule in its place accepts.
func TestUnionsAreEqual(t *testing.T) {
	names := []string{"a", "b", "c"}
	for _, rule := range []string{
		`has(self.a) != has(self.b)`,
		`[has(self.a), has(self.b), has(self.c)].exists_one(x, x)`,
		`[has(self.a), has(self.b), has(self.c)].filter(x, x).size() == 1`,
		`[has(self.a), has(self.b), has(self.c)].filter(x, x).size() <= 1`,
		`1 == (has(self.a) ? 1 : 0) + (has(self.b) ? 1 : 0) + (has(self.c) ? 1 : 0)`,
		`(has(self.a) ? 1 : 0) + (has(self.c) ? 1 : 0) <= 1`,
	} {
		const properties = `"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string"},"c":{"type":"string"}}`
		before := fmt.Sprintf(`{"type":"object","properties":{"spec":{%s,"x-kubernetes-validations":[{"rule":%s}]}}}`, properties, jsonString(rule))
		found := of(t, "union-as-rule", before)
		if len(found) != 1 {
			t.Fatal(rule, found)
		}
		code, err := yaml.YAMLToJSON([]byte(found[0].Fix))
		if err != nil {
			t.Fatal(err)
		}
		after := fmt.Sprintf(`{"type":"object","properties":{"spec":{%s,%s`, properties, code[1:len(code)-1]) + "}}}"
		for set := range 8 {
			fields := map[string]string{}
			for i, name := range names {
				if set&(1<<i) != 0 {
					fields[name] = "x"
				}
			}
			object, err := json.Marshal(map[string]any{"spec": fields})
			if err != nil {
				t.Fatal(err)
			}
			if was, is := acceptedBy(t, before, object), acceptedBy(t, after, object); was != is {
				t.Errorf("%s of %s: %v, and %s: %v", rule, object, was, code, is)
			}
		}
	}
}

func acceptedBy(t *testing.T, schema string, object []byte) bool {
	t.Helper()
	s, err := espalier.Compile([]byte(schema), espalier.CompileOptions{})
	if err != nil {
		t.Fatal(schema, err)
	}
	rules, err := cel.Compile(s)
	if err != nil {
		t.Fatal(err)
	}
	_, v, err := s.Admit(object, espalier.AdmitOptions{Validate: espalier.ValidateOptions{Rules: rules}})
	if err != nil {
		t.Fatal(err)
	}
	return v.Valid()
}
