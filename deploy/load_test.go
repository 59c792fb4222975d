package deploy

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"
)

// resources that the load uses.
var (
	crds       = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	webhooks   = schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingwebhookconfigurations"}
	levels     = schema.GroupVersionResource{Group: "flowcontrol.apiserver.k8s.io", Version: "v1", Resource: "prioritylevelconfigurations"}
	flows      = schema.GroupVersionResource{Group: "flowcontrol.apiserver.k8s.io", Version: "v1", Resource: "flowschemas"}
	webs       = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "webs"}
	websV2     = schema.GroupVersionResource{Group: "example.com", Version: "v2", Resource: "webs"}
	configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	secrets    = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
)

// A CRD whose second version has no working conversion webhook.
const webCRD = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: webs.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: webs, singular: web, kind: Web}
  conversion:
    strategy: Webhook
    webhook: {conversionReviewVersions: [v1], clientConfig: {url: "https://127.0.0.1:1/convert"}}
  versions:
  - {name: v1, served: true, storage: true, schema: &schema {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {image: {type: string}}}}}}}
  - {name: v2, served: true, storage: false, schema: *schema}
`

// Webhooks that do not answer: updates are refused because of it, deletions are not.
const brokenWebhooks = `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: broken}
webhooks:
- name: closed.example.com
  clientConfig: {url: "https://127.0.0.1:1/"}
  admissionReviewVersions: [v1]
  sideEffects: None
  failurePolicy: Fail
  rules: [{apiGroups: [example.com], apiVersions: ["*"], resources: [webs], operations: [UPDATE]}]
- name: open.example.com
  clientConfig: {url: "https://127.0.0.1:1/"}
  admissionReviewVersions: [v1]
  sideEffects: None
  failurePolicy: Ignore
  rules: [{apiGroups: [example.com], apiVersions: ["*"], resources: [webs], operations: [DELETE]}]
`

// A level with as few seats as possible, and a user who is in it.
const noSeats = `
apiVersion: flowcontrol.apiserver.k8s.io/v1
kind: PriorityLevelConfiguration
metadata: {name: none}
spec: {type: Limited, limited: {nominalConcurrencyShares: 0, lendablePercent: 0, borrowingLimitPercent: 0, limitResponse: {type: Reject}}}
`

const greedyFlow = `
apiVersion: flowcontrol.apiserver.k8s.io/v1
kind: FlowSchema
metadata: {name: greedy}
spec:
  priorityLevelConfiguration: {name: none}
  matchingPrecedence: 50
  rules:
  - subjects: [{kind: User, user: {name: greedy}}]
    resourceRules: [{apiGroups: ["*"], resources: ["*"], namespaces: ["*"], clusterScope: true, verbs: ["*"]}]
