package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/request"
	genericapiserver "k8s.io/apiserver/pkg/server"

	"github.com/espalier-dev/espalier/server/apis/builtin"
	"github.com/espalier-dev/espalier/server/apis/customresource"
	"github.com/espalier-dev/espalier/server/bindings"
	"github.com/espalier-dev/espalier/server/catalog"
	"github.com/espalier-dev/espalier/server/endpoints/reply"
	"github.com/espalier-dev/espalier/server/storage/converter"
	"github.com/espalier-dev/espalier/server/storage/store"
	"github.com/espalier-dev/espalier/server/tenants"
)

// sharing is what a tenant has to do with others: the APIs that it has bound, and those that it
// exports.
type sharing struct {
	in     *Server // that the tenants are of
	of     tenants.Tenant
	prefix string // of that server
	etcd   *store.Backend
	writes *bindings.Writes
	binder *bindings.Binder

	backend *store.Backend // of the tenant
	index   *catalog.Catalog
	life    context.Context
	running sync.WaitGroup
	// view makes the server of what other tenants have bound, on the first request to it.
	view func() http.Handler
}

func (s *Server) newSharing(life context.Context, of tenants.Tenant, etcd *store.Backend) *sharing {
	prefix := s.options.Etcd.StorageConfig.Prefix
	return &sharing{in: s, of: of, prefix: prefix, etcd: etcd, writes: bindings.NewWrites(prefix, of.UID), life: life}
}

// lendFixed puts the CRDs into a catalog that every tenant has.
func (s *Server) lendFixed(index *catalog.Catalog) error {
	if s.sharing == nil {
		return nil
	}
	fixed, err := bindings.Fixed()
	for _, e := range fixed {
		index.Lend(e)
	}
	return err
}

// share binds APIs of other tenants, and shows them what they have bound of this one.
func (s *Server) share(o *Options, c *genericapiserver.Config, index *catalog.Catalog, objects *customresource.Server, conversion *converter.Factory) {
	x := s.sharing
	if x == nil {
		return
	}
	x.backend = s.backend
	x.binder = bindings.New(bindings.Options{
		Tenant: x.of, Prefix: x.prefix, Etcd: x.etcd, Backend: s.backend, Writes: x.writes, Catalog: index,
		Client: s.controlPlane.dynamic, Objects: objects, Lenders: x.in.lenders, Where: x.in.signals.tenants,
		BuiltIn: s.hasGroup,
	})
	x.index = index
	s.tasks = append(s.tasks, task{name: "api-bindings", run: x.binder.Run})
	x.view = sync.OnceValue(func() http.Handler {
		view := bindings.NewView(x.life, tenants.SharedBy(x.prefix, x.of.UID), x.etcd.Client(), c.ResourceTransformers)
		backend := x.etcd.Within(view.Part())
		objects := customresource.New(customresource.Options{
			Catalog: index, Backend: backend, Conversion: conversion, NotFound: http.NotFoundHandler(), Authorizer: c.Authorization.Authorizer,
			MaxRequestBodyBytes: c.MaxRequestBodyBytes, RequestTimeout: c.RequestTimeout, MinRequestTimeout: minRequestTimeout(c),
			Idle: o.IdleTimeout, Uncached: true, Current: s.knowledge.current, View: view,
		})
		x.running.Go(func() {
			_ = objects.Run(x.life) // it ends with the context
			_ = backend.Close()     // of a part: it only ends storages
		})
		return s.knowledge.known(objects)
	})
}

// hasGroup reports whether the server itself has resources in a group.
func (s *Server) hasGroup(group string) bool {
	return group == definitionGroup || group == bindings.Group || group == tenants.Resource.Group ||
		slices.ContainsFunc(s.builtin.All(), func(r builtin.Resource) bool { return r.Group == group })
}

// has reports whether the tenant serves a resource because it has bound it.
func (x *sharing) has(r schema.GroupResource) bool {
	e := x.index.Resource(r.Group, r.Resource)
	return e != nil && e.Loan != nil && e.Loan.Key != ""
}

// awaitBound waits for a resource that this tenant has bound, perhaps on another replica.
func (s *Server) awaitBound(ctx context.Context, r schema.GroupResource) error {
	if s.sharing == nil || r.Group == bindings.Group {
		return nil
	}
	return s.sharing.binder.Await(ctx, r)
}

// unboundByOthers is an error if other tenants have bound a resource of this one.
func (s *Server) unboundByOthers(ctx context.Context, r schema.GroupResource) error {
	if s.sharing == nil {
		return nil
	}
	n, err := bindings.ConsumersOf(ctx, s.sharing.etcd.Client(), tenants.SharedBy(s.sharing.prefix, s.sharing.of.UID), r)
	if err == nil && n > 0 {
		err = fmt.Errorf("%d tenants have bound %s: they must delete their APIBindings first", n, r)
	}
	return err
}

