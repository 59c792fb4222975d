package controllers_test

import (
	"fmt"
	"path/filepath"
	"testing"
)

const rolloutsModule = "github.com/argoproj/argo-rollouts"

// argo-rollouts does by itself what a Deployment would: it makes ReplicaSets and moves pods from the old one to the new one, and
// points Services at them. In between it runs a Job that must succeed.
func TestArgoRollouts(t *testing.T) {
	w := cluster(t)
	binary := build(t, "argorollouts", rolloutsModule+"/cmd/rollouts-controller", "argo-rollouts")
	all := w.kustomize(t, filepath.Join(moduleDir(t, "argorollouts", rolloutsModule), "manifests", "cluster-install"))
	for _, o := range all {
		// They are for `kubectl apply --namespace argo-rollouts`.
		switch o.GetKind() {
		case "ConfigMap", "Deployment", "Secret", "Service", "ServiceAccount":
			o.SetNamespace("argo-rollouts")
		}
	}
	all = append(all, parse(t, []byte(`{apiVersion: v1, kind: Namespace, metadata: {name: argo-rollouts}}`))...)
	if missing := w.install(t, all); len(missing) > 0 {
		t.Errorf("argo-rollouts ships kinds that the server does not have: %v", missing)
	}
	rollouts := w.run(t, "argo-rollouts", binary, []string{"POD_NAMESPACE=argo-rollouts"}, "--kubeconfig="+w.kubeconfig(t, "argo-rollouts", "argo-rollouts"),
		"--leader-elect=false", fmt.Sprintf("--metricsPort=%d", port(t)), fmt.Sprintf("--healthzPort=%d", port(t)))

	w.apply(t, "a rollout", file(t, "argorollouts", "testdata", "rollout.yaml"))
	w.shows(t, "rollout/shop", "shop", "{.status.phase} {.status.availableReplicas}", "Healthy 4")
	w.do(t, "", "patch", "rollout", "shop", "--namespace", "shop", "--type=json", "--patch", `[{"op":"replace","path":"/spec/template/spec/containers/0/image","value":"shop:2"}]`)
	w.shows(t, "analysisruns", "shop", "{.items[*].status.phase}", "Successful")
	w.shows(t, "rollout/shop", "shop", "{.status.phase} {.status.currentStepIndex}", "Paused 2")
	w.shows(t, "replicasets --selector=app=shop", "shop", "{.items[*].status.readyReplicas}", "2 2")
	old := w.do(t, "", "get", "service", "stable", "--namespace", "shop", "--output", "jsonpath={.spec.selector.rollouts-pod-template-hash}")
	w.shows(t, "pods --selector=rollouts-pod-template-hash="+old, "shop", "{.items[*].spec.containers[*].image}", "shop:1 shop:1")

	w.restart(t)
	w.do(t, "", "patch", "rollout", "shop", "--namespace", "shop", "--subresource=status", "--type=merge", "--patch", `{"status":{"pauseConditions":null}}`)
	w.shows(t, "rollout/shop", "shop", "{.status.phase} {.status.availableReplicas} {.status.updatedReplicas}", "Healthy 4 4")
	w.shows(t, "pods --selector=app=shop", "shop", "{.items[*].spec.containers[*].image}", "shop:2 shop:2 shop:2 shop:2")
	w.do(t, "", "scale", "rollout/shop", "--replicas=2", "--namespace", "shop")
	w.shows(t, "rollout/shop", "shop", "{.status.availableReplicas}", "2")

	w.do(t, "", "delete", "rollout", "shop", "--namespace", "shop")
	w.shows(t, "replicasets,pods --selector=app=shop", "shop", "{.items[*].metadata.name}", "")
	rollouts.account(t)
	_ = rollouts.stop()
	w.do(t, "", "delete", "namespace", "shop", "--timeout=2m")
}
