package builtin

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/audit"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/filters"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/espalier-dev/espalier/internal/etcdtest"
	"github.com/espalier-dev/espalier/server/store"
)

func TestMain(m *testing.M) { etcdtest.Main(m) }

// env is a server for built-in resources over etcd, reached by HTTP.
type env struct {
	tb        testing.TB
	url       string
	resources *Resources
	etcd      *clientv3.Client
	prefix    string
}

// start serves resources: the standard ones and events if none are given.
func start(tb testing.TB, resources ...Resource) *env {
	tb.Helper()
	if resources == nil {
		resources = append(Standard(), Events(0)...)
	}
	etcd, prefix := etcdtest.Client(tb)
	ctx, cancel := context.WithCancel(context.Background())
	backend, err := store.Open(ctx, store.Config{Config: storagebackend.Config{
		Prefix: prefix, Transport: storagebackend.TransportConfig{ServerList: []string{etcdtest.Endpoint(tb)}},
	}})
	if err != nil {
		tb.Fatal(err)
	}
	e := &env{tb: tb, etcd: etcd, prefix: prefix}
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
	e.url = web.URL
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
	return filters.WithRequestInfo(filters.WithWarningRecorder(h), &request.RequestInfoFactory{
		APIPrefixes: sets.NewString("api", "apis"), GrouplessAPIPrefixes: sets.NewString("api"),
	})
}

// client is a client that speaks a media type.
func (e *env) client(mediaType string) kubernetes.Interface {
	e.tb.Helper()
	c, err := kubernetes.NewForConfig(&rest.Config{Host: e.url, QPS: -1, ContentConfig: rest.ContentConfig{ContentType: mediaType, AcceptContentTypes: mediaType}})
	if err != nil {
		e.tb.Fatal(err)
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
	e.tb.Helper()
	r, err := e.etcd.Get(context.Background(), e.prefix+key)
	if err != nil {
		e.tb.Fatal(err)
	}
	if len(r.Kvs) == 0 {
		return nil
	}
	return r.Kvs[0].Value
}

// answer is what the server says.
type answer struct {
	tb     testing.TB
	code   int
	header http.Header
	body   []byte
	object map[string]any
}

// do sends a request. Headers are given as "Name: value".
func (e *env) do(method, path, body string, headers ...string) answer {
	e.tb.Helper()
	req, err := http.NewRequest(method, e.url+path, strings.NewReader(body))
	if err != nil {
		e.tb.Fatal(err)
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		req.Header.Set(name, value)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		e.tb.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	a := answer{tb: e.tb, code: resp.StatusCode, header: resp.Header}
	if a.body, err = io.ReadAll(resp.Body); err != nil {
		e.tb.Fatal(err)
	}
	if strings.HasPrefix(string(a.body), "{") {
		if err := json.Unmarshal(a.body, &a.object); err != nil {
			e.tb.Fatalf("%v: %s", err, a.body)
		}
	}
	return a
}

// patch sends a patch: json, merge, strategic or apply.
func (e *env) patch(kind, path, body string) answer {
	e.tb.Helper()
	types := map[string]string{
		"json": "application/json-patch+json", "merge": "application/merge-patch+json", "apply": "application/apply-patch+yaml",
		"strategic": "application/strategic-merge-patch+json",
	}
	return e.do(http.MethodPatch, path, body, "Content-Type: "+types[kind])
}

// is fails the test unless the answer has the code, and returns it.
func (a answer) is(code int) answer {
	a.tb.Helper()
	if a.code != code {
		a.tb.Fatalf("the answer is %d, not %d: %s", a.code, code, a.body)
	}
	return a
}

// says fails the test unless the answer is an error whose message has the text.
func (a answer) says(text string) answer {
	a.tb.Helper()
	if got, _ := a.at("message").(string); !strings.Contains(got, text) {
		a.tb.Fatalf("the message is\n%v\nwithout\n%s", got, text)
	}
	return a
}

// at returns the value at a dotted path, nil if there is none.
func (a answer) at(path string) any {
	var value any = a.object
	for _, name := range strings.Split(path, ".") {
		switch v := value.(type) {
		case map[string]any:
			value = v[name]
		case []any:
			i := int(name[0] - '0')
			if len(name) != 1 || i < 0 || i >= len(v) {
				return nil
			}
			value = v[i]
		default:
			return nil
		}
	}
	return value
}

// has fails the test unless there is the value at a dotted path.
func (a answer) has(path string, want any) answer {
	a.tb.Helper()
	got, _ := json.Marshal(a.at(path))
	wanted, _ := json.Marshal(want)
	if string(got) != string(wanted) {
		a.tb.Fatalf("%s is %s, not %s, in %s", path, got, wanted, a.body)
	}
	return a
}

// eventually waits until a condition holds.
func eventually(tb testing.TB, condition func() bool) {
	tb.Helper()
	for deadline := time.Now().Add(20 * time.Second); !condition(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			tb.Fatal("the condition does not hold after 20 s")
		}
	}
}
