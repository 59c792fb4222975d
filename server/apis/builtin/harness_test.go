package builtin

import (
	"context"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/audit"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/filters"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/espalier-dev/espalier/server/endpoints/apitest"
	"github.com/espalier-dev/espalier/server/endpoints/requestinfo"
	"github.com/espalier-dev/espalier/server/etcdtest"
	"github.com/espalier-dev/espalier/server/storage/store"
)

func TestMain(m *testing.M) { etcdtest.Main(m) }

// env is a server for built-in resources over etcd, reached by HTTP.
type env struct {
	apitest.Caller
	resources *Resources
	etcd      *clientv3.Client
	prefix    string
}

// start serves resources: the standard ones and events if none are given.
func start(tb testing.TB, resources ...Resource) *env {
	tb.Helper()
	if resources == nil {
		resources = slices.Concat(Standard(), Events(0), Policies(PolicyOptions{}))
	}
	etcd, prefix := etcdtest.Client(tb)
	ctx, cancel := context.WithCancel(context.Background())
	backend, err := store.Open(ctx, store.Config{Config: storagebackend.Config{
		Prefix: prefix, Transport: storagebackend.TransportConfig{ServerList: []string{etcdtest.Endpoint(tb)}},
	}})
	if err != nil {
		tb.Fatal(err)
	}
	e := &env{Caller: apitest.Caller{TB: tb}, etcd: etcd, prefix: prefix}
	e.resources, err = New(Options{
		Backend: backend,
		Authorizer: authorizer.AuthorizerFunc(func(context.Context, authorizer.Attributes) (authorizer.Decision, string, error) {
			return authorizer.DecisionAllow, "", nil
		}),
	}, resources...)
	if err != nil {
		tb.Fatal(err)
	}
	web := httptest.NewServer(withFilters(e.resources))
	e.URL = web.URL
	tb.Cleanup(func() {
		web.CloseClientConnections()
		web.Close()
		cancel()
		if err := backend.Close(); err != nil {
			tb.Error(err)
		}
	})
	return e
}

// withFilters are those of a server that handlers rely on.
func withFilters(inner http.Handler) http.Handler {
	h := http.Handler(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		ctx := request.WithUser(req.Context(), &user.DefaultInfo{Name: "tester", Groups: []string{user.SystemPrivilegedGroup}})
		inner.ServeHTTP(w, req.WithContext(audit.WithAuditContext(ctx)))
	}))
	return filters.WithRequestInfo(filters.WithWarningRecorder(h), requestinfo.Resolver{})
}

// client is a client that speaks a media type.
func (e *env) client(mediaType string) kubernetes.Interface {
	e.TB.Helper()
	c, err := kubernetes.NewForConfig(&rest.Config{Host: e.URL, QPS: -1, ContentConfig: rest.ContentConfig{ContentType: mediaType, AcceptContentTypes: mediaType}})
	if err != nil {
		e.TB.Fatal(err)
	}
	return c
}

// clients are clients for all that the server speaks.
func (e *env) clients() map[string]kubernetes.Interface {
	return map[string]kubernetes.Interface{
		"json":     e.client(runtime.ContentTypeJSON),
		"protobuf": e.client(runtime.ContentTypeProtobuf),
	}
}

// stored is what etcd has under a key, without the prefix of the test.
func (e *env) stored(key string) []byte {
	e.TB.Helper()
	r, err := e.etcd.Get(context.Background(), e.prefix+key)
	if err != nil {
		e.TB.Fatal(err)
	}
	if len(r.Kvs) == 0 {
		return nil
	}
	return r.Kvs[0].Value
}
