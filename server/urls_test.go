package server

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/server/auth/authentication/certtest"
	"github.com/espalier-dev/espalier/server/etcdtest"
)

var (
	urlCount = flag.Int("urls", 4000, "how many URLs TestAuthorizedIsTouched asks for")
	urlSeed  = flag.Uint64("urls-seed", 0, "seed of the URLs of TestAuthorizedIsTouched; 0: from the clock, and printed")
)

// urlWorkers is how many requests there are at a time.
const urlWorkers = 8

// What a request is authorized for is what storage is asked for, what admission,
// audit and flow control are told, and what the answer shows. Half of the requests
// meet a server with watch caches and without admission plugins, the other half one
// that reads everything from etcd and has a plugin that records.
func TestAuthorizedIsTouched(t *testing.T) {
	seed := *urlSeed
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	t.Logf("seed %d", seed)
	var sum tally
	for i, name := range []string{"cached", "uncached"} {
		s := startObserved(t, name == "uncached")
		s.prepare(t)
		s.ask(t, &sum, seed+uint64(i)<<32, *urlCount/2)
	}
	t.Log(sum.String())
	if sum.served.Load() < sum.urls.Load()/10 || sum.touched.Load() < sum.urls.Load()/10 {
		t.Error("the URLs are too odd: hardly any request is served")
	}
	if n := sum.differences.Load(); n > 0 {
		t.Errorf("urls: %d differences between what was authorized and what was touched", n)
	}
}

// tally counts.
type tally struct {
	urls, malformed, resources, served, refused, touched, admitted, audited, flows, answers, differences atomic.Int64
}

func (s *tally) String() string {
	return fmt.Sprintf("urls: %d URLs (%d not HTTP), %d to resources, served %d, refused %d; compared with what was authorized: %d storage operations, %d admission calls, %d audit events, %d flow control digests, %d objects in answers; differences %d",
		s.urls.Load(), s.malformed.Load(), s.resources.Load(), s.served.Load(), s.refused.Load(), s.touched.Load(), s.admitted.Load(), s.audited.Load(), s.flows.Load(), s.answers.Load(), s.differences.Load())
}

// observedServer is a server that tells what happens within a request.
type observedServer struct {
	*Server
	recorder *recorder
}

func startObserved(t *testing.T, uncached bool) *observedServer {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	authority := certtest.New(t, time.Hour)
	certificate, key := authority.Server(t)
	o := NewOptions()
	o.Serving.Listener = listener
	o.Serving.ServerCert.CertKey.CertFile = certtest.File(t, "server.crt", certificate)
	o.Serving.ServerCert.CertKey.KeyFile = certtest.File(t, "server.key", key)
	o.Serving.ServerCert.CertDirectory = t.TempDir()
	o.Identity.ClientCAFile = certtest.File(t, "clients.crt", authority.PEM())
	o.Etcd.StorageConfig.Transport.ServerList = []string{etcdtest.Endpoint(t)}
	o.Etcd.StorageConfig.Prefix = etcdtest.Prefix(t)
	o.Etcd.EnableWatchCache = !uncached
	r := &recorder{prefix: o.Etcd.StorageConfig.Prefix}
	o.observe = r.watch
	if uncached {
		r.plug(o.Admission)
	}
	s, err := New(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	client := s.backend.Client()
	client.KV, client.Watcher = recordingKV{client.KV, r}, recordingWatcher{client.Watcher, r}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return &observedServer{s, r}
}

// do answers a request in this process, and returns what happened within.
func (s *observedServer) do(a asked) (*observation, *httptest.ResponseRecorder, error) {
	req, err := a.parse()
	if err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	o := &observation{cancel: cancel}
	req.Header.Set("Audit-Id", s.recorder.begin(o))
	w := answer{httptest.NewRecorder()}
	s.Handler().ServeHTTP(w, req.WithContext(context.WithValue(ctx, observing{}, o)))
	s.recorder.end(req.Header.Get("Audit-Id"))
	return o, w.ResponseRecorder, nil
}

// answer is a recorder that watches are sent to, too.
type answer struct{ *httptest.ResponseRecorder }

// CloseNotify implements http.CloseNotifier, which filters look for.
func (answer) CloseNotify() <-chan bool { return nil }

// parse reads the request as a server does.
func (a asked) parse() (*http.Request, error) {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s HTTP/1.1\r\nHost: server\r\nContent-Length: %d\r\n", a.method, a.target, len(a.body))
	for name, value := range a.header {
		fmt.Fprintf(&b, "%s: %s\r\n", name, value)
	}
	if a.contentType != "" {
		fmt.Fprintf(&b, "Content-Type: %s\r\n", a.contentType)
	}
	b.WriteString("\r\n" + a.body)
	req, err := http.ReadRequest(bufio.NewReader(strings.NewReader(b.String())))
	if err != nil {
		return nil, err
	}
	req.RemoteAddr = "127.0.0.1:1"
	return req, nil
}

// must answers a request that has to succeed, or to find what it creates.
func (s *observedServer) must(t *testing.T, a asked) string {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		_, w, err := s.do(a)
		if err != nil {
			t.Fatal(err)
		}
		if w.Code < 300 || w.Code == http.StatusConflict {
			return w.Body.String()
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: %d %s", a, w.Code, w.Body)
		}
	}
}

