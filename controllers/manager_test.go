package controllers_test

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// kube-controller-manager runs all its controllers, each with the rights of its own ServiceAccount, and then all with an
// administrator's. Its scheduler binds the pods, and kwok says that they run.
func TestKubeControllerManager(t *testing.T) {
	w := cluster(t)
	manager := w.program(t, "kube-controller-manager")
	w.do(t, "", "create", "namespace", "work")
	w.shows(t, "serviceaccount/default", "work", "{.metadata.name}", "default")
	w.shows(t, "configmap/kube-root-ca.crt", "work", "{.metadata.name}", "kube-root-ca.crt")
	w.do(t, file(t, "kwok", "testdata", "workloads.yaml"), "apply", "-f", "-")
	for _, part := range []struct {
		name string
		test func(*testing.T, *environment)
	}{
		{"deployment", deployments}, {"service", endpoints}, {"statefulset", statefulSets}, {"daemonset", daemonSets}, {"job", jobs}, {"quota", quotas},
		{"drain", drain},
	} {
		t.Run(part.name, func(t *testing.T) { part.test(t, w) })
	}
	w.shows(t, "clusterrole/keepers", "work", "{.rules[*].resources[*]}", "beds")
	w.shows(t, "daemonset/agent", "work", "{.status.numberReady}", "2") // the third pod went 40 s after its node

	w.restart(t)
	w.do(t, "", "rollout", "restart", "deployment/web", "--namespace", "work")
	w.do(t, "", "rollout", "status", "deployment/web", "--namespace", "work", "--timeout=2m")
	manager.reproaches(t)
	w.program(t, "kube-scheduler").reproaches(t)
	_ = manager.stop()

	admin := w.manage(t, w.server.Kubeconfig)
	w.do(t, "", "rollout", "restart", "statefulset/db", "--namespace", "work")
	w.do(t, "", "rollout", "status", "statefulset/db", "--namespace", "work", "--timeout=2m")
	w.do(t, "", "delete", "namespace", "work", "--timeout=2m")
	w.shows(t, "pv/one", "work", "{.status.phase}", "Released")
	admin.reproaches(t)
	_ = admin.stop()
	w.manage(t, w.identity(t, "system:kube-controller-manager"), "--use-service-account-credentials")
}

func deployments(t *testing.T, w *environment) {
	rolled := func(what string) {
		t.Helper()
		w.do(t, "", "rollout", "status", "deployment/web", "--namespace", "work", "--timeout=2m")
		w.shows(t, "replicasets --selector=app=web", "work", "{.items[?(@.spec.replicas>0)].spec.template.spec.containers[0].image}", what)
	}
	rolled("web:1")
	w.shows(t, "replicasets --selector=app=web", "work", "{.items[*].metadata.ownerReferences[*].kind}", "Deployment")
	w.do(t, "", "set", "image", "deployment/web", "web=web:2", "--namespace", "work")
	rolled("web:2")
	w.do(t, "", "rollout", "undo", "deployment/web", "--namespace", "work")
	rolled("web:1")
	w.do(t, "", "scale", "deployment/web", "--replicas=5", "--namespace", "work")
	w.shows(t, "deployment/web", "work", "{.status.readyReplicas}", "5")

	w.do(t, "", "create", "deployment", "brief", "--image=brief", "--namespace", "work")
	w.do(t, "", "rollout", "status", "deployment/brief", "--namespace", "work", "--timeout=2m")
	w.do(t, "", "delete", "deployment", "brief", "--namespace", "work")
	w.shows(t, "pods,replicasets --selector=app=brief", "work", "{.items[*].metadata.name}", "")
	// Only a server of metrics could tell how busy the pods are.
	w.condition(t, "hpa/web", "work", "AbleToScale", "True")
	w.condition(t, "hpa/web", "work", "ScalingActive", "False")
}

// endpoints follow the pods of a Service, in both forms.
func endpoints(t *testing.T, w *environment) {
	follow := func() {
		t.Helper()
		for _, form := range []string{"endpoints/web {.subsets[*].addresses[*].ip}", "endpointslices --selector=kubernetes.io/service-name=web {.items[*].endpoints[*].addresses[*]}"} {
			object, path := form[:strings.LastIndex(form, " ")], form[strings.LastIndex(form, " ")+1:]
			eventually(t, object+" has the addresses of the pods", func(ctx context.Context) error {
				pods, err := w.get(ctx, "pods --selector=app=web --field-selector=status.phase=Running", "work", "{.items[*].status.podIP}")
				if err != nil {
					return err
				}
				got, err := w.get(ctx, object, "work", path)
				if err != nil {
					return err
				}
				if want, have := sorted(pods), sorted(got); len(want) == 0 || !slices.Equal(want, have) {
					return fmt.Errorf("%v, and the pods have %v", have, want)
				}
				return nil
			})
		}
	}
	follow()
	w.do(t, "", "delete", "pods", "--selector=app=web", "--namespace", "work")
	follow()
	w.shows(t, "service/web", "work", "{.spec.ports[*].targetPort}", "http")
}

