package rules

import (
	"strings"
	"testing"

	flowv1 "k8s.io/api/flowcontrol/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/apis/flowcontrol/bootstrap"
)

func TestValidateFlowSchemas(t *testing.T) {
	of := func(rules string) string {
		return `{metadata: {name: a}, spec: {priorityLevelConfiguration: {name: l}, rules: [` + rules + `]}}`
	}
	const at = "spec.rules[0]."
	resourceRule := func(said string) string {
		return of(`{subjects: [{kind: User, user: {name: "*"}}], resourceRules: [{` + said + `}]}`)
	}
	urls := func(list string) string {
		return of(`{subjects: [{kind: Group, group: {name: g}}], nonResourceRules: [{verbs: ["*"], nonResourceURLs: ` + list + `}]}`)
	}
	validateAll(t, &FlowSchema, []validationCase{
		{"the least", of(""), nil},
		{"nothing", `{}`, []string{"spec.priorityLevelConfiguration.name: Required value: must reference a priority level"}},
		{"first", `{metadata: {name: a}, spec: {matchingPrecedence: 1, distinguisherMethod: {type: ByMood}, priorityLevelConfiguration: {name: L}}}`, []string{
			"spec.matchingPrecedence: Invalid value: 1: only the schema named 'exempt' may have matchingPrecedence 1",
			`spec.distinguisherMethod.type: Unsupported value: "ByMood": supported values: "ByNamespace", "ByUser"`,
			`spec.priorityLevelConfiguration.name: Invalid value: "L": a lowercase RFC 1123 subdomain…`,
		}},
		{"negative", `{spec: {matchingPrecedence: -1, priorityLevelConfiguration: {name: l}}}`, []string{"spec.matchingPrecedence: Invalid value: -1: must be a positive value"}},
		{"last", `{spec: {matchingPrecedence: 10001, priorityLevelConfiguration: {name: l}}}`, []string{"spec.matchingPrecedence: Invalid value: 10001: must not be greater than 10000"}},
		{"empty rule", of("{}"), []string{
			"spec.rules[0].subjects: Required value: subjects must contain at least one value",
			"spec.rules[0]: Required value: at least one of resourceRules and nonResourceRules has to be non-empty",
		}},
		{"subjects", of(`{subjects: [{kind: User}, {kind: Group, user: {name: a}, group: {name: a}}, {kind: Robot}, {kind: User, user: {name: ""}},
			{kind: ServiceAccount, serviceAccount: {name: "*"}}, {kind: ServiceAccount, serviceAccount: {name: A, namespace: a.b}}], nonResourceRules: [{verbs: [get], nonResourceURLs: [/]}]}`), []string{
			at + "subjects[0].user: Required value: user is required when subject kind is 'User'",
			at + "subjects[1].user: Forbidden: user is forbidden when subject kind is not 'User'",
			at + `subjects[2].kind: Unsupported value: "Robot": supported values: "Group", "ServiceAccount", "User"`,
			at + "subjects[3].user.name: Required value",
			at + "subjects[4].serviceAccount.namespace: Required value: must specify namespace for service account",
			at + `subjects[5].serviceAccount.name: Invalid value: "A": a lowercase RFC 1123 subdomain…`,
			at + `subjects[5].serviceAccount.namespace: Invalid value: "a.b": …`,
		}},
		{"resources", resourceRule(`verbs: [get, list], apiGroups: ["*"], resources: ["*"], clusterScope: true, namespaces: ["*"]`), nil},
		{"without namespaces", resourceRule(`verbs: [get], apiGroups: [a], resources: [a], clusterScope: true`), nil},
		{"no resources", resourceRule(""), []string{
			at + "resourceRules[0].verbs: Required value: verbs must contain at least one value",
			at + "resourceRules[0].apiGroups: Required value: resource rules must supply at least one api group",
			at + "resourceRules[0].resources: Required value: resource rules must supply at least one resource",
			at + "resourceRules[0].namespaces: Required value: resource rules that are not cluster scoped must supply at least one namespace",
		}},
		{"stars beside others", resourceRule(`verbs: [get, "*"], apiGroups: [a, "*"], resources: [a, "*"], namespaces: [a, "*"]`), []string{
			at + `resourceRules[0].verbs: Invalid value: ["get","*"]: if '*' is present, must not specify other verbs`,
			at + `resourceRules[0].apiGroups: Invalid value: ["a","*"]: if '*' is present, must not specify other api groups`,
			at + `resourceRules[0].resources: Invalid value: ["a","*"]: if '*' is present, must not specify other resources`,
			at + `resourceRules[0].namespaces: Invalid value: ["a","*"]: if '*' is present, must not specify other namespaces`,
		}},
		{"words", resourceRule(`verbs: [eat], apiGroups: [a], resources: [a], namespaces: [A]`), []string{
			at + `resourceRules[0].verbs: Unsupported value: ["eat"]: supported values: "create", "delete", "deletecollection", "get", "list", "patch", "proxy", "update", "watch"`,
			at + `resourceRules[0].namespaces[0]: Invalid value: "A": each member of this list must be '*' or a DNS-1123 label; …`,
		}},
		{"urls", urls(`[/, /a, /a/*, /*]`), nil},
		{"wrong urls", urls(`["", a, /a b, //, /a*, /*/b]`), []string{
			at + `nonResourceRules[0].nonResourceURLs[0]: Invalid value: "": must not be empty`,
			at + `nonResourceRules[0].nonResourceURLs[1]: Invalid value: "a": must start with slash`,
			at + `nonResourceRules[0].nonResourceURLs[2]: Invalid value: "/a b": must not contain white-space`,
			at + `nonResourceRules[0].nonResourceURLs[3]: Invalid value: "//": must not contain double slash`,
			at + `nonResourceRules[0].nonResourceURLs[4]: Invalid value: "/a*": wildcard can only do suffix matching`,
			at + `nonResourceRules[0].nonResourceURLs[5]: Invalid value: "/*/b": wildcard can only do suffix matching`,
		}},
		{"no urls", urls("[]"), []string{at + "nonResourceRules[0].nonResourceURLs: Required value: nonResourceURLs must contain at least one value"}},
		{"all urls and one", urls(`["*", /]`), []string{at + `nonResourceRules[0].nonResourceURLs: Invalid value: ["*","/"]: if '*' is present, must not specify other non-resource URLs`}},
		{"conditions", `{spec: {priorityLevelConfiguration: {name: l}}, status: {conditions: [{type: A}, {type: A}, {}]}}`, []string{
			`status.conditions[1].type: Duplicate value: "A"`, "status.conditions[2].type: Required value: must not be empty",
		}},
	})
}

