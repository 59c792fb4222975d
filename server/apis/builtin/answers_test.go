package builtin

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

// TestQuotaStatusKeepsMetadata: a writer of the status could delete the quota by an owner.
func TestQuotaStatusKeepsMetadata(t *testing.T) {
	e := start(t)
	e.Do("POST", "/api/v1/namespaces", `{"metadata":{"name":"n"}}`).Is(201)
	e.Do("POST", "/api/v1/namespaces/n/resourcequotas", `{"metadata":{"name":"q"}}`).Is(201)
	const stolen = `{"metadata":{"name":"q","labels":{"a":"b"},"finalizers":["x.io/y"],"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"none","uid":"u"}]},"status":{"hard":{"pods":"1"}}}`
	e.Patch("merge", "/api/v1/namespaces/n/resourcequotas/q/status", stolen).Is(200)
	a := e.Do("GET", "/api/v1/namespaces/n/resourcequotas/q", "").Is(200).Has("status.hard", map[string]any{"pods": "1"})
	for _, field := range []string{"metadata.labels", "metadata.finalizers", "metadata.ownerReferences"} {
		if got := a.At(field); got != nil {
			t.Errorf("%s is %v", field, got)
		}
	}
}

// TestPatchWithoutVersion: the version is the one of the path.
func TestPatchWithoutVersion(t *testing.T) {
	e := start(t)
	e.Do("POST", "/api/v1/namespaces", `{"metadata":{"name":"n"}}`).Is(201)
	e.Do("POST", "/api/v1/namespaces/n/configmaps", `{"metadata":{"name":"c"},"data":{"a":"1"}}`).Is(201)
	e.Patch("merge", "/api/v1/namespaces/n/configmaps/c?fieldValidation=Strict", `{"apiVersion":null,"data":{"b":"2"}}`).Is(200)
	e.Patch("json", "/api/v1/namespaces/n/configmaps/c?fieldValidation=Strict", `[{"op":"remove","path":"/apiVersion"},{"op":"add","path":"/data/c","value":"3"}]`).Is(200)
	e.Do("GET", "/api/v1/namespaces/n/configmaps/c", "").Is(200).Has("apiVersion", "v1").Has("kind", "ConfigMap").Has("data", map[string]any{"a": "1", "b": "2", "c": "3"})
}

// TestAdminAccess: only labelled namespaces have claims with admin access to devices.
func TestAdminAccess(t *testing.T) {
	e := start(t, slices.Concat(Standard(), Data())...)
	const (
		spec    = `{"devices":{"requests":[{"name":"x","exactly":{"deviceClassName":"c"}},{"name":"a","exactly":{"deviceClassName":"c","adminAccess":true}}]}}`
		refused = "spec.devices.requests[1].adminAccess: Forbidden: admin access to devices requires the `resource.kubernetes.io/admin-access: true` label on the containing namespace"
		base    = "/apis/resource.k8s.io/v1/namespaces/n/"
		granted = `{"status":{"allocation":{"devices":{"results":[{"request":"a","driver":"d.e","pool":"p","device":"d","adminAccess":true}]}}}}`
	)
	e.Do("POST", "/api/v1/namespaces", `{"metadata":{"name":"n","labels":{"resource.kubernetes.io/admin-access":"True"}}}`).Is(201)
	e.Do("POST", base+"resourceclaims", `{"metadata":{"name":"c"},"spec":`+spec+`}`).Is(422).Mentions(refused)
	e.Do("POST", base+"resourceclaimtemplates", `{"metadata":{"name":"t"},"spec":{"spec":`+spec+`}}`).Is(422).Mentions(refused)
	e.Patch("merge", "/api/v1/namespaces/n", `{"metadata":{"labels":{"resource.kubernetes.io/admin-access":"true"}}}`).Is(200)
	e.Do("POST", base+"resourceclaims", `{"metadata":{"name":"c"},"spec":`+spec+`}`).Is(201)
	e.Do("POST", base+"resourceclaimtemplates", `{"metadata":{"name":"t"},"spec":{"spec":`+spec+`}}`).Is(201)
	e.Patch("merge", "/api/v1/namespaces/n", `{"metadata":{"labels":{"resource.kubernetes.io/admin-access":null}}}`).Is(200)
	e.Patch("merge", base+"resourceclaims/c", `{"metadata":{"labels":{"a":"b"}}}`).Is(200)
	e.Patch("merge", base+"resourceclaims/c/status", granted).Is(422).Mentions("status.allocation.devices.results[0].adminAccess: Forbidden")
	e.Patch("merge", "/api/v1/namespaces/n", `{"metadata":{"labels":{"resource.kubernetes.io/admin-access":"true"}}}`).Is(200)
	e.Patch("merge", base+"resourceclaims/c/status", granted).Is(200)
}