// prepare creates CRDs, namespaces and objects.
func (s *observedServer) prepare(t *testing.T) {
	t.Helper()
	for _, n := range urlNamespaces {
		s.must(t, asked{method: "POST", target: "/api/v1/namespaces", contentType: "application/json",
			body: fmt.Sprintf(`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":%q}}`, n)})
	}
	const version = `{"name":%q,"served":true,"storage":%t,"subresources":{"status":{},"scale":{"specReplicasPath":".spec.replicas","statusReplicasPath":".status.replicas"}},` +
		`"schema":{"openAPIV3Schema":{"type":"object","x-kubernetes-preserve-unknown-fields":true,"properties":{"spec":{"type":"object","properties":{"replicas":{"type":"integer"}}},"status":{"type":"object","properties":{"replicas":{"type":"integer"}}}}}}}`
	g := grammar{rand.New(rand.NewPCG(1, 1))}
	for i := range urlKinds {
		k := &urlKinds[i]
		if len(k.subresources) == 2 && k.subresources[1] == "scale" && k.version == "v1" {
			scope := map[bool]string{true: "Namespaced", false: "Cluster"}[k.namespaced]
			s.must(t, asked{method: "POST", target: "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", contentType: "application/json",
				body: fmt.Sprintf(`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"%[1]s.%[2]s"},"spec":{"group":%[2]q,"scope":%[3]q,"names":{"plural":%[1]q,"kind":%[4]q},"versions":[%s,%s]}}`,
					k.plural, k.group, scope, k.kind, fmt.Sprintf(version, "v1", true), fmt.Sprintf(version, "v2", false))})
		}
		if k.plural == "namespaces" && k.group == "" || k.plural == "customresourcedefinitions" || k.plural == "status" || k.plural == "proxy" {
			continue // there are some, or there can be none
		}
		for _, namespace := range urlNamespaces {
			for _, name := range urlNames {
				meta, path := fmt.Sprintf(`"name":%q`, name), "/apis/"+k.apiVersion()
				if k.group == "" {
					path = "/api/v1"
				}
				rest := g.rest(k)
				if k.namespaced {
					meta, path = meta+fmt.Sprintf(`,"namespace":%q`, namespace), path+"/namespaces/"+namespace
				}
				for _, other := range urlNamespaces { // events are about objects of their own namespace
					rest = strings.ReplaceAll(rest, `:"`+other+`"`, `:"`+namespace+`"`)
				}
				if k.plural == "flowschemas" {
					rest = `,"spec":{"priorityLevelConfiguration":{"name":"global-default"}}`
				}
				s.must(t, asked{method: "POST", target: path + "/" + k.plural, contentType: "application/json",
					body: fmt.Sprintf(`{"apiVersion":%q,"kind":%q,"metadata":{%s}%s}`, k.apiVersion(), k.kind, meta, rest)})
			}
		}
	}
}

