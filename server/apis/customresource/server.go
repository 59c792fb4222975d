package customresource

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/warning"
	"k8s.io/klog/v2"

	"github.com/espalier-dev/espalier/server/catalog"
	"github.com/espalier-dev/espalier/server/endpoints"
	"github.com/espalier-dev/espalier/server/endpoints/reply"
	"github.com/espalier-dev/espalier/server/endpoints/requestinfo"
	"github.com/espalier-dev/espalier/server/storage/converter"
	"github.com/espalier-dev/espalier/server/storage/store"
	"github.com/espalier-dev/espalier/server/webhook"
)

const (
	// DefaultIdle is how long a resource stays ready after its last request.
	DefaultIdle = 10 * time.Minute
	// DefaultMaxIdle is how many resources stay ready without requests.
	DefaultMaxIdle = 500

	defaultRequestTimeout = time.Minute
)

// Options configure a Server. Catalog, Backend, Conversion and NotFound are required.
type Options struct {
	Catalog *catalog.Catalog
	Backend *store.Backend
	// NotFound answers requests to resources that do not exist.
	NotFound http.Handler
	// Conversion makes the converters between the versions of a CRD.
	Conversion *converter.Factory
	Admission  Admission // may be nil
	// Authorizer authorizes creation by PATCH, which only the handler can recognize.
	Authorizer authorizer.UnconditionalAuthorizer
	// FieldValidation is the default of the fieldValidation parameter if neither the
	// request nor the CRD sets it: Warn, Strict or Ignore; empty means Warn.
	FieldValidation string

	MaxRequestBodyBytes int64         // 0 is endpoints.DefaultMaxRequestBodyBytes
	RequestTimeout      time.Duration // of requests other than watches; they may take twice as long to finish after a change
	MinRequestTimeout   time.Duration // of watches without timeoutSeconds
	Idle                time.Duration // 0 is DefaultIdle
	MaxIdle             int           // 0 is DefaultMaxIdle
	Uncached            bool          // lists and watches go to etcd
	// Current reports whether this replica knows the same CRDs as the others: see
	// store.Spec. Nil means always.
	Current func() bool
	// Await, if not nil, returns when a resource is in the catalog that another catalog lends to
	// it, or when none does.
	Await Await
	// View, if not nil, has the server show the objects of several tenants.
	View View
}

// Admission is the chain of admission plugins. If Idle reports true, no plugin has
// anything to check, and the server does not prepare objects for them.
type Admission interface {
	admission.Interface
	Idle() bool
}

// Server serves the custom resources of all CRDs in a catalog. It is
// safe for concurrent use.
type Server struct {
	options         Options
	servedResources sync.Map // UID of the CRD → *servedResource
	idle            idleResources
	// adoptions are changes of CRDs that watches do not follow yet.
	adoptions pending
}

// New returns a server for the CRDs in the catalog. Run must be running for idle
// resources to be closed.
func New(o Options) *Server {
	o.MaxRequestBodyBytes = cmp.Or(o.MaxRequestBodyBytes, endpoints.DefaultMaxRequestBodyBytes)
	o.RequestTimeout = cmp.Or(o.RequestTimeout, defaultRequestTimeout)
	o.MinRequestTimeout = cmp.Or(o.MinRequestTimeout, endpoints.DefaultMinRequestTimeout)
	o.Idle = cmp.Or(o.Idle, DefaultIdle)
	o.MaxIdle = cmp.Or(o.MaxIdle, DefaultMaxIdle)
	s := &Server{options: o}
	o.Catalog.Subscribe(s.changed)
	return s
}

// Run closes idle resources from time to time. When the context ends it closes all
// resources.
func (s *Server) Run(ctx context.Context) error {
	ticker := time.NewTicker(s.options.Idle / 10)
	defer ticker.Stop()
	for {
		select {
		case now := <-ticker.C:
			since := now.Add(-s.options.Idle)
			s.servedResources.Range(func(_, value any) bool {
				s.giveUp(value.(*servedResource), since)
				return true
			})
		case <-ctx.Done():
			s.servedResources.Range(func(uid, value any) bool {
				s.servedResources.CompareAndDelete(uid, value)
				value.(*servedResource).close()
				return true
			})
			return ctx.Err()
		}
	}
}

// giveUp closes a resource that was not used since a time.
func (s *Server) giveUp(x *servedResource, since time.Time) {
	if x.closeIfIdle(since) {
		s.servedResources.CompareAndDelete(x.uid, x)
	}
}

// changed applies a change of a CRD to its resource, so that watches end, or continue
// with the new schema, before the next request. It must not block.
func (s *Server) changed(old, updated *catalog.Entry) {
	if old == nil {
		return // no request has used it yet
	}
	value, ok := s.servedResources.Load(old.UID)
	if !ok {
		return
	}
	servedResource := value.(*servedResource)
	if updated == nil {
		s.servedResources.CompareAndDelete(old.UID, value)
		end := s.adoptions.begin()
		go func() {
			defer end()
			servedResource.close()
			servedResource.settle()
		}()
		return
	}
	end := s.adoptions.begin()
	go func() {
		defer end()
		if err := servedResource.follow(updated); err != nil {
			klog.ErrorS(err, "Failed to serve a CRD", "name", updated.Name)
			s.servedResources.CompareAndDelete(old.UID, value)
		}
		// Storage is replaced here, or by a request that knew of the change earlier.
		servedResource.settle()
	}()
}

