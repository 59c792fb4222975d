package builtin

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestConnections asks for what needs a kubelet. The answers are kube-apiserver's.
func TestConnections(t *testing.T) {
	e := start(t, Data()...)
	c := e.client("application/json")
	pod := func(name, node string, containers ...string) {
		t.Helper()
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PodSpec{NodeName: node}}
		for _, one := range containers {
			p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: one, Image: "i"})
		}
		if _, err := c.CoreV1().Pods("default").Create(t.Context(), p, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	pod("two", "", "c", "d")
	pod("lost", "nowhere", "c")
	pod("bound", "node", "c")
	pod("far", "known", "c")
	for name, addresses := range map[string][]corev1.NodeAddress{"node": nil, "known": {{Type: corev1.NodeInternalIP, Address: "10.1.1.1"}}} {
		if _, err := c.CoreV1().Nodes().Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.NodeStatus{Addresses: addresses}}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	const pods, services = "/api/v1/namespaces/default/pods/", "/api/v1/namespaces/default/services/"
	for _, test := range []struct {
		method, path string
		code         int
		text         string
	}{
		{"GET", pods + "two/log", 400, "a container name must be specified for pod two, choose one of: [c d]"},
		{"GET", pods + "two/log?container=c", 204, ""},
		{"GET", pods + "two/log?container=x", 400, "container x is not valid for pod two"},
		{"GET", pods + "two/log?container=c&tailLines=-1&sinceSeconds=0", 422, `PodLogOptions \"two\" is invalid: [tailLines: Invalid value: -1: must be greater than or equal to 0, sinceSeconds: Invalid value: 0: must be greater than 0]`},
		{"GET", pods + "two/log?tailLines=x", 400, "invalid syntax"},
		{"POST", pods + "two/exec?container=c&command=ls", 400, "pod two does not have a host assigned"},
		{"GET", pods + "two/attach?container=c", 400, "pod two does not have a host assigned"},
		{"POST", pods + "two/portforward", 400, "pod two does not have a host assigned"},
		{"PUT", pods + "two/exec", 405, "MethodNotAllowed"},
		{"GET", pods + "lost/log", 404, `pods \"nowhere\" not found`},
		{"POST", pods + "lost/exec", 404, `pods \"nowhere\" not found`},
		{"GET", pods + "bound/log", 500, "no preferred addresses found; known addresses: []"},
		{"POST", pods + "far/exec", 500, "this server connects to no node and no pod"},
		{"GET", pods + "none/log", 404, `pods \"none\" not found`},
		{"GET", pods + "two/proxy", 400, "address not allowed"},
		{"GET", pods + "https:two:99/proxy/a/b", 400, "address not allowed"},
		{"GET", pods + "none/proxy/", 404, `pods \"none\" not found`},
		{"GET", services + "s:80/proxy/x", 503, `no endpoints available for service \"s\"`},
		{"DELETE", services + "a:b:c:d/proxy/", 400, `invalid service request \"a:b:c:d\"`},
		{"GET", "/api/v1/nodes/node/proxy/metrics", 500, "no preferred addresses found"},
		{"GET", "/api/v1/nodes/none:10/proxy", 404, `nodes \"none\" not found`},
		{"GET", pods + "two/log/more", 404, ""},
	} {
		req, err := http.NewRequestWithContext(t.Context(), test.method, e.URL+test.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		if err := resp.Body.Close(); err != nil {
			t.Fatal(err)
		}
		if resp.StatusCode != test.code || !strings.Contains(string(body), test.text) {
			t.Errorf("%s %s: %d %s, want %d %s", test.method, test.path, resp.StatusCode, body, test.code, test.text)
		}
	}
	want := map[string]string{"log": "get", "exec": "create get", "portforward": "create get", "proxy": "create delete get patch update"}
	for _, g := range e.resources.Discovery() {
		for _, v := range g.Versions {
			for _, r := range v.Resources {
				for _, s := range r.Subresources {
					if verbs := want[s.Name]; r.Name == "pods" && verbs != "" && strings.Join(s.Verbs, " ") != verbs {
						t.Errorf("pods/%s has the verbs %v", s.Name, s.Verbs)
					}
				}
			}
		}
	}
}

// TestComponentStatuses lists and gets what is known of etcd.
func TestComponentStatuses(t *testing.T) {
	var failure error
	e := start(t, ComponentStatuses(func(context.Context) error { return failure }))
	c := e.client("application/json").CoreV1().ComponentStatuses()
	list, err := c.List(t.Context(), metav1.ListOptions{})
	if err != nil || len(list.Items) != 3 || list.Items[0].Name != "scheduler" || list.Items[2].Conditions[0].Message != "ok" {
		t.Fatalf("%v, %v", list, err)
	}
	if list, err = c.List(t.Context(), metav1.ListOptions{LabelSelector: "a=b"}); err != nil || len(list.Items) != 0 {
		t.Errorf("%v, %v", list, err)
	}
	failure = errors.New("down")
	one, err := c.Get(t.Context(), "etcd-0", metav1.GetOptions{})
	if err != nil || one.Conditions[0].Status != corev1.ConditionFalse || one.Conditions[0].Message != "down" {
		t.Errorf("%v, %v", one, err)
	}
	if _, err := c.Get(t.Context(), "zz", metav1.GetOptions{}); err == nil || err.Error() != `componentstatus "zz" not found` {
		t.Errorf("got %v", err)
	}
}
