package lint

import "github.com/espalier-dev/espalier/finding"

// Rule is a check of this package.
type Rule struct {
	finding.Check
	Default bool // on unless disabled
}

// The sources that several rules share.
const (
	celKEP   = "KEP-2876 validation rules"
	docs     = "Kubernetes documentation, Custom Resources"
	upstream = "apiextensions.k8s.io/v1"
)

// Rules is the table of all rules. The identifiers are stable: programs select
// and suppress findings by them.
var Rules = []Rule{
	{finding.New("default-unreachable", finding.Warning, "An optional object whose fields all come from defaults has a default itself; without one the defaults below it apply only to those who write the object.", "kubernetes-sigs/controller-tools#622, kubernetes/kubernetes#113110"), true},
	{finding.New("default-conditional", finding.Info, "Defaults below an optional object apply only where the object is written.", "kubernetes/kubernetes#129456"), false},
	{finding.New("default-required", finding.Info, "A field with a default is not required: the default is filled in before anything is checked.", "kubernetes-sigs/controller-tools#622"), false},
	{finding.New("default-nullable", finding.Info, "A nullable field with a default has three states: left out means the default, null stays null.", docs), false},
	{finding.New("embedded-metadata-bare", finding.Warning, "metadata below the root specifies its fields, or it is pruned to nothing.", "kubernetes/kubernetes#103739, kubernetes-sigs/controller-tools#448"), true},
	{finding.New("payload-pruned", finding.Warning, "An object that is there to carry data specifies fields, is a map or preserves unknown fields; otherwise everything in it is pruned.", "KEP-2332 pruning"), true},
	{finding.New("object-empty", finding.Info, "An object without fields is always empty: everything in it is pruned.", "KEP-2332 pruning"), false},
	{finding.New("required-unspecified", finding.Warning, "A required field is specified. Otherwise it is pruned and then missing, and no object is valid.", "KEP-2332 pruning"), true},
	{finding.New("bounds-contradict", finding.Warning, "A lower bound is not above the upper one; otherwise no value is valid.", upstream), true},
	{finding.New("keyword-without-effect", finding.Warning, "A keyword stands beside the type that it restricts. Beside another it restricts nothing.", "kubernetes-sigs/controller-tools#342, kubernetes-sigs/controller-tools#953, openshift/api#2978"), true},
	{finding.New("enum-duplicate", finding.Info, "An enum names each value once.", upstream), true},
	{finding.New("pattern-vacuous", finding.Warning, "A pattern refuses something. One that matches the empty string and is not anchored at its end matches every string.", upstream), true},
	{finding.New("pattern-unanchored", finding.Info, "A pattern that ends in a repetition is anchored with $; otherwise anything may follow.", upstream), true},
	{finding.New("additional-properties-any", finding.Warning, "Values of a map have a schema. With additionalProperties: true, objects among them are pruned to nothing.", "KEP-2335 structural schemas"), true},
	{finding.New("list-type-missing", finding.Info, "A list of objects that have a name says so with x-kubernetes-list-type: map; otherwise server-side apply replaces it as a whole.", "KEP-555 server-side apply, list and map topology"), false},
	{finding.New("description-missing", finding.Info, "Every field has a description: it is what kubectl explain shows.", docs), false},
	{finding.New("unbounded", finding.Info, "Lists, maps and strings have an upper bound.", "KEP-2876 validation rules, resource constraints"), false},

	{finding.New("rule-unguarded-optional", finding.Warning, "A rule asks whether an optional field is there before it reads it. Otherwise it fails for objects without the field: no such key.", "splunk/splunk-operator#1881, crossplane-contrib/provider-http#164"), true},
	{finding.New("rule-message-missing", finding.Info, "A rule has a message; otherwise users are shown the expression.", celKEP), false},
	{finding.New("immutable-optional", finding.Warning, "An optional field cannot be made immutable by a rule of its own: who removes it and adds it again has changed it.", "KEP-2876 validation rules, gardener/etcd-druid#1048"), true},
	{finding.New("union-as-rule", finding.Info, "A union is declared with x-kubernetes-unions or oneOf, which tools understand, rather than spelled out in rules.", "KEP-2335 structural schemas, unions; KEP-1027"), true},
	{finding.New("missing-bounds", finding.Warning, "A rule stays well below the cost limit; a bound on what it reads keeps it there.", "kubernetes/kubernetes#121162"), true},

	{finding.New("column-unknown-path", finding.Warning, "The jsonPath of a printer column leads to a field of the schema; otherwise the column is always empty.", docs), true},
	{finding.New("column-type", finding.Warning, "The type of a printer column is that of its field; otherwise the column is always empty.", docs), true},
	{finding.New("scale-unknown-path", finding.Warning, "The paths of the scale subresource lead to fields of the schema; otherwise autoscalers read nothing and write what is pruned.", docs), true},
	{finding.New("scale-type", finding.Warning, "Replicas of the scale subresource are integers, its selector is a string.", docs), true},
	{finding.New("status-without-subresource", finding.Info, "A resource with a status has the status subresource, which keeps users from writing it and controllers from writing the rest.", docs), true},
	{finding.New("status-unspecified", finding.Warning, "With the status subresource the schema specifies status; otherwise everything that controllers write to it is pruned.", "KEP-2332 pruning"), true},
	{finding.New("version-unused", finding.Info, "A version is served or stored; otherwise it is there for nothing.", docs), true},
	{finding.New("versions-lose-fields", finding.Warning, "Without a conversion webhook, served versions have the same fields; what one does not specify is lost through it.", docs), true},
}

// severities has the severity of every rule.
var severities = func() map[finding.ID]finding.Severity {
	m := make(map[finding.ID]finding.Severity, len(Rules))
	for _, r := range Rules {
		m[r.ID] = r.Severity
	}
	return m
}()
