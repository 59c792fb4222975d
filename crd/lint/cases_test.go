package lint

import (
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/finding"
)

// cases are CRDs, or the schemas of one, and what a rule says of them:
// nothing, or a finding with each of the texts, in order.
var cases = []struct {
	check      finding.ID
	name, text string
	want       []string
}{
	{"default-unreachable", "all fields have defaults", `{type: object, properties: {spec: {type: object, properties: {admission: {type: object, properties: {enabled: {type: boolean, default: true}}}}}}}`,
		[]string{"admission is optional"}},
	{"default-unreachable", "the object has a default", `{type: object, properties: {admission: {type: object, default: {}, properties: {enabled: {type: boolean, default: true}}}}}`, nil},
	{"default-unreachable", "the object is required", `{type: object, required: [admission], properties: {admission: {type: object, properties: {enabled: {type: boolean, default: true}}}}}`, nil},
	{"default-unreachable", "a field has no default", `{type: object, properties: {probe: {type: object, properties: {path: {type: string}, port: {type: integer, default: 80}}}}}`, nil},
	{"default-unreachable", "a field is required", `{type: object, properties: {probe: {type: object, required: [path], properties: {path: {type: string}, port: {type: integer, default: 80}}}}}`, nil},
	{"default-unreachable", "nested", `{type: object, properties: {a: {type: object, properties: {b: {type: object, properties: {c: {type: integer, default: 1}}}, d: {type: integer, default: 1}}}}}`,
		[]string{"a is optional", "b is optional"}},
	{"default-unreachable", "the default is empty", `{type: object, properties: {ref: {type: object, properties: {name: {type: string, default: ""}}}}}`, nil},
	{"default-unreachable", "a type chooses it", `{type: object, properties: {type: {type: string, enum: [File, Http]}, file: {type: object, properties: {mode: {type: integer, default: 1}}}}}`, nil},
	{"default-unreachable", "in status", `{type: object, properties: {status: {type: object, properties: {x: {type: object, properties: {a: {type: integer, default: 1}}}}}}}`, nil},

	{"default-conditional", "a field has no default", `{type: object, properties: {probe: {type: object, properties: {path: {type: string}, port: {type: integer, default: 80}}}}}`,
		[]string{"does not fill in the defaults of port"}},
	{"default-conditional", "the object has a default", `{type: object, properties: {probe: {type: object, default: {}, properties: {path: {type: string}, port: {type: integer, default: 80}}}}}`, nil},

	{"default-required", "both", `{type: object, required: [a], properties: {a: {type: integer, default: 1}}}`, []string{"omitting the field is never an error"}},
	{"default-required", "one", `{type: object, required: [b], properties: {a: {type: integer, default: 1}, b: {type: integer}}}`, nil},
	{"default-nullable", "both", `{type: object, properties: {a: {type: integer, default: 1, nullable: true}}}`, []string{"null stays null"}},
	{"default-nullable", "one", `{type: object, properties: {a: {type: integer, default: 1}, b: {type: integer, nullable: true}}}`, nil},

	{"embedded-metadata-bare", "in a template", `{type: object, properties: {spec: {type: object, properties: {template: {type: object, properties: {metadata: {type: object}}}}}}}`, []string{"the API server prunes labels"}},
	{"embedded-metadata-bare", "at the root", `{type: object, properties: {metadata: {type: object}}}`, nil},
	{"embedded-metadata-bare", "of an embedded resource", `{type: object, properties: {x: {type: object, x-kubernetes-embedded-resource: true, properties: {metadata: {type: object}}}}}`, nil},
	{"embedded-metadata-bare", "preserved", `{type: object, properties: {x: {type: object, properties: {metadata: {type: object, x-kubernetes-preserve-unknown-fields: true}}}}}`, nil},
	{"embedded-metadata-bare", "specified", `{type: object, properties: {x: {type: object, properties: {metadata: {type: object, properties: {name: {type: string}}}}}}}`, nil},
	{"embedded-metadata-bare", "a preserving parent does not help", `{type: object, properties: {x: {type: object, x-kubernetes-preserve-unknown-fields: true, properties: {metadata: {type: object}}}}}`, []string{"the API server prunes labels"}},

	{"payload-pruned", "a pod template", `{type: object, properties: {podTemplate: {type: object}}}`, []string{"podTemplate specifies no fields"}},
	{"payload-pruned", "a list of values", `{type: object, properties: {values: {type: array, items: {type: object}}}}`, []string{"each item of values"}},
	{"payload-pruned", "preserved", `{type: object, properties: {values: {type: object, x-kubernetes-preserve-unknown-fields: true}}}`, nil},
	{"payload-pruned", "a map", `{type: object, properties: {parameters: {type: object, additionalProperties: {type: string}}}}`, nil},
	{"payload-pruned", "another name", `{type: object, properties: {templated: {type: object}, templateRef: {type: object}}}`, nil},
	{"object-empty", "a marker", `{type: object, properties: {allAtOnce: {type: object}}}`, []string{"it is always {}"}},
	{"object-empty", "a marker that says so", `{type: object, properties: {allAtOnce: {type: object, maxProperties: 0}}}`, nil},
	{"object-empty", "a member that a type chooses", `{type: object, properties: {type: {type: string, enum: [AllAtOnce]}, allAtOnce: {type: object}}}`, nil},
	{"object-empty", "v1beta1 preserves", "apiVersion: apiextensions.k8s.io/v1beta1\nkind: CustomResourceDefinition\nspec: {version: v1, validation: {openAPIV3Schema: {type: object, properties: {a: {type: object}}}}}", nil},

	{"required-unspecified", "a misspelled name", `{type: object, properties: {spec: {type: object, required: [replica], properties: {replicas: {type: integer}}}}}`, []string{"prunes them: replica"}},
	{"required-unspecified", "no properties", `{type: object, properties: {spec: {type: object, required: [a]}}}`, []string{"prunes them: a"}},
	{"required-unspecified", "in a branch", `{type: object, properties: {a: {type: string}}, oneOf: [{required: [a]}, {required: [b]}]}`, []string{"no object matches this branch"}},
	{"required-unspecified", "specified", `{type: object, required: [spec, metadata], properties: {spec: {type: object}}}`, nil},
	{"required-unspecified", "preserved", `{type: object, properties: {spec: {type: object, required: [a], x-kubernetes-preserve-unknown-fields: true}}}`, nil},
	{"required-unspecified", "a map", `{type: object, properties: {spec: {type: object, required: [a], additionalProperties: {type: string}}}}`, nil},
	{"required-unspecified", "refused rather than demanded", `{type: object, not: {required: [a]}}`, nil},

	{"bounds-contradict", "lengths", `{type: object, properties: {a: {type: string, minLength: 3, maxLength: 2}}}`, []string{"minLength 3 is above maxLength 2"}},
	{"bounds-contradict", "items", `{type: object, properties: {a: {type: array, items: {type: string}, minItems: 3, maxItems: 2}}}`, []string{"minItems 3"}},
	{"bounds-contradict", "properties", `{type: object, properties: {a: {type: object, minProperties: 3, maxProperties: 2}}}`, []string{"minProperties 3"}},
	{"bounds-contradict", "numbers", `{type: object, properties: {a: {type: number, minimum: 2.5, maximum: 2}}}`, []string{"minimum 2.5 is above maximum 2"}},
	{"bounds-contradict", "exclusive", `{type: object, properties: {a: {type: number, minimum: 2, maximum: 2, exclusiveMaximum: true}}}`, []string{"one is exclusive"}},
	{"bounds-contradict", "in anyOf", `{type: object, anyOf: [{properties: {a: {minimum: 2, maximum: 1}}}], properties: {a: {type: number}}}`, []string{"minimum 2"}},
	{"bounds-contradict", "equal", `{type: object, properties: {a: {type: number, minimum: 2, maximum: 2}, b: {type: string, minLength: 2, maxLength: 2}}}`, nil},
	{"bounds-contradict", "negated", `{type: object, properties: {a: {type: number, not: {minimum: 2, maximum: 1}}}}`, nil},

	{"keyword-without-effect", "pattern on a list", `{type: object, properties: {a: {type: array, items: {type: string}, pattern: "^x"}}}`, []string{"pattern restricts values of type string"}},
	{"keyword-without-effect", "minimum on a string", `{type: object, properties: {a: {type: string, minimum: 1}}}`, []string{"minimum restricts values of type number"}},
	{"keyword-without-effect", "maxItems on an object", `{type: object, properties: {a: {type: object, maxItems: 1}}}`, []string{"maxItems restricts values of type array"}},
	{"keyword-without-effect", "required on a list", `{type: object, properties: {a: {type: array, items: {type: object}, required: [x]}}}`, []string{"required restricts"}},
	{"keyword-without-effect", "where they belong", `{type: object, properties: {a: {type: array, maxItems: 1, items: {type: string, pattern: "^x"}}, b: {type: integer, minimum: 1}, c: {x-kubernetes-int-or-string: true, pattern: "^x$", minimum: 1}}}`, nil},

	{"enum-duplicate", "twice", `{type: object, properties: {a: {type: string, enum: [x, y, x]}}}`, []string{`"x" is listed more than once`}},
	{"enum-duplicate", "once", `{type: object, properties: {a: {type: string, enum: [x, "1", y]}}}`, nil},

	{"pattern-vacuous", "a class that may be absent", `{type: object, properties: {a: {type: string, pattern: "[a-z]*"}}}`, []string{"matches every string"}},
	{"pattern-vacuous", "anchored at the beginning only", `{type: object, properties: {a: {type: string, pattern: "^(https://)?"}}}`, []string{"matches every string"}},
	{"pattern-vacuous", "an empty alternative", `{type: object, properties: {a: {type: string, pattern: "^$|x*"}}}`, []string{"matches every string"}},
	{"pattern-vacuous", "anchored", `{type: object, properties: {a: {type: string, pattern: "^[a-z]*$"}, b: {type: string, pattern: "^$|^x"}, c: {type: string, pattern: ".*"}, d: {type: string, pattern: '\bx?'}}}`, nil},
	{"pattern-unanchored", "a class at the end", `{type: object, properties: {a: {type: string, pattern: "^[a-z]{1,8}"}}}`, []string{"does not end in $"}},
	{"pattern-unanchored", "a group at the end", `{type: object, properties: {a: {type: string, pattern: "^v([0-9]+)"}}}`, []string{"does not end in $"}},
	{"pattern-unanchored", "a prefix", `{type: object, properties: {a: {type: string, pattern: "^https://"}, b: {type: string, pattern: "^/.*"}, c: {type: string, pattern: "^a+$"}, d: {type: string, pattern: "a+"}}}`, nil},

	{"additional-properties-any", "any", `{type: object, properties: {a: {type: object, additionalProperties: true}}}`, []string{"prunes every object to {}"}},
	{"additional-properties-any", "some", `{type: object, properties: {a: {type: object, additionalProperties: {type: string}}, b: {type: object, additionalProperties: true, x-kubernetes-preserve-unknown-fields: true}}}`, nil},

	{"list-type-missing", "named items", `{type: object, properties: {a: {type: array, items: {type: object, required: [name], properties: {name: {type: string}}}}}}`, []string{"required name"}},
	{"list-type-missing", "typed or unnamed", `{type: object, properties: {a: {type: array, x-kubernetes-list-type: atomic, items: {type: object, required: [name], properties: {name: {type: string}}}}, b: {type: array, items: {type: object, properties: {name: {type: string}}}}}}`, nil},
	{"description-missing", "none", `{type: object, properties: {apiVersion: {type: string}, spec: {type: object}}}`, []string{"spec has no description"}},
	{"description-missing", "one", `{type: object, properties: {spec: {type: object, description: What is wanted.}}}`, nil},
	{"unbounded", "everything", `{type: object, properties: {kind: {type: string}, a: {type: array, items: {type: string}}, b: {type: object, additionalProperties: {type: integer}}}}`,
		[]string{"a has no maxItems", "each item of a has no maxLength", "b has no maxProperties"}},
	{"unbounded", "nothing", `{type: object, properties: {a: {type: array, maxItems: 1, items: {type: string, maxLength: 1}}, b: {type: string, format: date}, c: {type: string, enum: [x]}}}`, nil},

	{"rule-message-missing", "none", `{type: object, x-kubernetes-validations: [{rule: "true"}]}`, []string{"without a message"}},
	{"rule-message-missing", "one", `{type: object, x-kubernetes-validations: [{rule: "true", message: x}, {rule: "true", messageExpression: "'x'"}]}`, nil},

	{"immutable-optional", "on an optional field", `{type: object, properties: {a: {type: string, x-kubernetes-validations: [{rule: self == oldSelf}]}}}`, []string{"a is optional"}},
	{"immutable-optional", "the other way round", `{type: object, properties: {a: {type: string, x-kubernetes-validations: [{rule: oldSelf == self}]}}}`, []string{"a is optional"}},
	{"immutable-optional", "required", `{type: object, required: [a], properties: {a: {type: string, x-kubernetes-validations: [{rule: self == oldSelf}]}}}`, nil},
	{"immutable-optional", "with a default", `{type: object, properties: {a: {type: string, default: x, x-kubernetes-validations: [{rule: self == oldSelf}]}}}`, nil},
	{"immutable-optional", "the parent is immutable", `{type: object, x-kubernetes-validations: [{rule: self == oldSelf}], properties: {a: {type: string, x-kubernetes-validations: [{rule: self == oldSelf}]}}}`, nil},
	{"immutable-optional", "the parent watches", `{type: object, x-kubernetes-validations: [{rule: "!has(oldSelf.a) || has(self.a)"}], properties: {a: {type: string, x-kubernetes-validations: [{rule: self == oldSelf}]}}}`, nil},

	{"union-as-rule", "exclusive or", `{type: object, properties: {a: {type: string}, b: {type: string}}, x-kubernetes-validations: [{rule: has(self.a) != has(self.b)}]}`, []string{"a union of a, b"}},
	{"union-as-rule", "counted", `{type: object, properties: {a: {type: string}, b: {type: string}, c: {type: string}}, x-kubernetes-validations: [{rule: "(has(self.a) ? 1 : 0) + (has(self.b) ? 1 : 0) + (has(self.c) ? 1 : 0) <= 1"}]}`, []string{"a union of a, b, c"}},
	{"union-as-rule", "filtered", `{type: object, properties: {a: {type: string}, b: {type: string}}, x-kubernetes-validations: [{rule: "[has(self.a), has(self.b)].filter(x, x).size() == 1"}]}`, []string{"a union of a, b"}},
	{"union-as-rule", "exists_one", `{type: object, properties: {a: {type: string}, b: {type: string}}, x-kubernetes-validations: [{rule: "[has(self.a), has(self.b)].exists_one(x, x)"}]}`, []string{"a union of a, b"}},
	{"union-as-rule", "discriminated", `{type: object, required: [type], properties: {type: {type: string}, a: {type: string}, b: {type: string}}, x-kubernetes-validations: [{rule: "self.type == 'A' ? has(self.a) : !has(self.a)"}, {rule: "has(self.type) && self.type == 'B' ? has(self.b) : !has(self.b)"}]}`,
		[]string{"a union of a, b with the discriminator type"}},
	{"union-as-rule", "by equality", `{type: object, required: [type], properties: {type: {type: string}, a: {type: string}, b: {type: string}}, x-kubernetes-validations: [{rule: "has(self.a) == (self.type == 'A')"}, {rule: "self.type != 'B' ? !has(self.b) : has(self.b)"}]}`, []string{"a union of a, b with the discriminator type"}},
	{"union-as-rule", "one member", `{type: object, required: [type], properties: {type: {type: string}, a: {type: string}}, x-kubernetes-validations: [{rule: "has(self.a) == (self.type == 'A')"}]}`, nil},
	{"union-as-rule", "the other values", `{type: object, required: [type], properties: {type: {type: string}, a: {type: string}, b: {type: string}}, x-kubernetes-validations: [{rule: "self.type != 'A' ? has(self.a) : !has(self.a)"}, {rule: "has(self.b) == (self.type != 'A')"}]}`, nil},
	{"union-as-rule", "at least one", `{type: object, properties: {a: {type: string}, b: {type: string}}, x-kubernetes-validations: [{rule: "1 <= (has(self.a) ? 1 : 0) + (has(self.b) ? 1 : 0)"}]}`, nil},
	{"union-as-rule", "one is absent", `{type: object, properties: {a: {type: string}, b: {type: string}, c: {type: string}}, x-kubernetes-validations: [{rule: "[has(self.a), has(self.b), has(self.c)].exists_one(x, !x)"}, {rule: "[has(self.a), has(self.b), has(self.c)].filter(x, !x).size() == 1"}, {rule: "[has(self.a), has(self.b)].map(x, x).size() == 1"}]}`, nil},
	{"union-as-rule", "something else", `{type: object, properties: {a: {type: string}, b: {type: string}}, x-kubernetes-validations: [{rule: has(self.a) == has(self.b)}, {rule: "has(self.a) || has(self.b)"}, {rule: "has(self.a) ? has(self.b) : true"}]}`, nil},

	{"missing-bounds", "a search in a search", `{type: object, properties: {a: {type: array, items: {type: string}}}, x-kubernetes-validations: [{rule: "self.a.all(x, self.a.exists_one(y, x == y))"}]}`, []string{"a has no maxItems"}},
	{"missing-bounds", "bounded", `{type: object, properties: {a: {type: array, maxItems: 10, items: {type: string, maxLength: 10}}}, x-kubernetes-validations: [{rule: "self.a.all(x, self.a.exists_one(y, x == y))"}]}`, nil},
	{"missing-bounds", "cheap", `{type: object, properties: {a: {type: string}}, x-kubernetes-validations: [{rule: "!has(self.a) || self.a != 'x'"}]}`, nil},

	{"column-unknown-path", "a misspelled name", columns(`{name: Phase, type: string, jsonPath: .status.phaze}`), []string{"column Phase is always empty: the schema has no field .status.phaze"}},
	{"column-unknown-path", "a field of a list", columns(`{name: Ready, type: string, jsonPath: .status.conditions.ready}`), []string{"a value of type array has no field ready"}},
	{"column-unknown-path", "an item of an object", columns(`{name: X, type: string, jsonPath: ".status[0].x"}`), []string{"has type object and no items"}},
	{"column-unknown-path", "paths that lead somewhere", columns(`{name: A, type: string, jsonPath: .status.phase}`, `{name: B, type: date, jsonPath: .metadata.creationTimestamp}`,
		`{name: C, type: string, jsonPath: ".status.conditions[?(@.type=='Ready')].status"}`, `{name: D, type: string, jsonPath: ".status.labels['x.y/z']"}`, `{name: E, type: string, jsonPath: ".status.conditions[*].type"}`,
		`{name: F, type: string, jsonPath: .status.any.thing}`, `{name: G, type: string, jsonPath: ".status.labels.x\\.y"}`, `{name: H, type: string, jsonPath: ..phase}`), nil},
	{"column-type", "a text as a number", columns(`{name: Phase, type: integer, jsonPath: .status.phase}`), []string{"it has type integer, but its field has type string"}},
	{"column-type", "an object as a date", columns(`{name: Labels, type: date, jsonPath: .status.labels}`), []string{"its field has type object"}},
	{"column-type", "types that fit", columns(`{name: A, type: string, jsonPath: .status.replicas}`, `{name: B, type: number, jsonPath: .status.replicas}`, `{name: C, type: date, jsonPath: .status.phase}`), nil},

	{"scale-unknown-path", "a misspelled name", scale(".spec.replica", ".status.replicas", ".status.phase"), []string{".spec.replica leads to no field"}},
	{"scale-unknown-path", "right", scale(".spec.replicas", ".status.replicas", ".status.phase"), nil},
	{"scale-type", "a number as the selector", scale(".spec.replicas", ".status.phase", ".status.replicas"), []string{"a field of type integer", "a field of type string"}},
	{"scale-type", "right", scale(".spec.replicas", ".status.replicas", ".status.phase"), nil},

	{"status-without-subresource", "not enabled", whole(`{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, properties: {status: {type: object, properties: {a: {type: string}}}}}}}`), []string{"users can write status"}},
	{"status-without-subresource", "enabled", `{type: object, properties: {status: {type: object, properties: {a: {type: string}}}}}`, nil},
	{"status-unspecified", "no status", `{type: object, properties: {spec: {type: object}}}`, []string{"the schema has no status"}},
	{"status-unspecified", "an empty status", `{type: object, properties: {status: {type: object}}}`, []string{"status has no fields"}},
	{"status-unspecified", "preserved", `{type: object, x-kubernetes-preserve-unknown-fields: true}`, nil},
	{"status-unspecified", "specified", `{type: object, properties: {status: {type: object, properties: {a: {type: string}}}}}`, nil},

	{"version-unused", "neither served nor stored", whole(`{name: v1, served: true, storage: true}`, `{name: v1beta1, served: false, storage: false}`), []string{"version v1beta1"}},
	{"version-unused", "stored", whole(`{name: v1, served: true, storage: false}`, `{name: v1beta1, served: false, storage: true}`), nil},

	{"versions-lose-fields", "both ways", whole(
		`{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {a: {type: string}, new: {type: string}}}}}}}`,
		`{name: v1beta1, served: true, storage: false, schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {a: {type: string}, old: {type: array, items: {type: string}}}}}}}}`),
		[]string{"values that clients write to .spec.old in v1beta1 are lost", "removes .spec.new"}},
	{"versions-lose-fields", "not served", whole(
		`{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, properties: {a: {type: string}}}}}`,
		`{name: v1beta1, served: false, storage: false, schema: {openAPIV3Schema: {type: object, properties: {b: {type: string}}}}}`), nil},
	{"versions-lose-fields", "preserved, and the same", whole(
		`{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true, properties: {l: {type: array, items: {type: object, properties: {x: {type: string}}}}}}}}`,
		`{name: v1beta1, served: true, storage: false, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true, properties: {b: {type: string}, l: {type: array, items: {type: object, properties: {x: {type: string}}}}}}}}`), nil},
	{"versions-lose-fields", "below a list", whole(
		`{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, properties: {l: {type: array, items: {type: object, properties: {x: {type: string}}}}}}}}`,
		`{name: v1beta1, served: true, storage: false, schema: {openAPIV3Schema: {type: object, properties: {l: {type: array, items: {type: object, properties: {z: {type: string}}}}}}}}`),
		[]string{".l[].z in v1beta1 are lost", "removes .l[].x"}},
	{"versions-lose-fields", "a webhook converts", strings.Replace(whole(
		`{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, properties: {a: {type: string}}}}}`,
		`{name: v1beta1, served: true, storage: false, schema: {openAPIV3Schema: {type: object, properties: {b: {type: string}}}}}`), "spec:", "spec:\n  conversion: {strategy: Webhook}", 1), nil},
}

