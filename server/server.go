package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	genericapiserver "k8s.io/apiserver/pkg/server"

	"github.com/espalier-dev/espalier/server/apis/builtin"
	"github.com/espalier-dev/espalier/server/apis/services"
	"github.com/espalier-dev/espalier/server/bindings"
	"github.com/espalier-dev/espalier/server/endpoints/openapihandler"
	"github.com/espalier-dev/espalier/server/replica"
	"github.com/espalier-dev/espalier/server/storage/store"
	"github.com/espalier-dev/espalier/server/tenants"
	"github.com/espalier-dev/espalier/server/turns"
)

// Server is an API server for CustomResourceDefinitions and their objects.
type Server struct {
	generic      *genericapiserver.GenericAPIServer
	handler      http.Handler
	prepared     interface{ RunWithContext(context.Context) error }
	signals      *signals
	listener     net.Listener
	backend      *store.Backend
	elsewhere    []*override       // other etcds, of some resources
	etcds        *tenants.Pool     // of tenants; nil without them
	turns        *turns.Turns      // of tenants
	transfer     http.Handler      // of the archives of tenants; nil without them
	lenders      *bindings.Lenders // of APIs of tenants
	sharing      *sharing          // with other tenants; nil if the server is no tenant
	controlPlane *controlPlane
	agreed       *agreement
	allocator    *services.Allocator // of cluster IPs and node ports; nil without Services
	// knowledge is how well the CRDs are known.
	knowledge *knowledge
	started   time.Time
	ready     chan struct{} // closed when /readyz has answered 200
	lacking   []string      // of what production usually has

	builtin   *builtin.Resources
	openAPI   *openapihandler.Handler
	options   *Options
	config    *genericapiserver.Config
	tenant    *tenants.Tenant // nil if the server is no tenant of another one
	unobserve func()          // ends its metrics
	joined    *replica.Member // until Run has it
	// join returns the member of a tenant, which joins while its handlers are made.
	join  func() (*replica.Member, error)
	tasks []task
	stop  context.CancelFunc // ends what New has started
	close func() error
}

// task is what runs beside requests, until its context ends.
type task struct {
	name string
	run  func(context.Context) error
	// early tasks end when the server is asked to, others when the last request is
	// over.
	early bool
}

// New connects to etcd and opens the port, but does not serve yet. Do not use the
// options for a second server: they hold the port. Callers that do not call Run must
// call Close.
func New(ctx context.Context, o *Options) (_ *Server, err error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	agreed := newAgreement(o)
	life, stop := context.WithCancel(context.WithoutCancel(ctx))
	s := &Server{agreed: agreed, started: time.Now(), ready: make(chan struct{}), lacking: o.lacking(), signals: &signals{traffic: &traffic{}, leaving: make(chan struct{}), notAccepting: make(chan struct{})}, stop: stop}
	s.close = sync.OnceValue(s.release)
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
		}
	}()
	if s.controlPlane, err = newControlPlane(o.Kinds, nil); err != nil {
		return nil, err
	}
	config, err := genericConfig(life, o, s.controlPlane, s.signals)
	s.listener = o.Serving.Listener // open even if something later is wrong
	if err != nil {
		return nil, err
	}
	if s.backend, err = openBackend(ctx, o, config); err != nil {
		return nil, err
	}
	if err := o.fits(s.backend); err != nil {
		return nil, err
	}
	if err := s.openOverrides(ctx, o, config); err != nil {
		return nil, err
	}
	if s.options, s.config = o, config; o.Tenants {
		s.signals.tenants, s.controlPlane.tenants = s.serveTenants(), true
	}
	routes, err := s.wire(ctx, o, config)
	if err != nil {
		return nil, err
	}
	s.signals.outOfSpace, s.signals.members = s.backend.OutOfSpace, s.backend.MembersWarning
	addHealthChecks(config, s.backend.Healthy, s.knowledge.unread, s.controlPlane.ready)
	generic, err := config.Complete(nil).New("espalier", genericapiserver.NewEmptyDelegate())
	if err != nil {
		return nil, err
	}
	s.unobserve = observe(s, o, config)
	routes.install(generic.Handler.NonGoRestfulMux)
	s.controlPlane.identity.Issuer.Install(generic.Handler.NonGoRestfulMux)
	s.generic, s.prepared, s.handler = generic, generic.PrepareRun(), generic.Handler
	return s, nil
}

// openBackend connects to etcd.
func openBackend(ctx context.Context, o *Options, c *genericapiserver.Config) (*store.Backend, error) {
	backend, err := store.Open(ctx, storeConfig(o, c))
	if err != nil {
		return nil, fmt.Errorf("--etcd-servers: %w", err)
	}
	return backend, nil
}

// storeConfig says where etcd is and how objects are kept in it.
func storeConfig(o *Options, c *genericapiserver.Config) store.Config {
	config := store.Config{Config: o.Etcd.StorageConfig, Transformers: c.ResourceTransformers, Idle: o.IdleTimeout}
	config.MaxBehind, config.MaxBehindSum = int64(o.Limits.WatchBehind), int64(o.Limits.WatchBehindSum)
	config.Transport.TracerProvider = nil
	if o.Tracing.ConfigFile != "" {
		config.Transport.TracerProvider = c.TracerProvider
	}
	return config
}

// Address is where the server listens.
func (s *Server) Address() net.Addr { return s.listener.Addr() }

// Handler returns the handler of all requests, filters included. It knows
// clients by req.TLS, and serves only while Run does.
func (s *Server) Handler() http.Handler { return s.handler }

// Disconnect closes the connections of all clients, whose requests fail.
func (s *Server) Disconnect() { s.signals.listener.Cut() }

// Close gives up a server that is not running. Run does so by itself.
func (s *Server) Close() error { return s.close() }

// release gives back the port and the connection to etcd.
func (s *Server) release() error {
	s.stop()
	if s.unobserve != nil {
		s.unobserve()
	}
	if s.allocator != nil {
		s.allocator.Close()
	}
	var errs []error
	if s.listener != nil {
		if err := s.listener.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
			errs = append(errs, err)
		}
	}
	if s.joined != nil {
		s.joined.Leave(context.Background())
	}
	for _, one := range s.elsewhere {
		errs = append(errs, one.backend.Close())
	}
	if s.backend != nil {
		errs = append(errs, s.backend.Close())
	}
	return errors.Join(errs...)
}