func TestValidatePriorityLevels(t *testing.T) {
	limited := func(said string) string {
		return `{metadata: {name: a}, spec: {type: Limited, limited: {` + said + `}}}`
	}
	queuing := func(said string) string { return limited("limitResponse: {type: Queue, queuing: {" + said + "}}") }
	validateAll(t, &PriorityLevelConfiguration, []validationCase{
		{"reject", limited("limitResponse: {type: Reject}"), nil},
		{"queue", queuing(""), nil},
		{"nothing", `{}`, []string{"spec.type: Required value"}},
		{"no type", `{metadata: {name: a}, spec: {limited: {limitResponse: {queuing: {queues: -1}}}, exempt: {lendablePercent: 101}}}`, []string{
			"spec.exempt: Forbidden", "spec.limited: Forbidden", "spec.type: Required value",
			"spec.limited.limitResponse.queuing: Forbidden", "spec.limited.limitResponse.type: Required value",
		}},
		{"not exempt", `{metadata: {name: a}, spec: {type: Exempt, limited: {}, exempt: {nominalConcurrencyShares: -1, lendablePercent: 101}}}`, []string{
			`spec.type: Invalid value: "Exempt": must be 'Exempt' if and only if ` + "`name`" + ` is 'exempt'`,
			"spec.exempt.nominalConcurrencyShares: Invalid value: -1: must be a non-negative integer",
			"spec.exempt.lendablePercent: Invalid value: 101: must be between 0 and 100, inclusive",
			"spec.limited: Forbidden", "spec.limited.limitResponse.type: Required value",
		}},
		{"not limited", `{metadata: {name: a}, spec: {type: Limited, exempt: {}}}`, []string{
			"spec.exempt: Forbidden", "spec.limited: Required value",
		}},
		{"numbers", limited("nominalConcurrencyShares: -1, lendablePercent: -1, borrowingLimitPercent: -1, limitResponse: {type: Wait}"), []string{
			"spec.limited.nominalConcurrencyShares: Invalid value: -1: must be a non-negative integer",
			"spec.limited.lendablePercent: Invalid value: -1: must be between 0 and 100, inclusive",
			"spec.limited.borrowingLimitPercent: Invalid value: -1: if specified, must be a non-negative integer",
			`spec.limited.limitResponse.type: Unsupported value: "Wait": supported values: "Queue", "Reject"`,
		}},
		{"rejects no queue", limited("limitResponse: {type: Reject, queuing: {queues: -1}}"), []string{"spec.limited.limitResponse.queuing: Forbidden"}},
		{"queues nowhere", limited("limitResponse: {type: Queue}"), []string{"spec.limited.limitResponse.queuing: Required value"}},
		{"negative queues", queuing("queues: -1, handSize: -1, queueLengthLimit: -1"), []string{
			"spec.limited.limitResponse.queuing.queueLengthLimit: Invalid value: -1: must be positive",
			"spec.limited.limitResponse.queuing.queues: Invalid value: -1: must be positive",
			"spec.limited.limitResponse.queuing.handSize: Invalid value: -1: must be positive",
		}},
		{"too many queues", queuing("queues: 10000001, handSize: 2"), []string{"spec.limited.limitResponse.queuing.queues: Invalid value: 10000001: must not be greater than 10000000"}},
		{"a large hand", queuing("queues: 4, handSize: 5"), []string{"spec.limited.limitResponse.queuing.handSize: Invalid value: 5: should not be greater than queues (4)"}},
		{"conditions", strings.Replace(limited("limitResponse: {type: Reject}"), "spec:", "status: {conditions: [{type: A}, {type: A}, {}]}, spec:", 1), []string{
			`status.conditions[1].type: Duplicate value: "A"`, "status.conditions[2].type: Required value: must not be empty",
		}},
		{"entropy", queuing("queues: 512, handSize: 8"), []string{
			"spec.limited.limitResponse.queuing.handSize: Invalid value: 8: required entropy bits of deckSize 512 and handSize 8 should not be greater than 60",
		}},
	})
}

