package lint

// Severity tells a definite trap from what is worth knowing.
type Severity uint8

// The severities of findings.
const (
	// Warning findings do not do what their author expects.
	Warning Severity = iota
	// Info findings could be said better, or are right in some places only.
	Info
)

// String returns "warning" or "info".
func (s Severity) String() string {
	if s == Info {
		return "info"
	}
	return "warning"
}

// Rule describes what is looked for.
type Rule struct {
	ID          string // stable
	Severity    Severity
	Default     bool // on unless disabled
	Explanation string
	Source      string // a document, or an issue where people met the trap
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
	{"default-unreachable", Warning, true, "An optional object whose fields all come from defaults has a default itself; without one the defaults below it apply only to those who write the object.", "kubernetes-sigs/controller-tools#622, kubernetes/kubernetes#113110"},
	{"default-conditional", Info, false, "Defaults below an optional object apply only where the object is written.", "kubernetes/kubernetes#129456"},
	{"default-required", Info, false, "A field with a default is not required: the default is filled in before anything is checked.", "kubernetes-sigs/controller-tools#622"},
	{"default-nullable", Info, false, "A nullable field with a default has three states: left out means the default, null stays null.", docs},
	{"embedded-metadata-bare", Warning, true, "metadata below the root specifies its fields, or it is pruned to nothing.", "kubernetes/kubernetes#103739, kubernetes-sigs/controller-tools#448"},
	{"payload-pruned", Warning, true, "An object that is there to carry data specifies fields, is a map or preserves unknown fields; otherwise everything in it is pruned.", "KEP-2332 pruning"},
	{"object-empty", Info, false, "An object without fields is always empty: everything in it is pruned.", "KEP-2332 pruning"},
	{"required-unspecified", Warning, true, "A required field is specified. Otherwise it is pruned and then missing, and no object is valid.", "KEP-2332 pruning"},
	{"bounds-contradict", Warning, true, "A lower bound is not above the upper one; otherwise no value is valid.", upstream},
	{"keyword-without-effect", Warning, true, "A keyword stands beside the type that it restricts. Beside another it restricts nothing.", "kubernetes-sigs/controller-tools#342, kubernetes-sigs/controller-tools#953, openshift/api#2978"},
	{"enum-duplicate", Info, true, "An enum names each value once.", upstream},
	{"pattern-vacuous", Warning, true, "A pattern refuses something. One that matches the empty string and is not anchored at its end matches every string.", upstream},
	{"pattern-unanchored", Info, true, "A pattern that ends in a repetition is anchored with $; otherwise anything may follow.", upstream},
	{"additional-properties-any", Warning, true, "Values of a map have a schema. With additionalProperties: true, objects among them are pruned to nothing.", "KEP-2335 structural schemas"},
	{"list-type-missing", Info, false, "A list of objects that have a name says so with x-kubernetes-list-type: map; otherwise server-side apply replaces it as a whole.", "KEP-555 server-side apply, list and map topology"},
	{"description-missing", Info, false, "Every field has a description: it is what kubectl explain shows.", docs},
	{"unbounded", Info, false, "Lists, maps and strings have an upper bound.", "KEP-2876 validation rules, resource constraints"},

	{"rule-unguarded-optional", Warning, true, "A rule asks whether an optional field is there before it reads it. Otherwise it fails for objects without the field: no such key.", "splunk/splunk-operator#1881, crossplane-contrib/provider-http#164"},
	{"rule-message-missing", Info, false, "A rule has a message; otherwise users are shown the expression.", celKEP},
	{"immutable-optional", Warning, true, "An optional field cannot be made immutable by a rule of its own: who removes it and adds it again has changed it.", "KEP-2876 validation rules, gardener/etcd-druid#1048"},
	{"union-as-rule", Info, true, "A union is declared with x-kubernetes-unions or oneOf, which tools understand, rather than spelled out in rules.", "KEP-2335 structural schemas, unions; KEP-1027"},
	{"missing-bounds", Warning, true, "A rule stays well below the cost limit; a bound on what it reads keeps it there.", "kubernetes/kubernetes#121162"},

	{"column-unknown-path", Warning, true, "The jsonPath of a printer column leads to a field of the schema; otherwise the column is always empty.", docs},
	{"column-type", Warning, true, "The type of a printer column is that of its field; otherwise the column is always empty.", docs},
	{"scale-unknown-path", Warning, true, "The paths of the scale subresource lead to fields of the schema; otherwise autoscalers read nothing and write what is pruned.", docs},
	{"scale-type", Warning, true, "Replicas of the scale subresource are integers, its selector is a string.", docs},
	{"status-without-subresource", Info, true, "A resource with a status has the status subresource, which keeps users from writing it and controllers from writing the rest.", docs},
	{"status-unspecified", Warning, true, "With the status subresource the schema specifies status; otherwise everything that controllers write to it is pruned.", "KEP-2332 pruning"},
	{"version-unused", Info, true, "A version is served or stored; otherwise it is there for nothing.", docs},
	{"versions-lose-fields", Warning, true, "Without a conversion webhook, served versions have the same fields; what one does not specify is lost through it.", docs},
}

// severities has the severity of every rule.
var severities = func() map[string]Severity {
	m := make(map[string]Severity, len(Rules))
	for _, r := range Rules {
		m[r.ID] = r.Severity
	}
	return m
}()
