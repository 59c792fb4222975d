package customresource

import (
	"cmp"
	"context"
	"errors"
	"net/http"
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
	"github.com/espalier-dev/espalier/server/endpoints/requestinfo"
	"github.com/espalier-dev/espalier/server/storage/converter"
	"github.com/espalier-dev/espalier/server/storage/store"
	"github.com/espalier-dev/espalier/server/webhook"
)

const (
	// DefaultIdle is how long what serves a resource outlives its last request.
	DefaultIdle = 10 * time.Minute
	// DefaultMaxIdle is how many resources are kept ready though nobody uses them.
	DefaultMaxIdle = 500

	defaultRequestTimeout = time.Minute
)

// Options say what a Server works with. Catalog, Backend,
// Conversion and NotFound must be set.
type Options struct {
	Catalog *catalog.Catalog
	Backend *store.Backend
	// NotFound answers requests to resources that there are not.
	NotFound http.Handler
	// Conversion makes what converts objects between the versions of a definition.
	Conversion *converter.Factory
	Admission  Admission // may be nil
	// Authorizer decides on what a handler finds out late: creating by a patch.
	Authorizer authorizer.UnconditionalAuthorizer
	// FieldValidation is for requests that do not say, to resources whose
	// definition does not: Warn, Strict or Ignore; empty means Warn.
	FieldValidation string

	MaxRequestBodyBytes int64         // 0 is resource.DefaultMaxRequestBodyBytes
	RequestTimeout      time.Duration // of requests that are no watches; they may take twice as long to finish after a change
	MinRequestTimeout   time.Duration // of watches whose client does not say
	Idle                time.Duration // 0 is DefaultIdle
	MaxIdle             int           // 0 is DefaultMaxIdle
	Uncached            bool          // lists and watches go to etcd
	// Current reports whether this replica knows the CRDs as others do: see
	// store.Spec. Nil is always.
	Current func() bool
}

// Admission is the plugins that objects pass. Idle reports that there is nothing
// that they could have to say: then nothing is prepared for them.
type Admission interface {
	admission.Interface
	Idle() bool
}

// Server serves the custom resources of all definitions in a catalog. It is
// safe for concurrent use.
type Server struct {
	options  Options
	servings sync.Map // UID of the definition → *serving
	idle     idleServings
	// adoptions are changes of CRDs that watches do not follow yet.
	adoptions pending
}

// New returns a server for the definitions in the catalog. Run must be running
// for it to forget what is not used.
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

// Run gives up, from time to time, what nobody uses, until the context ends;
// then everything.
func (s *Server) Run(ctx context.Context) error {
	ticker := time.NewTicker(s.options.Idle / 10)
	defer ticker.Stop()
	for {
		select {
		case now := <-ticker.C:
			since := now.Add(-s.options.Idle)
			s.servings.Range(func(_, value any) bool {
				s.giveUp(value.(*serving), since)
				return true
			})
		case <-ctx.Done():
			s.servings.Range(func(uid, value any) bool {
				s.servings.CompareAndDelete(uid, value)
				value.(*serving).close()
				return true
			})
			return ctx.Err()
		}
	}
}

// giveUp forgets a serving that has not been used since some time.
func (s *Server) giveUp(x *serving, since time.Time) {
	if x.closeIfIdle(since) {
		s.servings.CompareAndDelete(x.uid, x)
	}
}

// changed follows a change of a definition that is being served, so that
// watches end, or go on with the new schema, before somebody asks again. It
// must not block.
func (s *Server) changed(old, updated *catalog.Entry) {
	if old == nil {
		return // nobody has asked for it yet
	}
	value, ok := s.servings.Load(old.UID)
	if !ok {
		return
	}
	serving := value.(*serving)
	if updated == nil {
		s.servings.CompareAndDelete(old.UID, value)
		end := s.adoptions.begin()
		go func() {
			defer end()
			serving.close()
			serving.settle()
		}()
		return
	}
	end := s.adoptions.begin()
	go func() {
		defer end()
		if err := serving.follow(updated); err != nil {
			klog.ErrorS(err, "CRD cannot be served", "name", updated.Name)
			s.servings.CompareAndDelete(old.UID, value)
		}
		// What is replaced now, or was by a request that knew the change before.
		serving.settle()
	}()
}