// TestAnswersOfKubernetes has requests that kube-apiserver v1.37.1 was asked.
func TestAnswersOfKubernetes(t *testing.T) {
	e := start(t, slices.Concat(Standard(), Events(0), Roles(), Data())...)
	e.Do("POST", "/api/v1/namespaces", `{"metadata":{"name":"n"}}`).Is(201)
	const core, revisions, rules = "/api/v1/namespaces/n/", "/apis/apps/v1/namespaces/n/controllerrevisions", "/apis/resource.k8s.io/v1/devicetaintrules"

	// The data of a revision is compared byte for byte.
	e.Do("POST", revisions, `{"metadata":{"name":"r"},"data":{"a":1,"b":2},"revision":1}`).Is(201)
	e.Do("PUT", revisions+"/r", `{"metadata":{"name":"r"},"data":{"b":2,"a":1},"revision":1}`).Is(422).Mentions(`data: Invalid value: {"b":2,"a":1}: field is immutable`)
	e.Do("PUT", revisions+"/r", `{"metadata":{"name":"r"},"data":{"a":1,"b":2},"revision":2}`).Is(200)
	e.Patch("merge", revisions+"/r", `{"revision":3}`).Is(200)

	// A pod is bound to what may be a node.
	e.Do("POST", core+"pods/none/binding", `{"metadata":{"name":"none"},"target":{"kind":"Node","name":"Upper"}}`).Is(500).Mentions(`target.name: Invalid value: "Upper"`)

	// The prefix of a role's name is validated as a name, on updates, too.
	roles := "/apis/rbac.authorization.k8s.io/v1/namespaces/n/roles"
	e.Do("POST", roles, `{"metadata":{"generateName":".."}}`).Is(422).Mentions("metadata.generateName: Invalid value")
	e.Do("POST", roles, `{"metadata":{"name":"r","generateName":"Upper-"}}`).Is(201)
	e.Patch("merge", roles+"/r", `{"metadata":{"generateName":".."}}`).Is(422).Mentions("metadata.generateName: Invalid value")

	// Updates of taint rules say which object they are about.
	const rule = `"spec":{"deviceSelector":{"driver":"a.b"},"taint":{"key":"k","effect":"NoSchedule"}}}`
	e.Do("POST", rules, `{"metadata":{"name":"t"},`+rule).Is(201)
	e.Do("PUT", rules+"/t", `{"metadata":{"name":"t"},`+rule).Is(422).Mentions("metadata.resourceVersion: Invalid value: 0: must be specified for an update")

	// Finalizers of events have domains in the newer group only.
	e.Do("POST", core+"events", `{"metadata":{"name":"e","finalizers":["plain"]},"involvedObject":{"namespace":"n"}}`).Is(201)
	e.Patch("merge", "/apis/events.k8s.io/v1/namespaces/n/events/e", `{"metadata":{"labels":{"a":"b"}}}`).Is(422).Mentions("name is neither a standard finalizer name nor is it fully qualified")

	// The generation of endpoint slices counts changes of fields that are dropped.
	slice := `{"metadata":{"name":"s"},"addressType":"IPv4","endpoints":[{"addresses":["1.2.3.4"]`
	e.Do("POST", "/apis/discovery.k8s.io/v1/namespaces/n/endpointslices", slice+`}]}`).Is(201).Has("metadata.generation", 1.0)
	e.Do("PUT", "/apis/discovery.k8s.io/v1/namespaces/n/endpointslices/s", slice+`,"deprecatedTopology":{"a":"b"}}]}`).Is(200).Has("metadata.generation", 2.0)
}

// TestAppliedOwnership has writes whose managed fields or labels depend on the way of writing.
func TestAppliedOwnership(t *testing.T) {
	e := start(t, slices.Concat(Standard(), Data())...)
	e.Do("POST", "/api/v1/namespaces", `{"metadata":{"name":"n"}}`).Is(201)

	// An applied Job has the labels of its pods.
	const jobs = "/apis/batch/v1/namespaces/n/jobs/"
	job := func(metadata string) string {
		return `{"apiVersion":"batch/v1","kind":"Job","metadata":{` + metadata + `},"spec":{"template":{"metadata":{"labels":{"app":"a"}},"spec":{"restartPolicy":"Never","containers":[{"name":"c","image":"i"}]}}}}`
	}
	if labels, _ := e.Patch("apply", jobs+"plain?fieldManager=m", job(`"name":"plain"`)).Is(201).At("metadata.labels").(map[string]any); labels["job-name"] != "plain" {
		t.Errorf("labels of a Job that was applied without any: %v", labels)
	}
	if labels, _ := e.Patch("apply", jobs+"own?fieldManager=m", job(`"name":"own","labels":{"app":"a"}`)).Is(201).At("metadata.labels").(map[string]any); labels["job-name"] != nil {
		t.Errorf("labels of a Job that was applied with some: %v", labels)
	}

	// A manager that applies a status through another subresource owns it, though it is not written.
	e.Do("POST", "/api/v1/namespaces/n/pods", `{"metadata":{"name":"p"},"spec":{"containers":[{"name":"c","image":"i"}]}}`).Is(201)
	for _, part := range []string{"resize", "ephemeralcontainers"} {
		a := e.Patch("apply", "/api/v1/namespaces/n/pods/p/"+part+"?fieldManager="+part+"&force=true", `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"},"status":{"phase":"Running"}}`).Is(200).Has("status.phase", "Pending")
		if managed, _ := json.Marshal(a.At("metadata.managedFields")); !strings.Contains(string(managed), `"fieldsV1":{"f:status":{"f:phase":{}}},"manager":"`+part+`"`) {
			t.Errorf("%s: %s", part, managed)
		}
	}
}
