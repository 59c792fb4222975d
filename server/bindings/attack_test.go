package bindings_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/espalier-dev/espalier/server/bindings"
	"github.com/espalier-dev/espalier/server/tenants"
)

// A consumer takes back what it has accepted, although the provider no longer lets it bind the
// export, and so serves nothing.
func TestTakeBackWhileRefused(t *testing.T) {
	w := start(t, "provider", "one")
	w.provide("provider", toAll)
	w.bind("one", "provider", everything)
	w.create(w.in("one").Resource(webs).Namespace("default"), web("a", "x"))
	w.patch(w.in("provider").Resource(bindings.Exports), "webs", `{"spec": {"consumers": null}}`)
	w.reason("one", "webs", "NotFound")
	w.patch(w.in("one").Resource(bindings.Bindings), "webs", `{"spec": {"accept": null}}`)
	w.eventually(func() error {
		if n := w.names(w.of("provider", "*").Resource(webs), metav1.ListOptions{}); len(n) > 0 {
			return fmt.Errorf("the provider sees %v", n)
		}
		if _, err := w.of("provider", "one").Resource(webs).List(t.Context(), metav1.ListOptions{}); !apierrors.IsNotFound(err) {
			return fmt.Errorf("the provider lists: %w", err)
		}
		return nil
	})
}

// Nothing of an object that the provider may not see reaches a decoder, whose errors and conversions
// are the provider's.
func TestHiddenIsNotDecoded(t *testing.T) {
	w := start(t, "provider", "one", "hidden")
	w.provide("provider", toAll)
	w.bind("one", "provider", everything)
	w.bind("hidden", "provider")
	w.create(w.in("one").Resource(webs).Namespace("default"), web("a", "x"))
	w.create(w.in("hidden").Resource(webs).Namespace("default"), web("s3cr3t", "x"))
	object, mark := w.keys("-tenants/"+w.uid("hidden"), "/s3cr3t")[0], w.keys("-shared/", "/s3cr3t")[0]
	if _, err := w.etcd.Txn(t.Context()).Then(clientv3.OpPut(object, `{"apiVersion": "example.com/v1", "kind": "Web", "metadata": {"name": "other"}}`), clientv3.OpPut(mark, "")).Commit(); err != nil {
		t.Fatal(err)
	}
	said := &warnings{}
	c := rest.CopyConfig(w.config)
	c.Host += tenants.Path("provider") + tenants.Path("*")
	c.WarningHandler = said
	client, err := dynamic.NewForConfig(c)
	if err != nil {
		t.Fatal(err)
	}
	if got := w.names(client.Resource(webs), metav1.ListOptions{}); fmt.Sprint(got) != "[one/a]" {
		t.Error(got)
	}
	if text := said.String(); text != "" {
		t.Error(text)
	}
	// Pages that would be empty without what is hidden.
	for i := range 5 {
		w.create(w.in("hidden").Resource(webs).Namespace("default"), web(fmt.Sprintf("h%d", i), "x"))
	}
	var paged []string
	for options := (metav1.ListOptions{Limit: 1}); ; {
		page, err := client.Resource(webs).List(t.Context(), options)
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range page.Items {
			paged = append(paged, o.GetName())
		}
		if options.Continue = page.GetContinue(); options.Continue == "" {
			break
		}
	}
	if fmt.Sprint(paged) != "[a]" {
		t.Error("in pages:", paged)
	}
}

type warnings struct {
	mu  sync.Mutex
	all strings.Builder
}

func (s *warnings) HandleWarningHeader(_ int, _, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all.WriteString(text + "\n")
}

func (s *warnings) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all.String()
}

