package server_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/espalier-dev/espalier/server"
	"github.com/espalier-dev/espalier/server/endpoints/limit/limittest"
)

const websPath = "/apis/example.com/v1/namespaces/default/webs"

// deaf connects a client that does not read, a member of system:masters.
func (r *running) deaf(t *testing.T, kind limittest.Kind) *limittest.Client {
	t.Helper()
	certificate, key := r.clients.Client(t, "deaf", time.Hour, "system:masters")
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(r.servers.Certificate)
	c, err := limittest.Dial(t.Context(), kind, r.Address().String(), &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{pair}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// ask sends a request whose answer is not read, and waits until there is one.
func ask(t *testing.T, c *limittest.Client, path string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := c.Get(path); err != nil {
		t.Fatal(err)
	}
	if err := c.Begun(ctx); err != nil {
		t.Fatal(err)
	}
}

// fill patches an object n times with 512 KB.
func fill(t *testing.T, client dynamic.Interface, name string, n int) {
	t.Helper()
	for i := range n {
		patch := fmt.Sprintf(`{"spec":{"host":"%d%s"}}`, i, strings.Repeat("x", 512<<10))
		if _, err := client.Resource(webs).Namespace("default").Patch(t.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}

// withWeb is a server with one object.
func withWeb(t *testing.T, change ...func(*server.Options)) (*running, dynamic.Interface) {
	t.Helper()
	r := start(t, change...)
	client := r.dynamic(t)
	define(t, client)
	if _, err := client.Resource(webs).Namespace("default").Create(t.Context(), web("shop", "a"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	return r, client
}

// Clients that do not read their watches lose them after the timeout; other clients do
// not.
func TestClientThatDoesNotReadLosesItsWatch(t *testing.T) {
	t.Parallel()
	r, client := withWeb(t, func(o *server.Options) { o.Limits.WriteTimeout = time.Second })
	healthy, err := client.Resource(webs).Namespace("default").Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer healthy.Stop()
	seen := make(chan int, 1)
	go func() {
		last := 0
		for event := range healthy.ResultChan() {
			if o, ok := event.Object.(*unstructured.Unstructured); ok && strings.HasPrefix(o.UnstructuredContent()["spec"].(map[string]any)["host"].(string), "last") {
				break
			}
			last++
		}
		seen <- last
	}()
	deaf := map[limittest.Kind]*limittest.Client{}
	for _, kind := range limittest.Kinds {
		deaf[kind] = r.deaf(t, kind)
		ask(t, deaf[kind], websPath+"?watch=true")
	}
	const writes = 40 // 20 MB, more than kernels buffer
	fill(t, client, "shop", writes)
	time.Sleep(5 * time.Second) // looking for the end begins to read
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for kind, c := range deaf {
		if n, err := c.Ended(ctx); err != nil {
			t.Errorf("%s: the watch of a client that does not read goes on: %d bytes, %v", kind, n, err)
		}
	}
	if _, err := client.Resource(webs).Namespace("default").Patch(t.Context(), "shop", types.MergePatchType, []byte(`{"spec":{"host":"last"}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	select {
	case n := <-seen:
		if n != writes+1 {
			t.Errorf("the other watcher saw %d events before the last, not %d", n, writes+1)
		}
	case <-time.After(patience):
		t.Error("the other watcher does not see the last event")
	}
}

// The small answers of strangers who give them no room end after the timeout,
// though their handlers have returned long ago: those of handlers, and of filters.
func TestBlockedSmallAnswersEnd(t *testing.T) {
	t.Parallel()
	r := start(t, func(o *server.Options) { o.Limits.WriteTimeout = time.Second })
	roots := x509.NewCertPool()
	roots.AddCert(r.servers.Certificate)
	for _, path := range []string{"/livez", "/version?timeout=never", "/api/v1/namespaces"} {
		c, err := limittest.Dial(t.Context(), limittest.NoWindow, r.Address().String(), &tls.Config{RootCAs: roots})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		ask(t, c, path)
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		if _, err := c.Ended(ctx); err != nil {
			t.Errorf("%s: the answer is never ended: %v", path, err)
		}
		cancel()
	}
}

// A server ends within seconds though clients do not read their watches, lists
// and single objects.
func TestServerEndsInSpiteOfClientsThatDoNotRead(t *testing.T) {
	r, client := withWeb(t)
	for i := range 25 {
		name := fmt.Sprint("shop-", i)
		if _, err := client.Resource(webs).Namespace("default").Create(t.Context(), web(name, strings.Repeat("x", 512<<10)), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	for _, kind := range limittest.Kinds {
		ask(t, r.deaf(t, kind), websPath+"?watch=true")
		ask(t, r.deaf(t, kind), websPath)
		ask(t, r.deaf(t, kind), websPath+"/shop-1")
	}
	ask(t, r.deaf(t, limittest.NoWindow), websPath+"/shop")
	fill(t, client, "shop", 25)
	began := time.Now()
	if err := r.stop(); err != nil {
		t.Error(err)
	}
	took := time.Since(began)
	t.Logf("the end took %v", took)
	if took > 30*time.Second {
		t.Errorf("the end took %v", took)
	}
}

func TestWatchesPerUser(t *testing.T) {
	t.Parallel()
	r := start(t, func(o *server.Options) { o.Limits.WatchesPerUser = 3 })
	client := r.dynamic(t)
	role := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": map[string]any{"name": "watchers"},
		"roleRef":  map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"},
		"subjects": []any{map[string]any{"kind": "Group", "name": "watchers", "apiGroup": "rbac.authorization.k8s.io"}},
	}}
	if _, err := client.Resource(bindings).Create(t.Context(), role, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	alice, admin := r.member(t, "watchers"), r.member(t, "system:masters")
	alice.Timeout, admin.Timeout = 0, 0
	watch := func(c *http.Client) *http.Response {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, r.url+"/api/v1/configmaps?watch=true", nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := c.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = resp.Body.Close() })
		return resp
	}
	var open []*http.Response
	for deadline := time.Now().Add(patience); len(open) < 3; {
		resp := watch(alice)
		switch {
		case resp.StatusCode == http.StatusOK:
			open = append(open, resp)
		case time.Now().After(deadline):
			t.Fatal(resp.Status)
		default: // the binding is not known yet
			time.Sleep(20 * time.Millisecond)
		}
	}
	refused := watch(alice)
	var text strings.Builder
	if err := refused.Write(&text); err != nil {
		t.Fatal(err)
	}
	if refused.StatusCode != http.StatusTooManyRequests || refused.Header.Get("Retry-After") == "" ||
		!strings.Contains(text.String(), `user \"alice\" has 3 watches open`) || !strings.Contains(text.String(), "--max-watches-per-user") {
		t.Errorf("the fourth watch: %s", text.String())
	}
	if code, body := get(t, alice, r.url+"/api/v1/configmaps"); code != http.StatusOK {
		t.Errorf("a list: %d %s", code, body)
	}
	for range 5 {
		if resp := watch(admin); resp.StatusCode != http.StatusOK {
			t.Errorf("an administrator of the same name: %s", resp.Status)
		}
	}
	_ = open[0].Body.Close()
	for deadline := time.Now().Add(patience); watch(alice).StatusCode != http.StatusOK; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the place of a watch that has ended is not given back")
		}
	}
}

func TestConnectionsPerAddress(t *testing.T) {
	r := start(t, func(o *server.Options) { o.Limits.ConnectionsPerAddress = 20 })
	var open []net.Conn
	defer func() {
		for _, c := range open {
			_ = c.Close()
		}
	}()
	var closed atomic.Int64
	for range 60 {
		c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", r.Address().String())
		if err != nil {
			closed.Add(1)
			continue
		}
		open = append(open, c)
	}
	var reading sync.WaitGroup // all at once: the server ends handshakes that take long
	for _, c := range open {
		_ = c.SetReadDeadline(time.Now().Add(3 * time.Second))
		reading.Go(func() {
			var b [1]byte
			if _, err := c.Read(b[:]); err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
				closed.Add(1)
			}
		})
	}
	reading.Wait()
	if kept := 60 - closed.Load(); kept > 20 || kept < 15 { // clients of the test itself have some
		t.Errorf("%d of 60 connections are kept", kept)
	}
	for _, c := range open {
		_ = c.Close()
	}
	r.await(t, "/livez")
	_, body := get(t, r.member(t, "system:masters"), r.url+"/metrics")
	for _, want := range []string{`espalier_connections_refused_total{limit="address"} `, "espalier_connections_open ", "espalier_watch_behind_bytes 0", "espalier_watch_behind_max_events 0", `espalier_watch_ended_total{reason="behind"} `, "espalier_watch_refused_total ", `espalier_writes_ended_total{blocked="stream"} `} {
		if !strings.Contains(body, want) {
			t.Errorf("no metric %s", want)
		}
	}
}
