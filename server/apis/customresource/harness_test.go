package customresource

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/audit"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/filters"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	webhookutil "k8s.io/apiserver/pkg/util/webhook"
	"sigs.k8s.io/yaml"

	"github.com/espalier-dev/espalier/internal/object"
	"github.com/espalier-dev/espalier/server/catalog"
	"github.com/espalier-dev/espalier/server/endpoints/apitest"
	"github.com/espalier-dev/espalier/server/endpoints/codec"
	"github.com/espalier-dev/espalier/server/endpoints/requestinfo"
	"github.com/espalier-dev/espalier/server/etcdtest"
	"github.com/espalier-dev/espalier/server/storage/converter"
	"github.com/espalier-dev/espalier/server/storage/store"
	"github.com/espalier-dev/espalier/server/webhook"
)

func TestMain(m *testing.M) { etcdtest.Main(m) }

// env is a server for custom resources over etcd, reached by HTTP. The test writes
// CRDs into etcd.
type env struct {
	apitest.Caller
	handler http.Handler
	server  *Server
	catalog *catalog.Catalog
	etcd    *clientv3.Client
	prefix  string
	audited chan map[string]string // annotations of audit events, if a test listens
}

// crdDecoder reads CRDs as the test has written them.
type crdDecoder struct{}

func (crdDecoder) Kind() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}
}

func (f crdDecoder) FromRequest(data []byte, _ *schema.GroupVersionKind, _ bool) (*object.Object, schema.GroupVersionKind, []error, error) {
	o, err := object.FromJSON(data)
	return o, f.Kind(), nil, err
}
func (crdDecoder) FromStorage(data []byte) (*object.Object, error) { return object.FromJSON(data) }
func (crdDecoder) Renormalize(o *object.Object) *object.Object     { return o }

func start(tb testing.TB, change ...func(*Options)) *env {
	tb.Helper()
	return startWith(tb, store.Config{}, change...)
}

// startWith is start with a prefix that has been used before, or other limits.
func startWith(tb testing.TB, config store.Config, change ...func(*Options)) *env {
	tb.Helper()
	etcd, prefix := etcdtest.Client(tb)
	prefix = cmp.Or(config.Prefix, prefix)
	config.Prefix, config.Transport = prefix, storagebackend.TransportConfig{ServerList: []string{etcdtest.Endpoint(tb)}}
	ctx, cancel := context.WithCancel(context.Background())
	backend, err := store.Open(ctx, config)
	if err != nil {
		tb.Fatal(err)
	}
	crdStorage, destroy, err := backend.Storage(store.Spec{
		Resource:       schema.GroupResource{Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions"},
		ResourcePrefix: catalog.Key, Version: "v1",
		Codec:       codec.Storage(crdDecoder{}),
		NewFunc:     func() runtime.Object { return object.New(crdDecoder{}.Kind()) },
		NewListFunc: func() runtime.Object { return &object.List{} },
	})
	if err != nil {
		tb.Fatal(err)
	}
	webhooks, err := webhook.New(webhook.Options{AllowedNetworks: webhook.Everywhere})
	if err != nil {
		tb.Fatal(err)
	}
	conversion, err := converter.NewFactory(webhookutil.NewDefaultServiceResolver(), webhooks)
	if err != nil {
		tb.Fatal(err)
	}
	e := &env{Caller: apitest.Caller{TB: tb}, catalog: catalog.New(crdStorage), etcd: etcd, prefix: prefix, audited: make(chan map[string]string, 100)}
	o := Options{
		Catalog: e.catalog, Backend: backend, Conversion: conversion, NotFound: http.NotFoundHandler(),
		Authorizer: authorizer.AuthorizerFunc(func(context.Context, authorizer.Attributes) (authorizer.Decision, string, error) {
			return authorizer.DecisionAllow, "", nil
		}),
	}
	for _, f := range change {
		f(&o)
	}
	e.server = New(o)
	done := make(chan struct{}, 2)
	go func() { _ = e.catalog.Run(ctx); done <- struct{}{} }()
	go func() { _ = e.server.Run(ctx); done <- struct{}{} }()
	<-e.catalog.Synced()

	e.handler = e.filters(e.server)
	web := httptest.NewServer(e.handler)
	e.URL = web.URL
	tb.Cleanup(func() {
		web.CloseClientConnections()
		web.Close()
		cancel()
		<-done
		<-done
		destroy()
		if err := backend.Close(); err != nil {
			tb.Error(err)
		}
	})
	return e
}

// filters are those of a server that handlers rely on.
func (e *env) filters(h http.Handler) http.Handler {
	inner := h
	h = http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		ctx := request.WithUser(req.Context(), &user.DefaultInfo{Name: "tester", Groups: []string{user.SystemPrivilegedGroup}})
		ctx = audit.WithAuditContext(ctx)
		inner.ServeHTTP(w, req.WithContext(ctx))
		if annotation, ok := audit.AuditContextFrom(ctx).GetEventAnnotation(prunedAnnotation); ok {
			e.audited <- map[string]string{prunedAnnotation: annotation}
		}
	})
	h = filters.WithWarningRecorder(h)
	return filters.WithRequestInfo(h, requestinfo.Resolver{})
}

// define writes a CRD, as YAML, into etcd, established and with the
// names that it asks for, and waits until the server knows.
func (e *env) define(text string, change ...func(crd map[string]any)) {
	e.TB.Helper()
	var d map[string]any
	if err := yaml.Unmarshal([]byte(text), &d); err != nil {
		e.TB.Fatal(err)
	}
	spec := d["spec"].(map[string]any)
	names := spec["names"].(map[string]any)
	name := fmt.Sprintf("%s.%s", names["plural"], spec["group"])
	accepted := map[string]any{"singular": strings.ToLower(names["kind"].(string)), "listKind": names["kind"].(string) + "List"}
	maps.Copy(accepted, names)
	metadata, ok := d["metadata"].(map[string]any)
	if !ok {
		metadata = map[string]any{}
		d["metadata"] = metadata
	}
	maps.Copy(metadata, map[string]any{"name": name, "uid": "uid-of-" + name, "generation": 1})
	stored := []any{}
	for _, v := range spec["versions"].([]any) {
		if v := v.(map[string]any); v["storage"] == true {
			stored = append(stored, v["name"])
		}
	}
	d["apiVersion"], d["kind"] = "apiextensions.k8s.io/v1", "CustomResourceDefinition"
	d["status"] = map[string]any{
		"acceptedNames": accepted, "storedVersions": stored,
		"conditions": []any{
			map[string]any{"type": "NamesAccepted", "status": "True"},
			map[string]any{"type": "Established", "status": "True"},
		},
	}
	for _, f := range change {
		f(d)
	}
	data, err := json.Marshal(d)
	if err != nil {
		e.TB.Fatal(err)
	}
	put, err := e.etcd.Put(context.Background(), e.prefix+catalog.Key+"/"+name, string(data))
	if err != nil {
		e.TB.Fatal(err)
	}
	e.waitFor(put.Header.Revision)
}

func (e *env) waitFor(revision int64) {
	e.TB.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := e.catalog.WaitFor(ctx, uint64(revision)); err != nil {
		e.TB.Fatal(err)
	}
}
