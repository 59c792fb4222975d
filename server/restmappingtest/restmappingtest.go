package restmappingtest

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	"k8s.io/apiserver/pkg/endpoints/filters"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/apiserver/pkg/storage/value"
	webhookutil "k8s.io/apiserver/pkg/util/webhook"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/espalier-dev/espalier/server/apis/builtin"
	"github.com/espalier-dev/espalier/server/apis/customresource"
	"github.com/espalier-dev/espalier/server/apis/customresourcedefinition"
	"github.com/espalier-dev/espalier/server/catalog"
	"github.com/espalier-dev/espalier/server/catalog/restmapping"
	"github.com/espalier-dev/espalier/server/controllers/crdcontroller"
	"github.com/espalier-dev/espalier/server/endpoints"
	"github.com/espalier-dev/espalier/server/endpoints/requestinfo"
	"github.com/espalier-dev/espalier/server/etcdtest"
	"github.com/espalier-dev/espalier/server/storage/converter"
	"github.com/espalier-dev/espalier/server/storage/store"
	"github.com/espalier-dev/espalier/server/webhook"
)

// Server is a server of a test, and clients of it.
type Server struct {
	Backend  *store.Backend
	Prefix   string
	Catalog  *catalog.Catalog
	CRDs     *customresourcedefinition.Resource
	Objects  *customresource.Server
	Kinds    *restmapping.Kinds
	Config   *rest.Config
	Metadata metadata.Interface
	Dynamic  dynamic.Interface
	Client   kubernetes.Interface
}

// Options are what tests differ in.
type Options struct {
	Transformers value.ResourceTransformers
	// Protect rejects the deletion of CRDs with instances.
	Protect bool
	// RequirePlan rejects changes of CRDs that lose data.
	RequirePlan bool
	// Authorizer is asked by the handlers of CRDs; nil allows everything.
	Authorizer authorizer.UnconditionalAuthorizer
	// Prefix is that of an earlier server of the test; empty means a new one.
	Prefix string
}

// Start runs a server until the test ends.
func Start(tb testing.TB, o Options) *Server {
	tb.Helper()
	s := &Server{Prefix: o.Prefix}
	if s.Prefix == "" {
		s.Prefix = etcdtest.Prefix(tb)
	}
	config := storagebackend.NewDefaultConfig(s.Prefix, nil)
	config.Transport.ServerList = []string{etcdtest.Endpoint(tb)}
	config.CompactionInterval = 0
	var err error
	s.Backend, err = store.Open(context.Background(), store.Config{Config: *config, Transformers: o.Transformers})
	must(tb, err)
	anything := authorizerfactory.NewAlwaysAllowAuthorizer()
	webhooks, err := webhook.New(webhook.Options{AllowedNetworks: webhook.Everywhere})
	must(tb, err)
	conversion, err := converter.NewFactory(webhookutil.NewDefaultServiceResolver(), webhooks)
	must(tb, err)
	if o.Authorizer == nil {
		o.Authorizer = anything
	}
	crds, err := customresourcedefinition.New(customresourcedefinition.Options{
		Backend: s.Backend, Authorizer: o.Authorizer, ProtectInstances: o.Protect, Conversion: conversion, RequirePlan: o.RequirePlan,
	})
	must(tb, err)
	s.CRDs = crds
	s.Catalog = catalog.New(crds.Store().Storage.Storage)
	objects := customresource.New(customresource.Options{
		Catalog: s.Catalog, Backend: s.Backend, Conversion: conversion, NotFound: http.NotFoundHandler(), Authorizer: anything,
	})
	s.Objects = objects
	controller := crdcontroller.New(s.Catalog, crds, objects, crdcontroller.Options{
		Barrier: func(context.Context, *catalog.Entry) error { return nil },
	})
	resources, err := builtin.New(builtin.Options{Backend: s.Backend, Authorizer: anything}, append(builtin.Standard(), builtin.Events(time.Hour)...)...)
	must(tb, err)
	s.Kinds = restmapping.New(s.Catalog, append(resources.Kinds(), restmapping.CustomResourceDefinitions)...)

	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{}, 3)
	for _, run := range []func(context.Context) error{s.Catalog.Run, objects.Run, controller.Run} {
		go func() { _ = run(ctx); done <- struct{}{} }()
	}
	<-s.Catalog.Synced()
	web := httptest.NewServer(chain(route(crds, resources, objects)))
	tb.Cleanup(func() {
		web.CloseClientConnections()
		web.Close()
		cancel()
		for range 3 {
			<-done
		}
		for _, r := range resources.All() {
			if store := resources.Store(schema.GroupResource{Group: r.Group, Resource: r.Plural}); store != nil {
				store.Destroy()
			}
		}
		crds.Store().Destroy()
		_ = s.Backend.Close()
	})
	s.connect(tb, web.URL)
	return s
}

func (s *Server) connect(tb testing.TB, url string) {
	s.Config = &rest.Config{Host: url, QPS: -1}
	var err error
	s.Metadata, err = metadata.NewForConfig(s.Config)
	must(tb, err)
	s.Dynamic, err = dynamic.NewForConfig(s.Config)
	must(tb, err)
	s.Client, err = kubernetes.NewForConfig(s.Config)
	must(tb, err)
}