func sorted(words string) []string {
	list := strings.Fields(words)
	slices.Sort(list)
	return list
}

func statefulSets(t *testing.T, w *environment) {
	w.do(t, "", "rollout", "status", "statefulset/db", "--namespace", "work", "--timeout=2m")
	w.shows(t, "pods --selector=app=db", "work", "{.items[*].metadata.name}", "db-0 db-1")
	w.shows(t, "pvc --selector=app=db", "work", "{.items[*].status.phase}", "Bound Bound")
	w.shows(t, "endpoints/db", "work", "{.subsets[*].addresses[?(@.hostname=='db-1')].targetRef.name}", "db-1")
	w.do(t, "", "scale", "statefulset/db", "--replicas=1", "--namespace", "work")
	w.shows(t, "pods --selector=app=db", "work", "{.items[*].metadata.name}", "db-0")
	w.do(t, "", "scale", "statefulset/db", "--replicas=2", "--namespace", "work")
	w.shows(t, "statefulset/db", "work", "{.status.readyReplicas}", "2")
	w.shows(t, "pdb/db", "work", "{.status.disruptionsAllowed}", "1")
}

func daemonSets(t *testing.T, w *environment) {
	w.do(t, "", "rollout", "status", "daemonset/agent", "--namespace", "work", "--timeout=2m")
	w.shows(t, "daemonset/agent", "work", "{.status.numberReady}", "2")
	w.do(t, strings.ReplaceAll(strings.Split(file(t, "kwok", "testdata", "nodes.yaml"), "---")[0], "one", "three"), "apply", "-f", "-")
	w.shows(t, "daemonset/agent", "work", "{.status.numberReady}", "3")
	w.do(t, "", "delete", "node", "three")
	w.shows(t, "rc/old", "work", "{.status.readyReplicas}", "2")
}

func jobs(t *testing.T, w *environment) {
	w.do(t, "", "wait", "--for=condition=Complete", "job/count", "--namespace", "work", "--timeout=2m")
	w.shows(t, "job/count", "work", "{.status.succeeded} {.status.completedIndexes}", "3 0-2")
	w.shows(t, "jobs --field-selector=metadata.name=soon", "work", "{.items[*].metadata.name}", "")
	w.do(t, "", "create", "job", "now", "--from=cronjob/tick", "--namespace", "work")
	w.do(t, "", "wait", "--for=condition=Complete", "job/now", "--namespace", "work", "--timeout=2m")
	eventually(t, "the cron job has run", func(ctx context.Context) error {
		last, err := w.get(ctx, "cronjob/tick", "work", "{.status.lastSuccessfulTime}")
		if err == nil && last == "" {
			err = fmt.Errorf("not yet")
		}
		return err
	})
	w.do(t, "", "patch", "cronjob", "tick", "--namespace", "work", "--patch", `{"spec":{"suspend":true}}`)
}

func quotas(t *testing.T, w *environment) {
	w.shows(t, "quota/few", "work", "{.status.used.configmaps}", "1")
	w.do(t, "", "create", "configmap", "second", "--namespace", "work")
	w.refused(t, "", []string{"create", "configmap", "third", "--namespace", "work"}, "exceeded quota: few, requested: configmaps=1, used: configmaps=2, limited: configmaps=2")
	w.do(t, "", "delete", "configmap", "second", "--namespace", "work")
	w.shows(t, "quota/few", "work", "{.status.used.configmaps}", "1")
}

// drain evicts the pods of a node as far as their budgets allow.
func drain(t *testing.T, w *environment) {
	w.do(t, "", "drain", "one", "--ignore-daemonsets", "--timeout=2m")
	w.shows(t, "pods --field-selector=spec.nodeName=one", "work", "{.items[*].metadata.labels.app}", "agent")
	w.do(t, "", "uncordon", "one")
	w.shows(t, "statefulset/db", "work", "{.status.readyReplicas}", "2")
	w.do(t, "", "rollout", "status", "deployment/web", "--namespace", "work", "--timeout=2m")
}

var (
	reproach = regexp.MustCompile(`^[EWF]\d{4} .*(is forbidden: User|could not find the requested resource|no matches for|[Ff]ailed to watch|failed to list|[Ww]atch error|panic)`)
	// A server of metrics is one more server, which aggregation would add. The others are of the restart.
	excused = regexp.MustCompile(`metrics\.k8s\.io|connection refused|unexpected EOF|connection reset|http2: (client connection lost|server sent GOAWAY)`)
)

// reproaches fails for everything that a part of Kubernetes missed or was not allowed.
func (p *program) reproaches(t *testing.T) {
	t.Helper()
	if err := p.ended(); err != nil {
		t.Error(err)
	}
	for _, line := range p.complaints(reproach) {
		if !excused.MatchString(line) {
			t.Errorf("%s: %s", p.name, line)
		}
	}
}

// program returns the last running program of a name.
func (w *environment) program(t *testing.T, name string) *program {
	t.Helper()
	for _, p := range slices.Backward(w.programs) {
		if p.name == name {
			return p
		}
	}
	t.Fatalf("%s does not run", name)
	return nil
}
