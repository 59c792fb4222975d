package rules

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	apiregistrationv1 "github.com/espalier-dev/espalier/crd/apiregistration/v1"
)

func TestValidateAPIServices(t *testing.T) {
	const good = "group: a.b, version: v1, groupPriorityMinimum: 1, versionPriority: 1"
	of := func(name, said string) string {
		return "{metadata: {name: " + name + "}, spec: {" + said + "}}"
	}
	const named = "must be `spec.version+\".\"+spec.group`: \"v1.a.b\""
	validateAll(t, &APIService, []validationCase{
		{"a local one", of("v1.a.b", good), nil},
		{"the highest priorities", of("v1.a.b", "group: a.b, version: v1, groupPriorityMinimum: 20000, versionPriority: 1000"), nil},
		{"higher ones", of("v1.a.b", "group: a.b, version: v1, groupPriorityMinimum: 20001, versionPriority: 1001"), []string{
			"spec.groupPriorityMinimum: Invalid value: 20001: must be positive and less than 20000", "spec.versionPriority: Invalid value: 1001: must be positive and less than 1000",
		}},
		{"lower ones", of("v1.a.b", "group: a.b, version: v1"), []string{
			"spec.groupPriorityMinimum: Invalid value: 0: must be positive and less than 20000", "spec.versionPriority: Invalid value: 0: must be positive and less than 1000",
		}},
		{"another name", of("v1.a", good), []string{`metadata.name: Invalid value: "v1.a": ` + named}},
		{"a generated name", "{metadata: {generateName: v1}, spec: {" + good + "}}", []string{`metadata.generateName: Invalid value: "v1": ` + named}},
		{"a name that fits no URL", of("a%b", good), nil}, // metadata is validated elsewhere
		{"the core group", of("v1.", "version: v1, groupPriorityMinimum: 1, versionPriority: 1"), nil},
		{"no group", of("v2.", "version: v2, groupPriorityMinimum: 1, versionPriority: 1"), []string{"spec.group: Required value: only v1 may have an empty group and it better be legacy kube"}},
		{"wrong words", of("V1.A", "group: A, version: V1, groupPriorityMinimum: 1, versionPriority: 1"), []string{
			`spec.group: Invalid value: "A": a lowercase RFC 1123 subdomain…`, `spec.version: Invalid value: "V1": a DNS-1035 label…`,
		}},
		{"a local one with a CA", of("v1.a.b", good+", caBundle: YQ==, insecureSkipTLSVerify: true"), []string{
			`spec.caBundle: Invalid value: "1 bytes": local APIServices may not have a caBundle`, "spec.insecureSkipTLSVerify: Invalid value: true: local APIServices may not have insecureSkipTLSVerify",
		}},
		{"a service", of("v1.a.b", good+", service: {namespace: a, name: b}, caBundle: YQ=="), nil},
		{"a service that is not verified", of("v1.a.b", good+", service: {namespace: a, name: b, port: 65535}, insecureSkipTLSVerify: true"), nil},
		{"both", of("v1.a.b", good+", service: {namespace: a, name: b, port: 1}, caBundle: YQ==, insecureSkipTLSVerify: true"), []string{"spec.insecureSkipTLSVerify: Invalid value: true: may not be true if caBundle is present"}},
		{"half a service", of("v1.a.b", good+", service: {port: 0}"), []string{
			"spec.service.namespace: Required value", "spec.service.name: Required value", "spec.service.port: Invalid value: 0: port is not valid: must be between 1 and 65535, inclusive",
		}},
	})
}

// A server that aggregates nothing says so of each service.
func TestConditionOfAPIServices(t *testing.T) {
	local := read(t, &APIService, "{}").(*apiregistrationv1.APIService)
	local.Status.Conditions = []apiregistrationv1.APIServiceCondition{{Type: "a"}, {Type: "b"}}
	kept := local.DeepCopyObject().(*apiregistrationv1.APIService)
	APIService.Prepare(local, nil)
	if c := local.Status.Conditions; len(c) != 1 || c[0].Type != "Available" || c[0].Status != metav1.ConditionTrue || c[0].Reason != "Local" || c[0].LastTransitionTime.IsZero() {
		t.Errorf("a local one: %+v", c)
	}
	remote := read(t, &APIService, "{spec: {service: {namespace: a, name: b}}}").(*apiregistrationv1.APIService)
	if *remote.Spec.Service.Port != 443 {
		t.Errorf("the port is %d", *remote.Spec.Service.Port)
	}
	APIService.Prepare(remote, local)
	if c := remote.Status.Conditions; len(c) != 1 || c[0].Status != metav1.ConditionFalse || c[0].Reason != "NotAggregated" {
		t.Errorf("one with a service that is new: %+v", c)
	}
	again := local.DeepCopyObject().(*apiregistrationv1.APIService)
	APIService.Prepare(again, kept)
	if c := again.Status.Conditions; len(c) != 2 {
		t.Errorf("one that stays local: %+v", c)
	}
}

func TestStatusOfAPIServices(t *testing.T) {
	o := read(t, &APIService, "{metadata: {labels: {a: b}, annotations: {a: b}, finalizers: [a], ownerReferences: [{name: a}]}, spec: {group: a}, status: {conditions: [{type: x, status: 'True'}, {type: x, status: 'False'}, {type: x, status: Unknown}, {type: x}]}}").(*apiregistrationv1.APIService)
	complain(t, APIService.Status.Validate(o, nil), `status.conditions[3].status: Unsupported value: "": supported values: "True", "False", "Unknown"`)
	APIService.Status.Prepare(o, read(t, &APIService, "{spec: {group: b}}"))
	if o.Spec.Group != "b" || o.Labels != nil || o.Annotations != nil || o.Finalizers != nil || o.OwnerReferences != nil || len(o.Status.Conditions) != 4 {
		t.Errorf("%+v", o)
	}
}
