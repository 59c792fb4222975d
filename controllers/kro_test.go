package controllers_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const kroModule = "github.com/kubernetes-sigs/kro"

// kro makes a CRD out of a graph of resources, checks the graph against the schemas that the server publishes, serves instances of
// it through informers that it starts and stops by itself, and has only the rights that were aggregated for it.
func TestKro(t *testing.T) {
	binary := build(t, "kro", kroModule+"/cmd/controller", "kro")
	all := here.render(t, chart{
		release:   "kro",
		namespace: "kro-system",
		values:    map[string]any{"rbac": map[string]any{"mode": "aggregation"}},
		files:     map[string]string{filepath.Join(moduleDir(t, "kro", kroModule), "helm"): ""},
	})
	all = append(all, parse(t, []byte(`{apiVersion: v1, kind: Namespace, metadata: {name: kro-system}}`))...)
	if missing, want := here.install(t, all), []string{"Deployment.apps"}; !slices.Equal(missing, want) {
		t.Errorf("kro ships kinds that the server does not have: %v, and not %v", missing, want)
	}
	here.may(t, "kro-system", "kro", "update", "leases", "--namespace", "kro-system")
	kro := here.run(t, "kro", binary, []string{"KUBECONFIG=" + here.kubeconfig(t, "kro-system", "kro")},
		fmt.Sprintf("--metrics-bind-address=127.0.0.1:%d", port(t)), fmt.Sprintf("--health-probe-bind-address=127.0.0.1:%d", port(t)),
		"--leader-elect", "--leader-election-namespace=kro-system", "--allow-crd-deletion", "--graceful-shutdown-timeout=5s")

	here.do(t, file(t, "kro", "testdata", "rights.yaml"), "apply", "-f", "-")
	here.do(t, "", "create", "namespace", "beds")
	here.apply(t, "a graph", file(t, "kro", "testdata", "bed.yaml"))
	here.condition(t, "resourcegraphdefinition/bed", "beds", "Ready", "True")
	here.shows(t, "resourcegraphdefinition/bed", "beds", "{.status.state} {.status.topologicalOrder}", `Active ["notes","keeper"]`)
	here.condition(t, "crd/beds.kro.run", "beds", "Established", "True")

	here.apply(t, "a graph with a field that no schema has", strings.NewReplacer("name: bed}", "name: wrong}", "kind: Bed", "kind: Wrong", "data: {label", "dat: {label").Replace(file(t, "kro", "testdata", "bed.yaml")))
	here.condition(t, "resourcegraphdefinition/wrong", "beds", "Ready", "False")
	here.shows(t, "resourcegraphdefinition/wrong", "beds", "{.status.state}", "Inactive")
	if status := here.do(t, "", "get", "resourcegraphdefinition", "wrong", "--output", "jsonpath={.status.conditions[*].message}"); !strings.Contains(status, "dat") {
		t.Errorf("kro does not say which field is wrong: %s", status)
	}

	here.apply(t, "an instance", `{apiVersion: kro.run/v1alpha1, kind: Bed, metadata: {name: beans, namespace: beds}, spec: {plant: beans}}`)
	here.shows(t, "bed/beans", "beds", "{.spec.rows} {.status.state} {.status.label}", "2 ACTIVE beans in 2 rows")
	here.shows(t, "configmap/beans-notes", "beds", "{.data.label}", "beans in 2 rows")
	here.shows(t, "serviceaccount/beans", "beds", "{.metadata.annotations.notes}", "beans-notes")

	here.do(t, "", "patch", "bed", "beans", "--namespace", "beds", "--type", "merge", "--patch", `{"spec":{"rows":5}}`)
	here.shows(t, "bed/beans", "beds", "{.status.label}", "beans in 5 rows")
	here.do(t, "", "delete", "configmap", "beans-notes", "--namespace", "beds")
	here.shows(t, "configmap/beans-notes", "beds", "{.data.label}", "beans in 5 rows")
	here.refused(t, `{apiVersion: kro.run/v1alpha1, kind: Bed, metadata: {name: nothing, namespace: beds}, spec: {}}`,
		[]string{"create", "-f", "-"}, "spec.plant: Required value")
	here.mayNot(t, "kro-system", "kro", "get", "secrets", "--namespace", "beds")

	here.do(t, "", "delete", "bed", "beans", "--namespace", "beds", "--timeout=60s")
	here.shows(t, "configmaps --field-selector=metadata.name=beans-notes", "beds", "{.items[*].metadata.name}", "")
	here.do(t, "", "delete", "resourcegraphdefinition", "bed", "--timeout=60s")
	here.shows(t, "crds --field-selector=metadata.name=beds.kro.run", "beds", "{.items[*].metadata.name}", "")
	kro.account(t)
	if err := kro.stop(); err != nil {
		t.Error(err)
	}
}