// A create that was under way while its resource was unbound does not leave an object that no mark
// tells of.
func TestCreateAfterUnbinding(t *testing.T) {
	w := start(t, "provider", "one")
	w.provide("provider", toAll)
	w.bind("one", "provider", everything)
	client := w.account("one", "slow", true)
	for what, again := range map[string]func(){
		"own": func() { w.create(w.in("one").Resource(crds), crd("webs", "Web")) },
		"":    func() {},
	} {
		body, late := io.Pipe()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, w.config.Host+"/clusters/one/apis/example.com/v1/namespaces/default/webs", body)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		answered := make(chan string, 1)
		go func() {
			resp, err := client.Do(req)
			if err != nil {
				answered <- err.Error()
				return
			}
			defer resp.Body.Close()
			text, _ := io.ReadAll(resp.Body) // for the message only
			answered <- fmt.Sprintf("%d %s", resp.StatusCode, text)
		}()
		if _, err := late.Write([]byte(`{"apiVersion": "example.com/v1", "kind": "Web", "metadata": {`)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(300 * time.Millisecond) // it is being read
		w.unbind("one", "webs")
		again()
		if _, err := late.Write([]byte(`"name": "late"}, "spec": {"image": "x"}}`)); err != nil {
			t.Fatal(err)
		}
		_ = late.Close() // of a pipe
		t.Log(what, <-answered)
		if left := w.keys(w.uid("one"), "/webs/"); len(left) > 0 {
			t.Errorf("%s: %v", what, left)
		}
		if what != "" {
			if err := w.in("one").Resource(crds).Delete(t.Context(), "webs.example.com", metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
			w.eventually(func() error {
				_, err := w.in("one").Resource(crds).Get(t.Context(), "webs.example.com", metav1.GetOptions{})
				if apierrors.IsNotFound(err) {
					return nil
				}
				return fmt.Errorf("the CRD is there: %w", err)
			})
		}
		w.eventually(func() error { // a binding of the same name, and then a write of it
			_, err := w.in("one").Resource(bindings.Bindings).Create(t.Context(), binding("webs", "provider", "webs", everything), metav1.CreateOptions{})
			return err
		})
		w.reason("one", "webs", "Bound")
		w.create(w.in("one").Resource(webs).Namespace("default"), web("again", "x"))
	}
}

// unbind deletes a binding, and waits until it is gone.
func (w *shop) unbind(consumer, name string) {
	w.Helper()
	c := w.in(consumer).Resource(bindings.Bindings)
	if err := c.Delete(w.Context(), name, metav1.DeleteOptions{}); err != nil {
		w.Fatal(err)
	}
	w.eventually(func() error {
		_, err := c.Get(w.Context(), name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("the binding is there: %w", err)
	})
}

// A provider that converts its CRD with a webhook since it was bound does not get the objects, not
// even while they are deleted.
func TestWebhookAfterBinding(t *testing.T) {
	w := start(t, "provider", "one")
	w.provide("provider", toAll)
	w.bind("one", "provider", everything)
	held := web("held", "x")
	held.SetFinalizers([]string{"example.com/provider"})
	w.create(w.in("one").Resource(webs).Namespace("default"), held)
	w.patch(w.in("provider").Resource(crds), "webs.example.com", `{"spec": {"conversion": {"strategy": "Webhook", "webhook": {"conversionReviewVersions": ["v1"], "clientConfig": {"url": "https://127.0.0.1:1/convert"}}}}}`)
	w.reason("one", "webs", "Webhook")
	served := func() error {
		if _, err := w.in("one").Resource(webs).List(t.Context(), metav1.ListOptions{}); !apierrors.IsNotFound(err) {
			return fmt.Errorf("served with a webhook of the provider: %w", err)
		}
		return nil
	}
	w.eventually(served)
	if err := w.in("one").Resource(bindings.Bindings).Delete(t.Context(), "webs", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(2 * time.Second); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if err := served(); err != nil {
			t.Fatal(err)
		}
	}
	w.eventually(func() error {
		_, err := w.in("one").Resource(bindings.Bindings).Get(t.Context(), "webs", metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("the binding is there: %w", err)
	})
	if left := w.keys(w.uid("one"), "/webs/"); len(left) > 0 {
		t.Error(left)
	}
}

// All subresources are not the object.
func TestAcceptSubresources(t *testing.T) {
	w := start(t, "provider", "one")
	w.provide("provider", toAll)
	var many []any
	for i := range 90 {
		many = append(many, "webs.example.com/"+strings.Repeat("x", 300)+fmt.Sprint(i))
	}
	w.bind("one", "provider", accept([]any{"get"}, "webs.example.com/*"), accept([]any{"*"}, many...))
	w.create(w.in("one").Resource(webs).Namespace("default"), web("a", "x"))
	c := w.of("provider", "one").Resource(webs).Namespace("default")
	if _, err := c.Get(t.Context(), "a", metav1.GetOptions{}); !apierrors.IsForbidden(err) {
		t.Error("the object is read:", err)
	}
	for _, sub := range []string{"status", "scale"} {
		if _, err := c.Get(t.Context(), "a", metav1.GetOptions{}, sub); err != nil {
			t.Error(sub, err)
		}
	}
	found, err := w.etcd.Get(t.Context(), w.keys("-shared/", "/grants/")[0])
	if err != nil {
		t.Fatal(err)
	}
	if n := len(found.Kvs[0].Value); n > 1000 {
		t.Errorf("a grant, which the provider has in memory, has %d bytes", n)
	}
}

// A watch of all consumers ends with 410 when another one accepts it: its client lists again, instead
// of going on from where it was. A client that goes on from before that gets the same.
func TestWatchBeginsAgain(t *testing.T) {
	w := start(t, "provider", "one", "two")
	w.provide("provider", toAll)
	w.bind("one", "provider", everything)
	w.bind("two", "provider")
	w.create(w.in("two").Resource(webs).Namespace("default"), web("before", "x"))
	all := w.of("provider", "*").Resource(webs)
	list, err := all.List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	ended := func() error {
		events, err := all.Watch(t.Context(), metav1.ListOptions{ResourceVersion: list.GetResourceVersion()})
		if apierrors.IsResourceExpired(err) {
			return nil
		} else if err != nil {
			t.Fatal(err)
		}
		defer events.Stop()
		for {
			select {
			case e, ok := <-events.ResultChan():
				if !ok {
					return fmt.Errorf("the watch has ended without an error")
				}
				if status, ok := e.Object.(*metav1.Status); ok && e.Type == watch.Error && status.Code == http.StatusGone {
					return nil
				}
				t.Log(e.Type, e.Object.(*unstructured.Unstructured).GetName())
			case <-time.After(10 * time.Second):
				return fmt.Errorf("the watch goes on")
			}
		}
	}
	result := make(chan error, 1)
	go func() { result <- ended() }()
	time.Sleep(300 * time.Millisecond) // it has begun
	w.patch(w.in("two").Resource(bindings.Bindings), "webs", `{"spec": {"accept": [{"resources": ["*"], "verbs": ["*"]}]}}`)
	if err := <-result; err != nil {
		t.Error(err)
	}
	if err := ended(); err != nil {
		t.Error("once more:", err)
	}
	if got := w.names(all, metav1.ListOptions{}); fmt.Sprint(got) != "[two/before]" {
		t.Error(got)
	}
}
