package controllers_test

import (
	"fmt"
	"testing"
)

const prometheusModule = "github.com/prometheus-operator/prometheus-operator"

// prometheus-operator makes a StatefulSet, a headless Service, Secrets and ConfigMaps of its custom resources, reads the state of
// the pods, and writes the addresses of all nodes into an Endpoints object.
func TestPrometheusOperator(t *testing.T) {
	w := cluster(t)
	binary := build(t, "prometheusoperator", prometheusModule+"/cmd/operator", "prometheus-operator")
	if missing := w.install(t, w.kustomize(t, moduleDir(t, "prometheusoperator", prometheusModule))); len(missing) > 0 {
		t.Errorf("prometheus-operator ships kinds that the server does not have: %v", missing)
	}
	operator := w.run(t, "prometheus-operator", binary, []string{"KUBECONFIG=" + w.kubeconfig(t, "default", "prometheus-operator")},
		"--kubelet-service=kube-system/kubelet", "--kubelet-endpoints=true", fmt.Sprintf("--web.listen-address=127.0.0.1:%d", port(t)))

	w.apply(t, "a Prometheus", file(t, "prometheusoperator", "testdata", "monitoring.yaml"))
	w.condition(t, "prometheus/main", "monitoring", "Available", "True")
	w.condition(t, "prometheus/main", "monitoring", "Reconciled", "True")
	w.shows(t, "statefulset/prometheus-main", "monitoring", "{.status.readyReplicas}", "2")
	w.shows(t, "pods --selector=prometheus=main", "monitoring", "{.items[*].metadata.name}", "prometheus-main-0 prometheus-main-1")
	w.shows(t, "service/prometheus-operated", "monitoring", "{.spec.clusterIP}", "None")
	w.shows(t, "configmap/prometheus-main-rulefiles-0", "monitoring", "{.data}", `{"monitoring-dry-`+w.do(t, "", "get", "prometheusrule", "dry",
		"--namespace", "monitoring", "--output", "jsonpath={.metadata.uid}")+`.yaml":"groups:\n- name: beds\n  rules:\n  - alert: Dry\n    expr: water \u003c 1\n"}`)
	w.condition(t, "alertmanager/main", "monitoring", "Available", "True")
	w.shows(t, "endpoints/kubelet", "kube-system", "{.subsets[0].addresses[*].targetRef.name}", "one two")

	w.do(t, "", "patch", "prometheus", "main", "--namespace", "monitoring", "--type=merge", "--patch", `{"spec":{"replicas":3}}`)
	w.shows(t, "prometheus/main", "monitoring", "{.status.availableReplicas}", "3")
	w.do(t, "", "delete", "statefulset", "prometheus-main", "--namespace", "monitoring")
	w.shows(t, "statefulset/prometheus-main", "monitoring", "{.status.readyReplicas}", "3")

	w.restart(t)
	w.do(t, "", "patch", "prometheus", "main", "--namespace", "monitoring", "--type=merge", "--patch", `{"spec":{"replicas":1}}`)
	w.shows(t, "statefulset/prometheus-main", "monitoring", "{.status.readyReplicas}", "1")
	w.do(t, "", "delete", "prometheus", "main", "--namespace", "monitoring")
	w.shows(t, "statefulsets,pods --selector=app.kubernetes.io/name=prometheus", "monitoring", "{.items[*].metadata.name}", "")
	operator.account(t)
	if err := operator.stop(); err != nil {
		t.Error(err)
	}
	w.do(t, "", "delete", "namespace", "monitoring", "--timeout=2m")
}