// route passes requests to the handler of their group.
func route(crds *customresourcedefinition.Resource, resources *builtin.Resources, objects http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		info, _ := request.RequestInfoFrom(req.Context())
		switch {
		case info.APIGroup == "apiextensions.k8s.io":
			if endpoint := crds.Endpoint(info.APIVersion, info.Subresource); endpoint != nil {
				endpoints.Serve(w, req, info, endpoint)
				return
			}
			http.NotFound(w, req)
		case resources.Serves(info.APIGroup, info.APIVersion):
			resources.ServeHTTP(w, req)
		default:
			objects.ServeHTTP(w, req)
		}
	})
}

// chain are the filters that handlers rely on.
func chain(h http.Handler) http.Handler {
	inner := h
	h = http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		ctx := request.WithUser(req.Context(), &user.DefaultInfo{Name: "tester", Groups: []string{user.SystemPrivilegedGroup}})
		inner.ServeHTTP(w, req.WithContext(ctx))
	})
	h = filters.WithAuditInit(filters.WithWarningRecorder(h))
	return filters.WithRequestInfo(h, requestinfo.Resolver{})
}

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

// CRD returns a CRD with one version, v1, whose objects may have any fields. The kind
// is the plural in title case without its last letter.
func CRD(plural, group string, namespaced bool) *unstructured.Unstructured {
	singular := strings.TrimSuffix(plural, "s")
	scope := "Cluster"
	if namespaced {
		scope = "Namespaced"
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": plural + "." + group},
		"spec": map[string]any{
			"group": group, "scope": scope,
			"names": map[string]any{"plural": plural, "singular": singular, "kind": strings.ToUpper(singular[:1]) + singular[1:]},
			"versions": []any{map[string]any{
				"name": "v1", "served": true, "storage": true,
				"schema": map[string]any{"openAPIV3Schema": map[string]any{
					"type": "object", "x-kubernetes-preserve-unknown-fields": true,
				}},
			}},
		},
	}}
}

// Define creates a CRD and waits until it is served.
func (s *Server) Define(tb testing.TB, d *unstructured.Unstructured) {
	tb.Helper()
	_, err := s.Dynamic.Resource(restmapping.CustomResourceDefinitions.Resource).Create(tb.Context(), d, metav1.CreateOptions{})
	must(tb, err)
	Eventually(tb, d.GetName()+" is served", func() bool {
		e := s.Catalog.Get(d.GetName())
		return e != nil && e.Established
	})
}

// Object is a new object of a kind of the server.
func (s *Server) Object(tb testing.TB, apiVersion, kind, namespace, name string, owners ...metav1.OwnerReference) *unstructured.Unstructured {
	tb.Helper()
	o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": apiVersion, "kind": kind}}
	o.SetName(name)
	o.SetNamespace(namespace)
	o.SetOwnerReferences(owners)
	return s.Create(tb, o)
}

// Create creates an object.
func (s *Server) Create(tb testing.TB, o *unstructured.Unstructured) *unstructured.Unstructured {
	tb.Helper()
	created, err := s.Of(tb, o).Create(tb.Context(), o, metav1.CreateOptions{})
	must(tb, err)
	return created
}

// Of returns the client for the resource and namespace of o.
func (s *Server) Of(tb testing.TB, o *unstructured.Unstructured) dynamic.ResourceInterface {
	tb.Helper()
	kind, ok := s.Kinds.ByOwner(o.GetAPIVersion(), o.GetKind())
	if !ok {
		tb.Fatalf("no kind %s in %s", o.GetKind(), o.GetAPIVersion())
	}
	if kind.Namespaced {
		return s.Dynamic.Resource(kind.Resource).Namespace(o.GetNamespace())
	}
	return s.Dynamic.Resource(kind.Resource)
}

// Get reads an object again; nil if it is gone, or another has its name.
func (s *Server) Get(tb testing.TB, o *unstructured.Unstructured) *unstructured.Unstructured {
	tb.Helper()
	current, err := s.Of(tb, o).Get(tb.Context(), o.GetName(), metav1.GetOptions{})
	if apierrors.IsNotFound(err) || err == nil && current.GetUID() != o.GetUID() {
		return nil
	}
	must(tb, err)
	return current
}

// Delete deletes an object.
func (s *Server) Delete(tb testing.TB, o *unstructured.Unstructured, policy metav1.DeletionPropagation) {
	tb.Helper()
	must(tb, s.Of(tb, o).Delete(tb.Context(), o.GetName(), metav1.DeleteOptions{PropagationPolicy: &policy}))
}

// Owner is a reference to an object that blocks its deletion.
func Owner(o *unstructured.Unstructured) metav1.OwnerReference {
	yes := true
	return metav1.OwnerReference{APIVersion: o.GetAPIVersion(), Kind: o.GetKind(), Name: o.GetName(), UID: o.GetUID(), BlockOwnerDeletion: &yes}
}

// Eventually waits until a condition holds.
func Eventually(tb testing.TB, what string, condition func() bool) {
	tb.Helper()
	for deadline := time.Now().Add(time.Minute); !condition(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			tb.Fatalf("after a minute still not: %s", what)
		}
	}
}
