package controllers_test

import (
	"fmt"
	"path/filepath"
	"testing"
)

const flaggerModule = "github.com/fluxcd/flagger"

// flagger copies a Deployment and its ConfigMaps, makes three Services, and copies the next version of the Deployment once it has run.
func TestFlagger(t *testing.T) {
	w := cluster(t)
	binary := build(t, "flagger", flaggerModule+"/cmd/flagger", "flagger")
	all := w.kustomize(t, filepath.Join(moduleDir(t, "flagger", flaggerModule), "kustomize", "base", "flagger"))
	all = append(all, parse(t, []byte(`{apiVersion: v1, kind: Namespace, metadata: {name: flagger-system}}`))...)
	if missing := w.install(t, all); len(missing) > 0 {
		t.Errorf("flagger ships kinds that the server does not have: %v", missing)
	}
	flagger := w.run(t, "flagger", binary, nil, "-kubeconfig="+w.kubeconfig(t, "flagger-system", "flagger"), "-mesh-provider=kubernetes",
		"-log-level=info", fmt.Sprintf("-port=%d", port(t)))

	w.apply(t, "a canary", file(t, "flagger", "testdata", "canary.yaml"))
	w.shows(t, "canary/stall", "fair", "{.status.phase}", "Initialized")
	w.shows(t, "deployment/stall-primary", "fair", "{.status.readyReplicas} {.spec.template.spec.containers[0].image}", "2 stall:1")
	w.shows(t, "deployment/stall", "fair", "{.spec.replicas}", "0")
	w.shows(t, "configmap/prices-primary", "fair", "{.data.apples}", "2")
	w.shows(t, "services", "fair", "{.items[*].metadata.name}", "stall stall-canary stall-primary")

	w.restart(t)
	w.do(t, "", "set", "image", "deployment/stall", "stall=stall:2", "--namespace", "fair")
	w.shows(t, "canary/stall", "fair", "{.status.phase}", "Succeeded")
	w.shows(t, "deployment/stall-primary", "fair", "{.status.readyReplicas} {.spec.template.spec.containers[0].image}", "2 stall:2")

	w.do(t, "", "delete", "canary", "stall", "--namespace", "fair")
	w.shows(t, "deployments,services,configmaps --field-selector=metadata.name!=kube-root-ca.crt", "fair", "{.items[*].metadata.name}", "stall prices")
	flagger.account(t)
	_ = flagger.stop()
	w.do(t, "", "delete", "namespace", "fair", "--timeout=2m")
}