func whole(versions ...string) string {
	return "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nspec:\n  versions: [" + strings.Join(versions, ", ") + "]"
}

const columnSchema = `{type: object, properties: {spec: {type: object, properties: {replicas: {type: integer}}}, status: {type: object, properties: {replicas: {type: integer}, phase: {type: string}, labels: {type: object, additionalProperties: {type: string}}, any: {type: object, x-kubernetes-preserve-unknown-fields: true}, conditions: {type: array, items: {type: object, properties: {type: {type: string}, status: {type: string}}}}}}}}`

func columns(list ...string) string {
	return whole(`{name: v1, served: true, storage: true, additionalPrinterColumns: [` + strings.Join(list, ", ") + `], schema: {openAPIV3Schema: ` + columnSchema + `}}`)
}

func scale(spec, status, selector string) string {
	return whole(`{name: v1, served: true, storage: true, subresources: {scale: {specReplicasPath: ` + spec + `, statusReplicasPath: ` + status + `, labelSelectorPath: ` + selector + `}}, schema: {openAPIV3Schema: ` + columnSchema + `}}`)
}

func TestChecks(t *testing.T) {
	tried := map[finding.ID][2]bool{"rule-unguarded-optional": {true, true}} // TestUnguarded
	for _, c := range cases {
		found := of(t, c.check, c.text)
		ok := len(found) == len(c.want)
		for i := 0; ok && i < len(found); i++ {
			ok = strings.Contains(found[i].Detail, c.want[i])
		}
		if !ok {
			t.Errorf("%s, %s: found %v, want %q", c.check, c.name, found, c.want)
		}
		seen := tried[c.check]
		seen[min(len(c.want), 1)] = true
		tried[c.check] = seen
	}
	for _, r := range Checks {
		if tried[r.ID] != [2]bool{true, true} {
			t.Errorf("%s has no example, or no counterexample", r.ID)
		}
	}
}