// ask makes requests and compares.
func (s *observedServer) ask(t *testing.T, sum *tally, seed uint64, n int) {
	var group sync.WaitGroup
	for worker := range urlWorkers {
		g := grammar{rand.New(rand.NewPCG(seed, uint64(worker)))}
		group.Go(func() {
			for range n / urlWorkers {
				s.compare(t, sum, g.request())
			}
		})
	}
	group.Wait()
}

// compare makes a request, and reports what differs from what was authorized.
func (s *observedServer) compare(t *testing.T, sum *tally, a asked) {
	sum.urls.Add(1)
	o, w, err := s.do(a)
	if err != nil {
		sum.malformed.Add(1)
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case w.Code < 300:
		sum.served.Add(1)
	case w.Code >= 500:
		sum.refused.Add(1)
		canceled := len(o.authorized) > 0 && o.authorized[0].GetVerb() == "watch" && w.Code == http.StatusServiceUnavailable
		if text := w.Body.String(); !canceled && !strings.Contains(text, "context canceled") && !strings.Contains(text, "resourceVersion: Invalid value") {
			o.differ("the answer is %d: %.300s", w.Code, w.Body)
		}
	default:
		sum.refused.Add(1)
	}
	if len(o.authorized) > 0 && o.authorized[0].IsResourceRequest() {
		sum.resources.Add(1)
	}
	o.compareTouched(sum)
	o.compareAdmitted(sum)
	o.compareAudit(sum)
	o.compareFlow(sum)
	if w.Code < 300 && a.method != "HEAD" {
		body, _ := io.ReadAll(w.Body)
		o.compareAnswer(sum, body)
	}
	for _, d := range o.differences {
		if sum.differences.Add(1) <= 25 {
			t.Errorf("%s (body %.120s): %s", a, a.body, d)
		}
	}
}

// shown is what the comparison reads of an answer.
type shown struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		Name      string `json:"name"`
		Namespace string `json:"namespace"`
	} `json:"metadata"`
	Items []shown `json:"items"`
}

// shownIn returns the objects of an answer: of one, of a list, or of the events of
// a watch.
func shownIn(body []byte, watch bool) (list []shown) {
	if watch {
		for d := json.NewDecoder(bytes.NewReader(body)); ; {
			var event struct {
				Type   string `json:"type"`
				Object shown  `json:"object"`
			}
			if d.Decode(&event) != nil {
				return list
			}
			if event.Type != "BOOKMARK" {
				list = append(list, event.Object)
			}
		}
	}
	var one shown
	switch {
	case json.Unmarshal(body, &one) != nil:
		return nil
	case strings.HasSuffix(one.Kind, "List"):
		return one.Items
	}
	return []shown{one}
}

// compareAnswer looks whether the objects of an answer are those that were
// authorized.
func (o *observation) compareAnswer(sum *tally, body []byte) {
	if len(o.authorized) == 0 || !o.authorized[0].IsResourceRequest() {
		return
	}
	a := o.authorized[0]
	list := shownIn(body, a.GetVerb() == "watch")
	k := findKind(a.GetAPIGroup(), a.GetResource())
	if k == nil {
		o.differ("%s %s.%s is served, and no such resource exists: %.200s", a.GetVerb(), a.GetResource(), a.GetAPIGroup(), body)
		return
	}
	if a.GetSubresource() == "scale" || a.GetSubresource() == "token" {
		return // of kinds of their own
	}
	for _, one := range list {
		if one.APIVersion == "v1" && one.Kind == "Status" {
			continue
		}
		sum.answers.Add(1)
		if one.Kind != "" && (one.Kind != k.kind || one.APIVersion != strings.TrimPrefix(a.GetAPIGroup()+"/"+a.GetAPIVersion(), "/")) {
			o.differ("the answer has a %s of %s", one.Kind, one.APIVersion)
		}
		if a.GetName() != "" && one.Metadata.Name != a.GetName() {
			o.differ("the answer has %q, authorized was %q", one.Metadata.Name, a.GetName())
		}
		if k.namespaced && a.GetNamespace() != "" && one.Metadata.Namespace != a.GetNamespace() {
			o.differ("the answer is of namespace %q, authorized was %q", one.Metadata.Namespace, a.GetNamespace())
		}
	}
}