`

// A load makes everything happen that a metric of the rules or of the dashboard counts.
type load struct {
	*testing.T
	environment *testEnvironment
	server      *server
	admin       dynamic.Interface
	// stopWatching ends the watch that is open meanwhile.
	stopWatching func()
}

// newLoad starts a server with the chart's settings and encryption, whose audit log goes to a disk that is full.
func newLoad(t *testing.T) *load {
	t.Helper()
	w := newTestEnvironment(t)
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skipf("%v: audit errors cannot be made on this system, and the metrics of what cannot be made to happen cannot be looked at", err)
	}
	t.Cleanup(func() { _ = full.Close() })
	s := w.pod(t, w.cluster(t), manifest(t, "espalier", values{"encryption": values{"secretName": "espalier-encryption"}}),
		func(cmd *exec.Cmd) { cmd.Stdout = full })
	return &load{T: t, environment: w, server: s, admin: w.dynamic(t, s.url)}
}

// as is a client for a user with no rights.
func (l *load) as(user string) dynamic.Interface {
	config := l.environment.config(l.server.url)
	config.Impersonate = rest.ImpersonationConfig{UserName: user}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		l.Fatal(err)
	}
	return client
}

func (l *load) object(text string) *unstructured.Unstructured {
	var o unstructured.Unstructured
	if err := yaml.Unmarshal([]byte(text), &o.Object); err != nil {
		l.Fatal(err)
	}
	return &o
}

// create makes an object in the namespace default, or in none.
func (l *load) create(resource schema.GroupVersionResource, text string) *unstructured.Unstructured {
	l.Helper()
	var client dynamic.ResourceInterface = l.admin.Resource(resource)
	switch resource {
	case webs, configMaps, secrets:
		client = l.admin.Resource(resource).Namespace("default")
	}
	made, err := client.Create(l.Context(), l.object(text), metav1.CreateOptions{})
	if err != nil {
		l.Fatal(err)
	}
	return made
}

// run does it all once.
func (l *load) run() {
	l.create(crds, webCRD)
	eventually(l.T, "the CRD is not established", func() error {
		_, err := l.admin.Resource(webs).Namespace("default").List(l.Context(), metav1.ListOptions{})
		return err
	})
	watch, err := l.admin.Resource(webs).Namespace("default").Watch(l.Context(), metav1.ListOptions{})
	if err != nil {
		l.Fatal(err)
	}
	l.stopWatching = watch.Stop
	for i := range 5 {
		l.create(webs, fmt.Sprintf("{apiVersion: example.com/v1, kind: Web, metadata: {name: w%d}, spec: {image: i, typo: 1}}", i))
		<-watch.ResultChan()
	}
	l.webhooksFail()
	l.othersAsk()
	l.ownersGo()
	l.valuesAreUnreadable()
	l.requestsTakeTooLong()
	l.etcdStops()
}

func (l *load) webhooksFail() {
	l.create(webhooks, brokenWebhooks)
	objects := l.admin.Resource(webs).Namespace("default")
	eventually(l.T, "a webhook that does not answer is not asked", func() error {
		if _, err := objects.Patch(l.Context(), "w1", types.MergePatchType, []byte(`{"metadata":{"labels":{"a":"b"}}}`), metav1.PatchOptions{}); err == nil || !strings.Contains(err.Error(), "closed.example.com") {
			return fmt.Errorf("an update gives %v", err)
		}
		return nil
	})
	if err := objects.Delete(l.Context(), "w2", metav1.DeleteOptions{}); err != nil {
		l.Fatal(err)
	}
	if _, err := l.admin.Resource(websV2).Namespace("default").Get(l.Context(), "w1", metav1.GetOptions{}); err == nil {
		l.Fatal("the server converted an object although its webhook does not run")
	}
}

// othersAsk has a user without rights, a greedy user and an unauthenticated client send requests.
func (l *load) othersAsk() {
	if _, err := l.as("bob").Resource(configMaps).Namespace("default").List(l.Context(), metav1.ListOptions{}); err == nil {
		l.Fatal("bob may list")
	}
	l.create(levels, noSeats)
	l.create(flows, greedyFlow)
	eventually(l.T, "a level of one seat takes all requests", l.greedy)
	req, err := http.NewRequestWithContext(l.Context(), http.MethodGet, l.server.url+"/api", nil)
	if err != nil {
		l.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer unknown")
	if err := l.answers(l.environment.client(l.T, ""), req, http.StatusUnauthorized); err != nil {
		l.Fatal(err)
	}
}

// greedy sends requests all at once: a level has one seat at least, and this one has no queue. client-go would try again.
func (l *load) greedy() error {
	client := l.environment.client(l.T, "admin")
	results := make(chan error)
	for range 30 {
		go func() {
			req, err := http.NewRequestWithContext(l.Context(), http.MethodGet, l.server.url+"/api/v1/namespaces/default/configmaps", nil)
			if err == nil {
				req.Header.Set("Impersonate-User", "greedy")
				err = l.answers(client, req, http.StatusTooManyRequests)
			}
			results <- err
		}()
	}
	last := errors.New("none was refused")
	for range 30 {
		if err := <-results; err == nil || last == nil {
			last = nil
		} else {
			last = err
		}
	}
	return last
}

func (l *load) answers(client *http.Client, req *http.Request, code int) error {
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	_ = resp.Body.Close()
	if resp.StatusCode != code {
		return errors.New(resp.Status)
	}
	return nil
}

// ownersGo deletes an object with a dependent, which goes too.
func (l *load) ownersGo() {
	owner := l.create(configMaps, "{apiVersion: v1, kind: ConfigMap, metadata: {name: owner}}")
	l.create(configMaps, fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {name: owned, ownerReferences: [{apiVersion: v1, kind: ConfigMap, name: owner, uid: %q}]}}", owner.GetUID()))
	objects := l.admin.Resource(configMaps).Namespace("default")
	if err := objects.Delete(l.Context(), "owner", metav1.DeleteOptions{}); err != nil {
		l.Fatal(err)
	}
	eventually(l.T, "what has lost its owner stays", func() error {
		if _, err := objects.Get(l.Context(), "owned", metav1.GetOptions{}); err == nil {
			return errors.New("it is there")
		}
		return nil
	})
}

// valuesAreUnreadable puts a secret into etcd that no key of ours has encrypted, and a web that is not JSON. The group of
// secrets is empty, and Prometheus drops empty labels.
func (l *load) valuesAreUnreadable() {
	l.create(secrets, "{apiVersion: v1, kind: Secret, metadata: {name: fine}, stringData: {a: b}}")
	for resource, junk := range map[schema.GroupVersionResource]struct{ key, value string }{
		secrets: {"/registry/secrets/default/junk", "k8s:enc:secretbox:v1:first:" + strings.Repeat("junk", 20)},
		webs:    {"/registry/example.com/webs/default/junk", "junk"},
	} {
		encode := func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }
		body := fmt.Sprintf(`{"key":%q,"value":%q}`, encode(junk.key), encode(junk.value))
		req, err := http.NewRequestWithContext(l.Context(), http.MethodPost, l.environment.etcd.plain+"/v3/kv/put", strings.NewReader(body))
		if err != nil {
			l.Fatal(err)
		}
		if err := l.answers(http.DefaultClient, req, http.StatusOK); err != nil {
			l.Fatal(err)
		}
		if _, err := l.admin.Resource(resource).Namespace("default").Get(l.Context(), "junk", metav1.GetOptions{}); !apierrors.IsStoreReadError(err) {
			l.Fatalf("%s: %v", junk.key, err)
		}
	}
}

// requestsTakeTooLong sends the beginning of an object and never the rest.
func (l *load) requestsTakeTooLong() {
	body, rest := io.Pipe()
	defer rest.Close()
	go func() { _, _ = rest.Write([]byte(`{"apiVersion": "v1",`)) }()
	req, err := http.NewRequestWithContext(l.Context(), http.MethodPost, l.server.url+"/api/v1/namespaces/default/configmaps?timeout=1s", body)
	if err != nil {
		l.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	if err := l.answers(l.environment.client(l.T, "admin"), req, http.StatusGatewayTimeout); err != nil {
		l.Fatal(err)
	}
}

// etcdStops holds etcd until a request has failed because of it.
func (l *load) etcdStops() {
	if err := l.environment.etcd.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		l.Fatal(err)
	}
	_, err := get(l.environment.client(l.T, "admin"), l.server.url+"/api/v1/namespaces/default/configmaps/owner?timeout=1s")
	if resume := l.environment.etcd.cmd.Process.Signal(syscall.SIGCONT); resume != nil {
		l.Fatal(resume)
	}
	if err == nil || strings.Contains(err.Error(), "404") {
		l.Fatalf("a request that etcd does not answer ends with %v", err)
	}
	// etcd is asked again only after it was missed for a while.
	eventually(l.T, "the server does not find etcd again", func() error {
		_, err := l.admin.Resource(configMaps).Namespace("default").List(l.Context(), metav1.ListOptions{})
		return err
	})
}

// some sends a few more requests, so that rates are not all 0.
func (l *load) some() {
	for i := range 5 {
		name := fmt.Sprintf("more-%d", i)
		l.create(configMaps, fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {name: %s}}", name))
		objects := l.admin.Resource(configMaps).Namespace("default")
		for _, list := range []dynamic.ResourceInterface{objects, l.admin.Resource(webs).Namespace("default")} {
			if _, err := list.List(l.Context(), metav1.ListOptions{}); err != nil {
				l.Fatal(err)
			}
		}
		if err := objects.Delete(l.Context(), name, metav1.DeleteOptions{}); err != nil {
			l.Fatal(err)
		}
	}
}