type sharedKey struct{}

// everyone is what stands for all tenants in a path.
const everyone = "*"

// consumerOf is the tenant, or everyone, whose objects a request of a provider is for; empty for
// other requests.
func consumerOf(ctx context.Context) string {
	name, _ := ctx.Value(sharedKey{}).(string)
	return name
}

// split takes /clusters/NAME off the path of a request of a provider.
func (x *sharing) split(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		name, path, raw, ok := tenants.Split(req.URL.Path, req.URL.RawPath)
		if !ok || tenants.VisitOf(req.Context()) != nil || consumerOf(req.Context()) != "" {
			next.ServeHTTP(w, req)
			return
		}
		req = req.WithContext(context.WithValue(req.Context(), sharedKey{}, name))
		below := *req.URL
		below.Path, below.RawPath = path, raw
		req.URL = &below
		next.ServeHTTP(w, req)
	})
}

// serve answers requests of a provider for objects of other tenants. Discovery is that of the
// provider: the resources are its own.
func (x *sharing) serve(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		consumer := consumerOf(req.Context())
		info, ok := request.RequestInfoFrom(req.Context())
		switch {
		case consumer == "":
			next.ServeHTTP(w, req)
		case !ok || !info.IsResourceRequest:
			if p := req.URL.Path; p == "/api" || p == "/apis" || p == "/version" || strings.HasPrefix(p, "/api/") || strings.HasPrefix(p, "/apis/") || strings.HasPrefix(p, "/openapi/") {
				next.ServeHTTP(w, req)
				return
			}
			http.NotFound(w, req)
		case consumer == everyone:
			x.serveAll(w, req, info)
		default:
			if err := x.visit(w, req, info, consumer); err != nil {
				reply.Error(w, req, err)
			}
		}
	})
}

// noInitialEvents refuses watch lists of all tenants. Reflectors of client-go collect the initial events
// of one by namespace and name, whatever keys their users have chosen: of the objects of several
// tenants with the same name they would keep one. They list when a watch list is refused.
var noInitialEvents = apierrors.NewInvalid(schema.GroupKind{Group: metav1.GroupName, Kind: "ListOptions"}, "", field.ErrorList{
	field.Forbidden(field.NewPath("sendInitialEvents"), "objects of several tenants can have the same namespace and name, by which clients tell initial events apart: list, and watch from the resourceVersion of the list"),
})

// serveAll lists and watches objects of all tenants. A namespace is a selector, since there are as
// many of the name as tenants.
func (x *sharing) serveAll(w http.ResponseWriter, req *http.Request, info *request.RequestInfo) {
	r := schema.GroupResource{Group: info.APIGroup, Resource: info.Resource}
	if info.Verb != "list" && info.Verb != "watch" || info.Subresource != "" {
		reply.Error(w, req, apierrors.NewMethodNotSupported(r, info.Verb))
		return
	}
	if req.URL.Query().Has("sendInitialEvents") {
		reply.Error(w, req, noInitialEvents)
		return
	}
	if info.Namespace != "" {
		own, below, query := *info, *req.URL, req.URL.Query()
		selector := "metadata.namespace=" + info.Namespace
		if more := query.Get("fieldSelector"); more != "" {
			selector += "," + more
		}
		query.Set("fieldSelector", selector)
		own.Namespace, below.RawQuery = "", query.Encode()
		req = req.WithContext(request.WithRequestInfo(req.Context(), &own))
		req.URL = &below
	}
	x.view().ServeHTTP(w, req)
}

// visit has a tenant answer a request for one of its objects.
func (x *sharing) visit(w http.ResponseWriter, req *http.Request, info *request.RequestInfo, consumer string) error {
	ctx, r := req.Context(), schema.GroupResource{Group: info.APIGroup, Resource: info.Resource}
	unbound := apierrors.NewNotFound(bindings.Bindings.GroupResource(), consumer)
	unbound.ErrStatus.Message = fmt.Sprintf("no tenant %q has bound %s and lets this tenant do something to its objects", consumer, r)
	who, ok := request.UserFrom(ctx)
	if !ok {
		return apierrors.NewInternalError(errors.New("no user found in the context"))
	}
	t, _, err := x.in.signals.tenants.Locate(ctx, consumer)
	if apierrors.IsNotFound(err) {
		return unbound
	} else if err != nil {
		return err
	}
	key := tenants.SharedBy(x.prefix, x.of.UID).Grant(r, t.UID)
	grant, err := bindings.ReadGrant(ctx, x.etcd.Client(), key)
	switch {
	case err != nil:
		return err
	case grant == nil || grant.Tenant != consumer || len(grant.Verbs) == 0:
		return unbound
	case !grant.Accepts(info.Subresource, info.Verb):
		return apierrors.NewForbidden(r, info.Name, fmt.Errorf("the APIBinding %s of the tenant %s does not accept the verb %q for it", grant.Binding, consumer, info.Verb))
	}
	if info.Verb == "watch" {
		var end func()
		ctx, end = bindings.WhileGranted(ctx, x.etcd.Client(), key, func(g *bindings.Grant) bool { return g.Accepts(info.Subresource, info.Verb) })
		defer end()
		req = req.WithContext(ctx)
	}
	err = x.in.signals.tenants.Visit(w, req, consumer, t.UID, tenants.Visit{
		User: "system:provider:" + x.of.Name + ":" + who.GetName(), Resource: r, Accepts: grant.Accepts,
	})
	if apierrors.IsNotFound(err) {
		return unbound
	}
	return err
}

