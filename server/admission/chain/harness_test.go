package chain

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	core "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	auditinternal "k8s.io/apiserver/pkg/apis/audit"
	"k8s.io/apiserver/pkg/audit"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/filters"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	webhookutil "k8s.io/apiserver/pkg/util/webhook"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/espalier-dev/espalier/server/apis/builtin"
	"github.com/espalier-dev/espalier/server/apis/customresource"
	"github.com/espalier-dev/espalier/server/apis/customresourcedefinition"
	"github.com/espalier-dev/espalier/server/catalog"
	"github.com/espalier-dev/espalier/server/endpoints"
	"github.com/espalier-dev/espalier/server/endpoints/apitest"
	"github.com/espalier-dev/espalier/server/endpoints/discovery"
	"github.com/espalier-dev/espalier/server/endpoints/openapihandler"
	"github.com/espalier-dev/espalier/server/endpoints/requestinfo"
	"github.com/espalier-dev/espalier/server/etcdtest"
	"github.com/espalier-dev/espalier/server/storage/converter"
	"github.com/espalier-dev/espalier/server/storage/store"
	"github.com/espalier-dev/espalier/server/webhook"
)

func TestMain(m *testing.M) { etcdtest.Main(m) }

// env is a server for CRDs, custom resources and settings of admission,
// over etcd, with the chain.
type env struct {
	apitest.Caller
	chain   *Chain
	client  kubernetes.Interface
	catalog *catalog.Catalog
	etcd    *clientv3.Client
	prefix  string
	audited *atomic.Pointer[map[string]string] // annotations of the last request
	custom  *customresource.Server
	builtin *builtin.Resources
}

var everyone = authorizer.AuthorizerFunc(func(context.Context, authorizer.Attributes) (authorizer.Decision, string, error) {
	return authorizer.DecisionAllow, "", nil
})

func start(tb testing.TB, change ...func(*Options)) *env {
	tb.Helper()
	etcd, prefix := etcdtest.Client(tb)
	ctx, cancel := context.WithCancel(context.Background())
	backend, err := store.Open(ctx, store.Config{Config: storagebackend.Config{
		Prefix: prefix, Transport: storagebackend.TransportConfig{ServerList: []string{etcdtest.Endpoint(tb)}},
	}})
	must(tb, err)
	e := &env{Caller: apitest.Caller{TB: tb}, etcd: etcd, prefix: prefix, audited: &atomic.Pointer[map[string]string]{}}
	var handler http.Handler // set before it is asked
	web := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) { handler.ServeHTTP(w, req) }))
	config := &rest.Config{Host: "http://" + web.Listener.Addr().String(), QPS: -1}
	e.URL = config.Host
	e.client, err = kubernetes.NewForConfig(config)
	must(tb, err)
	dynamics, err := dynamic.NewForConfig(config)
	must(tb, err)
	informers := informers.NewSharedInformerFactory(e.client, 0)
	webhooks, err := webhook.New(webhook.Options{AllowedNetworks: webhook.Everywhere})
	must(tb, err)
	o := Options{Webhooks: webhooks, Client: e.client, Dynamic: dynamics, Informers: informers, Authorizer: everyone}
	for _, f := range change {
		f(&o)
	}
	e.chain, err = New(ctx, o)
	must(tb, err)

	crds, err := customresourcedefinition.New(customresourcedefinition.Options{Backend: backend, Authorizer: everyone, Admission: e.chain})
	must(tb, err)
	e.builtin, err = builtin.New(builtin.Options{Backend: backend, Authorizer: everyone, Admission: e.chain}, append(builtin.Standard(), builtin.Policies(builtin.PolicyOptions{})...)...)
	must(tb, err)
	e.catalog = catalog.New(crds.Store().Storage.Storage)
	conversion, err := converter.NewFactory(webhookutil.NewDefaultServiceResolver(), webhooks)
	must(tb, err)
	e.custom = customresource.New(customresource.Options{
		Catalog: e.catalog, Backend: backend, Conversion: conversion, NotFound: http.NotFoundHandler(), Authorizer: everyone, Admission: e.chain,
	})
	var tasks sync.WaitGroup
	tasks.Go(func() { _ = e.catalog.Run(ctx) })
	tasks.Go(func() { _ = e.custom.Run(ctx) })
	<-e.catalog.Synced()
	handler = e.filters(e.routes(crds))
	web.Start()
	informers.Start(ctx.Done())
	informers.WaitForCacheSync(ctx.Done())
	apitest.Eventually(tb, e.chain.Idle)
	for _, name := range []string{"default", "kube-system"} {
		e.namespace(name)
	}
	tb.Cleanup(func() {
		cancel()
		web.CloseClientConnections()
		web.Close()
		informers.Shutdown()
		tasks.Wait()
		crds.Store().DestroyFunc()
		if err := backend.Close(); err != nil {
			tb.Error(err)
		}
	})
	return e
}

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