// Adopted returns when all changes of CRDs that the catalog has told so far are
// followed by all watches.
func (s *Server) Adopted(ctx context.Context) error { return s.adoptions.wait(ctx) }

// enter returns what serves the definition, and the view for a request.
func (s *Server) enter(e *catalog.Entry, long bool) (*serving, *view, error) {
	for {
		value, ok := s.servings.Load(e.UID)
		if !ok {
			value, _ = s.servings.LoadOrStore(e.UID, &serving{server: s, uid: e.UID, lastUsed: time.Now()})
		}
		serving := value.(*serving)
		v, err := serving.enter(e, long)
		if !errors.Is(err, errGone) {
			return serving, v, err
		}
		s.servings.CompareAndDelete(e.UID, value)
	}
}

// Len returns how many definitions are being served, that is, have been asked
// for lately.
func (s *Server) Len() int {
	n := 0
	s.servings.Range(func(any, any) bool { n++; return true })
	return n
}

// ServeHTTP answers requests to custom resources.
func (s *Server) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	info, ok := request.RequestInfoFrom(req.Context())
	if !ok {
		endpoints.Error(w, req, &request.RequestInfo{}, apierrors.NewInternalError(errors.New("no RequestInfo found in the context")))
		return
	}
	e, err := s.find(req.Context(), info)
	if err != nil {
		klog.ErrorS(err, "It cannot be told whether there is a resource", "resource", info.Resource, "group", info.APIGroup)
		endpoints.Error(w, req, info, apierrors.NewServiceUnavailable("etcd does not answer: whether there is a CustomResourceDefinition of this resource is not known; send the request again"))
		return
	}
	if e == nil {
		if unknown := s.options.Catalog.UnknownResource(info.APIGroup, info.Resource); unknown != nil && info.IsResourceRequest {
			endpoints.Error(w, req, info, apierrors.NewServiceUnavailable(unknown.Error()))
			return
		}
		s.options.NotFound.ServeHTTP(w, req)
		return
	}
	long := info.Verb == "watch"
	serving, v, err := s.enter(e, long)
	if err != nil {
		s.unservable(w, req, info, err)
		return
	}
	defer serving.leave(v, long)
	// The view may be newer than the entry.
	if served := v.entry.Version(info.APIVersion); served == nil || !served.Served {
		s.options.NotFound.ServeHTTP(w, req)
		return
	}
	version, err := v.version(info.APIVersion)
	if err != nil {
		s.unservable(w, req, info, err)
		return
	}
	if long {
		var leave func()
		w, req, leave = v.vaults[info.APIVersion].watches.enter(w, req, s.options.Current)
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
		endpoints.Error(w, req, info, apierrors.NewNotFound(schema.GroupResource{Group: info.APIGroup, Resource: info.Resource}, info.Name))
		return
	}
	endpoints.Serve(w, s.withFieldValidation(req, info.Verb, v), info, endpoint)
}

// find is entry for whom a wrong "not found" would mislead: another server may
// have said that there is such a resource.
func (s *Server) find(ctx context.Context, info *request.RequestInfo) (*catalog.Entry, error) {
	if e := s.entry(info); e != nil || !info.IsResourceRequest {
		return e, nil
	}
	if err := s.options.Catalog.CatchUp(ctx); err != nil {
		return nil, err
	}
	return s.entry(info), nil
}

// entry returns the CRD of the resource that a request is for, nil if the
// request has to be answered as if there were none.
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
	klog.ErrorS(err, "Resource cannot be served", "resource", info.Resource, "group", info.APIGroup, "version", info.APIVersion)
	endpoints.Error(w, req, info, apierrors.NewInternalError(errors.New("error resolving resource")))
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