// visitor authenticates visits.
func visitor(req *http.Request) (*authenticator.Response, bool, error) {
	v := tenants.VisitOf(req.Context())
	if v == nil {
		return nil, false, nil
	}
	return &authenticator.Response{User: &user.DefaultInfo{Name: v.User, Groups: []string{user.AllAuthenticated}}}, true, nil
}

// visits authorizes visits by what the binding accepts, and all else by the roles of the tenant.
type visits struct {
	authorizer.Authorizer
	x *sharing
}

// Authorize implements authorizer.Authorizer.
func (a visits) Authorize(ctx context.Context, about authorizer.Attributes) (authorizer.Decision, string, error) {
	v := tenants.VisitOf(ctx)
	if v == nil {
		return a.Authorizer.Authorize(ctx, about)
	}
	if about.IsResourceRequest() && a.x.has(v.Resource) && about.GetAPIGroup() == v.Resource.Group && about.GetResource() == v.Resource.Resource && v.Accepts(about.GetSubresource(), about.GetVerb()) {
		return authorizer.DecisionAllow, "the APIBinding accepts it", nil
	}
	return authorizer.DecisionDeny, "the APIBinding does not accept it", nil
}

// ConditionsAwareAuthorize implements authorizer.Authorizer.
func (a visits) ConditionsAwareAuthorize(ctx context.Context, about authorizer.Attributes) authorizer.ConditionsAwareDecision {
	if tenants.VisitOf(ctx) == nil {
		return a.Authorizer.ConditionsAwareAuthorize(ctx, about)
	}
	return authorizer.ConditionsAwareDecisionFromParts(a.Authorize(ctx, about))
}

// consumers authorizes requests of a provider for objects of other tenants: its roles must allow
// the verb for apiexports/content, for every export of the resource.
type consumers struct {
	authorizer.Authorizer
	x *sharing
}

// Authorize implements authorizer.Authorizer.
func (a consumers) Authorize(ctx context.Context, about authorizer.Attributes) (authorizer.Decision, string, error) {
	if consumerOf(ctx) == "" || !about.IsResourceRequest() || strings.HasPrefix(about.GetVerb(), "impersonate") {
		return a.Authorizer.Authorize(ctx, about)
	}
	r := schema.GroupResource{Group: about.GetAPIGroup(), Resource: about.GetResource()}
	names, err := bindings.Exporting(ctx, a.x.backend, r)
	if err != nil {
		return authorizer.DecisionNoOpinion, "", err
	}
	if len(names) == 0 {
		return authorizer.DecisionDeny, "no APIExport of this tenant has the resource", nil
	}
	for _, name := range names {
		decision, reason, err := a.Authorizer.Authorize(ctx, authorizer.AttributesRecord{
			User: about.GetUser(), Verb: about.GetVerb(), APIGroup: bindings.Group, APIVersion: bindings.Exports.Version,
			Resource: bindings.Exports.Resource, Subresource: "content", Name: name, ResourceRequest: true, Path: about.GetPath(),
		})
		if err != nil || decision != authorizer.DecisionAllow {
			return authorizer.DecisionDeny, fmt.Sprintf("a role must allow the verb %q for apiexports/content of %q in the group %s. %s", about.GetVerb(), name, bindings.Group, reason), err
		}
	}
	return authorizer.DecisionAllow, "", nil
}

// ConditionsAwareAuthorize implements authorizer.Authorizer.
func (a consumers) ConditionsAwareAuthorize(ctx context.Context, about authorizer.Attributes) authorizer.ConditionsAwareDecision {
	if consumerOf(ctx) == "" {
		return a.Authorizer.ConditionsAwareAuthorize(ctx, about)
	}
	return authorizer.ConditionsAwareDecisionFromParts(a.Authorize(ctx, about))
}