// Adopted returns when all watches follow the changes of CRDs that the catalog has
// reported before the call.
func (s *Server) Adopted(ctx context.Context) error { return s.adoptions.wait(ctx) }

// enter returns the resource of the CRD, and the crdInfo for a request.
func (s *Server) enter(e *catalog.Entry, long bool) (*servedResource, *crdInfo, error) {
	for {
		value, ok := s.servedResources.Load(e.UID)
		if !ok {
			value, _ = s.servedResources.LoadOrStore(e.UID, &servedResource{server: s, uid: e.UID, lastUsed: time.Now()})
		}
		servedResource := value.(*servedResource)
		v, err := servedResource.enter(e, long)
		if !errors.Is(err, errGone) {
			return servedResource, v, err
		}
		s.servedResources.CompareAndDelete(e.UID, value)
	}
}

// Len returns how many resources are open, that is, were requested lately.
func (s *Server) Len() int {
	n := 0
	s.servedResources.Range(func(any, any) bool { n++; return true })
	return n
}

// ServeHTTP answers requests to custom resources.
func (s *Server) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	info, ok := request.RequestInfoFrom(req.Context())
	if !ok {
		reply.Error(w, req, apierrors.NewInternalError(errors.New("no RequestInfo found in the context")))
		return
	}
	e, err := s.find(req.Context(), info)
	if err != nil {
		klog.ErrorS(err, "Failed to look up the CRD of a resource", "resource", info.Resource, "group", info.APIGroup)
		reply.Error(w, req, apierrors.NewServiceUnavailable("failed to look up the CustomResourceDefinition of this resource: etcd does not answer; send the request again"))
		return
	}
	if e == nil {
		if unknown := s.options.Catalog.UnknownResource(info.APIGroup, info.Resource); unknown != nil && info.IsResourceRequest {
			reply.Error(w, req, apierrors.NewServiceUnavailable(unknown.Error()))
			return
		}
		s.options.NotFound.ServeHTTP(w, req)
		return
	}
	long := info.Verb == "watch"
	servedResource, v, err := s.enter(e, long)
	if err != nil {
		s.unservable(w, req, info, err)
		return
	}
	defer servedResource.leave(v, long)
	// The crdInfo may be newer than the entry.
	if served := v.entry.Version(info.APIVersion); served == nil || !served.Served {
		s.options.NotFound.ServeHTTP(w, req)
		return
	}
	version, err := v.version(info.APIVersion)
	if err != nil {
		s.unservable(w, req, info, err)
		return
	}
	if req, err = s.withSort(req, info, v.details.versions[info.APIVersion].indexes); err != nil {
		reply.Error(w, req, err)
		return
	}
	if long {
		var leave func()
		w, req, leave = v.storages[info.APIVersion].watches.enter(w, req, s.options.Current)
		defer leave()
	}
	for _, text := range version.deprecations {
		warning.AddWarning(req.Context(), "", text)
	}
	if !long {
		// What webhooks have converted is needed until it is written to the client.
		ctx, release := webhook.Hold(req.Context())
		defer release()
		if writes(info.Verb) {
			ctx = store.Require(ctx, v.requirement)
		}
		req = req.WithContext(ctx)
	}
	endpoint := version.endpoint(info.Subresource)
	if endpoint == nil {
		reply.Error(w, req, apierrors.NewNotFound(schema.GroupResource{Group: info.APIGroup, Resource: info.Resource}, info.Name))
		return
	}
	validation, ok := endpoints.FieldValidations[strings.ToLower(v.details.annotations[fieldValidationAnnotation])]
	if !ok {
		validation = s.options.FieldValidation
	}
	endpoints.Serve(w, endpoints.WithFieldValidation(req, info.Verb, validation), info, endpoint)
}

// find is entry, but reads etcd before it finds nothing: another replica may have told
// the client that the resource exists.
func (s *Server) find(ctx context.Context, info *request.RequestInfo) (*catalog.Entry, error) {
	if e := s.entry(info); e != nil || !info.IsResourceRequest {
		return e, nil
	}
	if err := s.options.Catalog.CatchUp(ctx); err != nil {
		return nil, err
	}
	if e := s.entry(info); e != nil {
		return e, nil
	}
	if err := s.await(ctx, info); err != nil {
		return nil, err
	}
	return s.entry(info), nil
}

// entry returns the CRD of a requested resource, nil if it does not exist or is not
// served.
func (s *Server) entry(info *request.RequestInfo) *catalog.Entry {
	if !info.IsResourceRequest {
		return nil
	}
	e := s.options.Catalog.Resource(info.APIGroup, info.Resource)
	if e == nil || !requestinfo.InScope(info, e.Namespaced) {
		return nil
	}
	if v := e.Version(info.APIVersion); v == nil || !v.Served {
		return nil
	}
	if !e.NamesAccepted && !e.Established {
		return nil
	}
	return e
}

func (s *Server) unservable(w http.ResponseWriter, req *http.Request, info *request.RequestInfo, err error) {
	klog.ErrorS(err, "Failed to serve a resource", "resource", info.Resource, "group", info.APIGroup, "version", info.APIVersion)
	reply.Error(w, req, apierrors.NewInternalError(errors.New("error resolving resource")))
}

// endpoint returns the endpoint of a subresource, nil if there is none.
func (v *version) endpoint(subresource string) *endpoints.Endpoint {
	switch subresource {
	case "":
		return v.main
	case "status":
		return v.status
	case "scale":
		return v.scale
	}
	return nil
}
