package lint

import "github.com/espalier-dev/espalier/finding"

// CheckInfo describes a check of this package.
type CheckInfo struct {
	finding.Check
	Default bool // on unless disabled
}

// The sources that several checks share.
const (
	celKEP   = "KEP-2876 validation rules"
	docs     = "Kubernetes documentation, Custom Resources"
	upstream = "apiextensions.k8s.io/v1"
)

// Checks is the table of all checks. The identifiers are stable: programs select
// and suppress findings by them.
var Checks = []CheckInfo{
	{finding.New("default-unreachable", finding.Warning, "An optional object whose fields all have defaults should have a default itself. Without one, its fields get no defaults when the object is omitted.", "kubernetes-sigs/controller-tools#622, kubernetes/kubernetes#113110"), true},
	{finding.New("default-conditional", finding.Info, "Defaults below an optional object apply only if the object is present.", "kubernetes/kubernetes#129456"), false},
	{finding.New("default-required", finding.Info, "A field with a default should not be required. The API server fills in the default before it validates.", "kubernetes-sigs/controller-tools#622"), false},
	{finding.New("default-nullable", finding.Info, "A nullable field with a default has three states: if it is omitted it gets the default, and null stays null.", docs), false},
	{finding.New("embedded-metadata-bare", finding.Warning, "metadata below the root should specify its fields. Otherwise the API server prunes them all.", "kubernetes/kubernetes#103739, kubernetes-sigs/controller-tools#448"), true},
	{finding.New("payload-pruned", finding.Warning, "An object for arbitrary data should specify fields, be a map, or preserve unknown fields. Otherwise the API server prunes all its content.", "KEP-2332 pruning"), true},
	{finding.New("object-empty", finding.Info, "The API server prunes all content of an object without specified fields.", "KEP-2332 pruning"), false},
	{finding.New("required-unspecified", finding.Warning, "The schema must specify every required field. Otherwise the API server prunes the field, and no object is valid.", "KEP-2332 pruning"), true},
	{finding.New("bounds-contradict", finding.Warning, "A lower bound must not be above the upper bound. Otherwise no value is valid.", upstream), true},
	{finding.New("keyword-without-effect", finding.Warning, "A keyword should be next to the type that it restricts. It has no effect on values of other types.", "kubernetes-sigs/controller-tools#342, kubernetes-sigs/controller-tools#953, openshift/api#2978"), true},
	{finding.New("enum-duplicate", finding.Info, "An enum should list each value once.", upstream), true},
	{finding.New("pattern-vacuous", finding.Warning, "A pattern should reject some strings. A pattern that matches the empty string and has no $ at its end matches every string.", upstream), true},
	{finding.New("pattern-unanchored", finding.Info, "A pattern that ends in a repetition should end with $. Otherwise it accepts any characters after the match.", upstream), true},
	{finding.New("additional-properties-any", finding.Warning, "Map values should have a schema. With additionalProperties: true, the API server prunes all fields of objects in the map.", "KEP-2335 structural schemas"), true},
	{finding.New("list-type-missing", finding.Info, "A list of objects with a name should have x-kubernetes-list-type: map. Otherwise server-side apply replaces the whole list.", "KEP-555 server-side apply, list and map topology"), false},
	{finding.New("description-missing", finding.Info, "Every field should have a description. kubectl explain shows it.", docs), false},
	{finding.New("unbounded", finding.Info, "Lists, maps and strings should have an upper bound.", "KEP-2876 validation rules, resource constraints"), false},

	{finding.New("rule-unguarded-optional", finding.Warning, "A CEL rule should test an optional field with has() before it reads the field. Otherwise it fails with \"no such key\" for objects without the field.", "splunk/splunk-operator#1881, crossplane-contrib/provider-http#164"), true},
	{finding.New("rule-message-missing", finding.Info, "A CEL rule should have a message. Otherwise users see the expression.", celKEP), false},
	{finding.New("immutable-optional", finding.Warning, "A CEL rule on an optional field does not make it immutable. A client can remove the field and add it again with another value.", "KEP-2876 validation rules, gardener/etcd-druid#1048"), true},
	{finding.New("union-as-rule", finding.Info, "A union should use oneOf, which tools understand, instead of CEL rules.", "KEP-2335 structural schemas, unions; KEP-1027"), true},
	{finding.New("missing-bounds", finding.Warning, "The estimated cost of a CEL rule should be well below the limit. Add a bound to the values that it reads.", "kubernetes/kubernetes#121162"), true},

	{finding.New("column-unknown-path", finding.Warning, "The jsonPath of a printer column should lead to a field of the schema. Otherwise the column is always empty.", docs), true},
	{finding.New("column-type", finding.Warning, "The type of a printer column should match the type of its field. Otherwise the column is always empty.", docs), true},
	{finding.New("scale-unknown-path", finding.Warning, "The paths of the scale subresource should lead to fields of the schema. Otherwise autoscalers read no value, and the API server prunes what they write.", docs), true},
	{finding.New("scale-type", finding.Warning, "The replica paths of the scale subresource should lead to integers, and labelSelectorPath to a string.", docs), true},
	{finding.New("status-without-subresource", finding.Info, "A resource with status should have the status subresource. It prevents users from writing status and controllers from writing other fields.", docs), true},
	{finding.New("status-unspecified", finding.Warning, "With the status subresource, the schema should specify status. Otherwise the API server prunes all that controllers write to it.", "KEP-2332 pruning"), true},
	{finding.New("version-unused", finding.Info, "A version should be served or stored. Otherwise it has no use.", docs), true},
	{finding.New("versions-lose-fields", finding.Warning, "Without a conversion webhook, all served versions should have the same fields. Objects lose the fields that one version does not specify.", docs), true},
}

// severities has the severity of every rule.
var severities = func() map[finding.ID]finding.Severity {
	m := make(map[finding.ID]finding.Severity, len(Checks))
	for _, r := range Checks {
		m[r.ID] = r.Severity
	}
	return m
}()