// routes sends requests to where they are answered.
func (e *env) routes(crds *customresourcedefinition.Resource) http.Handler {
	groups, documents := discovery.New(e.catalog, append(e.builtin.Discovery(), discovery.APIExtensions())...), openapihandler.New(e.catalog, openapihandler.APIExtensions()...)
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		info, _ := request.RequestInfoFrom(req.Context())
		switch {
		case strings.HasPrefix(req.URL.Path, "/openapi/"):
			documents.ServeHTTP(w, req)
		case !info.IsResourceRequest:
			groups.ServeHTTP(w, req)
		case info.Resource == "customresourcedefinitions":
			endpoints.Serve(w, req, info, crds.Endpoint(info.APIVersion, info.Subresource))
		case e.builtin.Serves(info.APIGroup, info.APIVersion):
			e.builtin.ServeHTTP(w, req)
		default:
			e.custom.ServeHTTP(w, req)
		}
	})
}

// filters are those of a server that handlers rely on.
func (e *env) filters(inner http.Handler) http.Handler {
	h := http.Handler(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		ctx := request.WithUser(req.Context(), &user.DefaultInfo{Name: "tester", Groups: []string{user.SystemPrivilegedGroup}})
		ctx = audit.WithAuditContext(ctx)
		must(e.TB, audit.AuditContextFrom(ctx).Init(audit.RequestAuditConfig{Level: auditinternal.LevelRequest}, nil))
		inner.ServeHTTP(w, req.WithContext(ctx))
		if req.Method != http.MethodGet {
			annotations := audit.AuditContextFrom(ctx).GetEventAnnotations()
			e.audited.Store(&annotations)
		}
	}))
	h = filters.WithWarningRecorder(h)
	return filters.WithRequestInfo(h, requestinfo.Resolver{})
}

// namespace makes a namespace.
func (e *env) namespace(name string, finalizers ...string) {
	e.TB.Helper()
	n := &core.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Finalizers: finalizers}}
	_, err := e.client.CoreV1().Namespaces().Create(context.Background(), n, metav1.CreateOptions{})
	must(e.TB, err)
}

// define writes a CRD into etcd, established and with the names that it
// asks for, and waits until the server knows.
func (e *env) define(text string) {
	e.TB.Helper()
	var d map[string]any
	must(e.TB, yaml.Unmarshal([]byte(text), &d))
	spec := d["spec"].(map[string]any)
	names := spec["names"].(map[string]any)
	name := fmt.Sprintf("%s.%s", names["plural"], spec["group"])
	names["singular"], names["listKind"] = strings.ToLower(names["kind"].(string)), names["kind"].(string)+"List"
	d["metadata"] = map[string]any{"name": name, "uid": "uid-of-" + name, "generation": 1}
	d["apiVersion"], d["kind"] = "apiextensions.k8s.io/v1", "CustomResourceDefinition"
	d["status"] = map[string]any{"acceptedNames": names, "storedVersions": []any{"v1"}, "conditions": []any{
		map[string]any{"type": "NamesAccepted", "status": "True"}, map[string]any{"type": "Established", "status": "True"},
	}}
	data, err := json.Marshal(d)
	must(e.TB, err)
	put, err := e.etcd.Put(context.Background(), e.prefix+catalog.Key+"/"+name, string(data))
	must(e.TB, err)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	must(e.TB, e.catalog.WaitFor(ctx, uint64(put.Header.Revision)))
}

// hook is a webhook: a TLS server.
type hook struct {
	*httptest.Server
	mu      sync.Mutex
	reviews []map[string]any
	headers []http.Header
}

// hooked starts a webhook that answers with what respond makes of the request in
// a review; nil: the request is let through.
func hooked(tb testing.TB, respond func(request, response map[string]any)) *hook {
	tb.Helper()
	h := &hook{}
	h.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		var review map[string]any
		if err := json.NewDecoder(req.Body).Decode(&review); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		h.mu.Lock()
		h.reviews, h.headers = append(h.reviews, review), append(h.headers, req.Header)
		h.mu.Unlock()
		asked := review["request"].(map[string]any)
		response := map[string]any{"uid": asked["uid"], "allowed": true}
		if respond != nil {
			respond(asked, response)
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{"apiVersion": review["apiVersion"], "kind": "AdmissionReview", "response": response})
	}))
	tb.Cleanup(h.Close)
	return h
}

// last returns the request in the last review.
func (h *hook) last(tb testing.TB) map[string]any {
	tb.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.reviews) == 0 {
		tb.Fatal("the webhook has not been called")
	}
	return h.reviews[len(h.reviews)-1]["request"].(map[string]any)
}

func (h *hook) calls() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.reviews)
}

// caOf returns the CA certificate of a server.
func caOf(s *httptest.Server) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
}

// patches has a webhook answer with a JSON patch.
func patches(patch string) func(request, response map[string]any) {
	return func(_, response map[string]any) {
		response["patch"], response["patchType"] = []byte(patch), "JSONPatch"
	}
}
