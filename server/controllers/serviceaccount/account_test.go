package serviceaccount

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"

	"github.com/espalier-dev/espalier/server/etcdtest"
	"github.com/espalier-dev/espalier/server/restmappingtest"
)

func TestMain(m *testing.M) { etcdtest.Main(m) }

// site is a server whose namespaces get accounts.
type site struct {
	*restmappingtest.Server
	known corelisters.NamespaceLister // what is known of namespaces where accounts are made
}

// start runs a server. Accounts are made once begin has been called.
func start(t *testing.T) (s *site, begin func()) {
	t.Helper()
	s = &site{Server: restmappingtest.Start(t, restmappingtest.Options{})}
	factory := informers.NewSharedInformerFactory(s.Client, 0)
	namespaces := factory.Core().V1().Namespaces()
	s.known = namespaces.Lister()
	return s, func() {
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan error, 1)
		go func() { done <- Run(ctx, s.Client, namespaces, nil) }()
		factory.Start(ctx.Done())
		t.Cleanup(func() {
			cancel()
			if err := <-done; !errors.Is(err, context.Canceled) {
				t.Errorf("Run returned %v", err)
			}
			factory.Shutdown()
		})
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (s *site) namespace(t *testing.T, name string) {
	t.Helper()
	_, err := s.Client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	must(t, err)
}

// account returns the identity of the account of a namespace, "" if there is none.
func (s *site) account(t *testing.T, namespace string) types.UID {
	t.Helper()
	a, err := s.Client.CoreV1().ServiceAccounts(namespace).Get(t.Context(), Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return ""
	}
	must(t, err)
	return a.UID
}

func (s *site) has(t *testing.T, namespace string) types.UID {
	t.Helper()
	var uid types.UID
	restmappingtest.Eventually(t, namespace+" has an account", func() bool {
		uid = s.account(t, namespace)
		return uid != ""
	})
	return uid
}

// remove deletes the account of a namespace.
func (s *site) remove(t *testing.T, namespace string) {
	t.Helper()
	must(t, s.Client.CoreV1().ServiceAccounts(namespace).Delete(t.Context(), Name, metav1.DeleteOptions{}))
}

// again deletes the account of a namespace, and waits until there is another.
func (s *site) again(t *testing.T, namespace string) {
	t.Helper()
	before := s.has(t, namespace)
	s.remove(t, namespace)
	restmappingtest.Eventually(t, namespace+" has another account", func() bool {
		now := s.account(t, namespace)
		return now != "" && now != before
	})
}

// end marks a namespace for deletion. No controller empties it, so it stays terminating.
func (s *site) end(t *testing.T, namespace string) {
	t.Helper()
	must(t, s.Client.CoreV1().Namespaces().Delete(t.Context(), namespace, metav1.DeleteOptions{}))
}

func TestNamespacesHaveAnAccount(t *testing.T) {
	s, begin := start(t)
	s.namespace(t, "before")
	s.namespace(t, "ended")
	s.end(t, "ended")
	begin()
	s.has(t, "before")
	s.namespace(t, "after")
	s.has(t, "after")
	s.again(t, "before")
	s.again(t, "after")
	if s.account(t, "ended") != "" {
		t.Error("a namespace that was about to go has been given an account")
	}
}

func TestNoneWhereTheNamespaceEnds(t *testing.T) {
	s, begin := start(t)
	begin()
	s.namespace(t, "stays")
	s.namespace(t, "going")
	s.has(t, "going")
	s.end(t, "going")
	restmappingtest.Eventually(t, "it is known that the namespace ends", func() bool {
		ns, err := s.known.Get("going")
		return err == nil && ns.DeletionTimestamp != nil
	})
	s.remove(t, "going")
	// Accounts that go later are back: it was the turn of this one, twice over.
	s.again(t, "stays")
	s.again(t, "stays")
	if s.account(t, "going") != "" {
		t.Error("the account has come back to a namespace that is about to go")
	}
}

// The controller ignores other accounts.
func TestOthersStayAway(t *testing.T) {
	s, begin := start(t)
	begin()
	s.namespace(t, "shop")
	s.has(t, "shop")
	accounts := s.Client.CoreV1().ServiceAccounts("shop")
	_, err := accounts.Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "robot"}}, metav1.CreateOptions{})
	must(t, err)
	must(t, accounts.Delete(t.Context(), "robot", metav1.DeleteOptions{}))
	s.again(t, "shop")
	all, err := accounts.List(t.Context(), metav1.ListOptions{})
	must(t, err)
	if len(all.Items) != 1 || all.Items[0].Name != Name {
		t.Errorf("the accounts are %v", all.Items)
	}
}

// held keeps lists and watches of accounts until it is closed.
type held struct {
	http.RoundTripper
	until chan struct{}
}

func (h held) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Method == http.MethodGet && strings.HasSuffix(req.URL.Path, "/api/v1/serviceaccounts") {
		select {
		case <-h.until:
		case <-req.Context().Done():
		}
	}
	return h.RoundTripper.RoundTrip(req)
}

// An account that is deleted before the watch of accounts begins is created again.
func TestGoneBeforeTheWatch(t *testing.T) {
	s, begin := start(t)
	until := make(chan struct{})
	s.Config.Wrap(func(next http.RoundTripper) http.RoundTripper { return held{next, until} })
	var err error
	s.Client, err = kubernetes.NewForConfig(s.Config)
	must(t, err)
	begin()
	s.namespace(t, "shop")
	for deadline := time.Now().Add(500 * time.Millisecond); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		if s.account(t, "shop") != "" {
			s.remove(t, "shop")
			break
		}
	}
	close(until)
	s.has(t, "shop")
}