// Defaulting fills in how requests are queued; an object without it is not valid.
func TestQueuingIsSaid(t *testing.T) {
	complain(t, validateQueuing(field.NewPath("x"), &flowv1.QueuingConfiguration{}),
		"x.queueLengthLimit: Invalid value: 0: must be positive", "x.queues: Invalid value: 0: must be positive", "x.handSize: Invalid value: 0: must be positive")
}

// TestFixedObjects: exempt and catch-all are immutable, except for the concurrency that
// exempt lends.
func TestFixedObjects(t *testing.T) {
	schema := bootstrap.MandatoryFlowSchemaCatchAll.DeepCopy()
	schema.Spec.MatchingPrecedence = 2
	complain(t, FlowSchema.Validate(schema, nil), "spec: Invalid value: …")
	level := bootstrap.MandatoryPriorityLevelConfigurationExempt.DeepCopy()
	*level.Spec.Exempt.LendablePercent = 50
	complain(t, PriorityLevelConfiguration.Validate(level, nil))
	level.Spec.Exempt = nil
	complain(t, PriorityLevelConfiguration.Validate(level, nil))
	level = bootstrap.MandatoryPriorityLevelConfigurationCatchAll.DeepCopy()
	*level.Spec.Limited.NominalConcurrencyShares = 6
	complain(t, PriorityLevelConfiguration.Validate(level, nil), "spec: Invalid value: …")
	level.Name = "exempt"
	complain(t, PriorityLevelConfiguration.Validate(level, nil), `spec.type: Invalid value: "Limited": must be 'Exempt' if and only if `+"`name`"+` is 'exempt'`, "spec: Invalid value: …")
}

// bootstrapObjects are all that a server makes for itself.
func bootstrapObjects() (schemas []*flowv1.FlowSchema, levels []*flowv1.PriorityLevelConfiguration) {
	schemas = append(append(schemas, bootstrap.MandatoryFlowSchemas...), bootstrap.SuggestedFlowSchemas...)
	levels = append(append(levels, bootstrap.MandatoryPriorityLevelConfigurations...), bootstrap.SuggestedPriorityLevelConfigurations...)
	return schemas, levels
}

func TestBootstrapObjectsAreValidAndComplete(t *testing.T) {
	schemas, levels := bootstrapObjects()
	if len(schemas) < 10 || len(levels) < 8 {
		t.Fatalf("there are %d schemas and %d levels", len(schemas), len(levels))
	}
	unchanged := func(r *Rules, obj runtime.Object) {
		before := obj.DeepCopyObject()
		r.Default(obj)
		if !equality.Semantic.DeepEqual(before, obj) {
			t.Errorf("defaults change %v", obj)
		}
		complain(t, r.Validate(obj, nil))
	}
	for _, s := range schemas {
		unchanged(&FlowSchema, s.DeepCopy())
	}
	for _, l := range levels {
		unchanged(&PriorityLevelConfiguration, l.DeepCopy())
	}
}

// Of the levels that every server has, only what exempt requests lend can change.
func TestFixedLevels(t *testing.T) {
	for name, why := range map[string]string{"exempt": "spec of 'exempt' except the 'spec.exempt' field must equal the fixed value", "catch-all": "spec of 'catch-all' must equal the fixed value"} {
		level := &flowv1.PriorityLevelConfiguration{}
		level.Name = name
		level.Spec.Type = "Other"
		errs := validateFixedLevel(nil, level)
		if len(errs) != 1 || errs[0].Detail != why {
			t.Errorf("%s: %v", name, errs)
		}
		level.Name = "other"
		complain(t, validateFixedLevel(nil, level))
	}
}
