package rbac_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/audit"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	"k8s.io/apiserver/pkg/authorization/union"
	"k8s.io/apiserver/pkg/endpoints/filters"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	restclient "k8s.io/client-go/rest"

	"github.com/espalier-dev/espalier/server/apis/builtin"
	"github.com/espalier-dev/espalier/server/auth/accessreview"
	"github.com/espalier-dev/espalier/server/auth/rbac"
	"github.com/espalier-dev/espalier/server/endpoints/requestinfo"
	"github.com/espalier-dev/espalier/server/etcdtest"
	"github.com/espalier-dev/espalier/server/storage/store"
)

func TestMain(m *testing.M) { etcdtest.Main(m) }

// env is a server with roles, reviews and the standard resources, over etcd. Clients
// name their user in a header: the tests are about authorization only.
type env struct {
	t         *testing.T
	ctx       context.Context
	url       string
	admin     *kubernetes.Clientset
	informers informers.SharedInformerFactory
	authz     *rbac.Authorizer
}

const identityHeader = "X-Test-Identity" // name, and groups after it, separated by commas

func start(t *testing.T) *env {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	backend, err := store.Open(ctx, store.Config{Config: storagebackend.Config{
		Prefix: etcdtest.Prefix(t), Transport: storagebackend.TransportConfig{ServerList: []string{etcdtest.Endpoint(t)}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	var handler atomic.Pointer[http.Handler]
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) { (*handler.Load()).ServeHTTP(w, req) }))
	e := &env{t: t, ctx: ctx, url: web.URL}
	e.admin = e.as("admin", user.SystemPrivilegedGroup)
	e.informers = informers.NewSharedInformerFactory(e.admin, 0)
	if e.authz, err = rbac.Start(e.informers); err != nil {
		t.Fatal(err)
	}
	h := e.filters(e.resources(backend))
	handler.Store(&h)
	e.informers.Start(ctx.Done())
	t.Cleanup(func() {
		cancel()
		web.CloseClientConnections()
		web.Close()
		e.informers.Shutdown()
		if err := backend.Close(); err != nil {
			t.Error(err)
		}
	})
	return e
}

func (e *env) authorizer() authorizer.Authorizer {
	all, err := union.New(
		union.NamedAuthorizer{AuthorizerName: "masters", Authorizer: authorizerfactory.NewPrivilegedGroups(user.SystemPrivilegedGroup)},
		union.NamedAuthorizer{AuthorizerName: "rbac", Authorizer: e.authz},
	)
	if err != nil {
		e.t.Fatal(err)
	}
	return all
}

func (e *env) resources(backend *store.Backend) http.Handler {
	all := builtin.Standard()
	all = append(all, rbac.Resources(e.authz, e.authorizer())...)
	all = append(all, accessreview.Resources(e.authorizer(), e.authz, nil)...)
	served := map[string]bool{} // Standard may have come to have roles of its own
	var once []builtin.Resource
	for i := len(all) - 1; i >= 0; i-- {
		if key := all[i].Group + "/" + all[i].Plural; !served[key] {
			served[key] = true
			once = append(once, all[i])
		}
	}
	resources, err := builtin.New(builtin.Options{Backend: backend, Authorizer: e.authorizer()}, once...)
	if err != nil {
		e.t.Fatal(err)
	}
	return resources
}

func (e *env) filters(h http.Handler) http.Handler {
	h = filters.WithAuthorization(h, e.authorizer(), scheme.Codecs)
	inner := h
	h = http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		who := strings.Split(req.Header.Get(identityHeader), ",")
		ctx := request.WithUser(req.Context(), &user.DefaultInfo{Name: who[0], Groups: who[1:]})
		inner.ServeHTTP(w, req.WithContext(audit.WithAuditContext(ctx)))
	})
	h = filters.WithWarningRecorder(h)
	return filters.WithRequestInfo(h, requestinfo.Resolver{})
}

// as returns a client of a user.
func (e *env) as(name string, groups ...string) *kubernetes.Clientset {
	e.t.Helper()
	identity := strings.Join(append([]string{name}, groups...), ",")
	client, err := kubernetes.NewForConfig(&restclient.Config{
		Host: e.url, QPS: -1,
		ContentConfig: restclient.ContentConfig{ContentType: "application/vnd.kubernetes.protobuf"},
		WrapTransport: func(next http.RoundTripper) http.RoundTripper {
			return transport(func(req *http.Request) (*http.Response, error) {
				req = req.Clone(req.Context())
				req.Header.Set(identityHeader, identity)
				return next.RoundTrip(req)
			})
		},
	})
	if err != nil {
		e.t.Fatal(err)
	}
	return client
}

type transport func(*http.Request) (*http.Response, error)

func (t transport) RoundTrip(req *http.Request) (*http.Response, error) { return t(req) }

// eventually waits until f returns the empty string. What it returns says what is
// still missing.
func (e *env) eventually(f func() string) {
	e.t.Helper()
	last := ""
	err := wait.PollUntilContextTimeout(e.ctx, 10*time.Millisecond, 20*time.Second, true, func(context.Context) (bool, error) {
		last = f()
		return last == "", nil
	})
	if err != nil {
		e.t.Fatalf("%v: %s", err, last)
	}
}
