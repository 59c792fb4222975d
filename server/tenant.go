package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apiserver/pkg/audit"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/request/union"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	"k8s.io/apiserver/pkg/endpoints/request"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/mux"
	"k8s.io/klog/v2"

	"github.com/espalier-dev/espalier/server/apis/builtin"
	"github.com/espalier-dev/espalier/server/auth/authentication"
	"github.com/espalier-dev/espalier/server/bindings"
	"github.com/espalier-dev/espalier/server/endpoints/limit"
	"github.com/espalier-dev/espalier/server/replica"
	"github.com/espalier-dev/espalier/server/storage/informer"
	"github.com/espalier-dev/espalier/server/storage/meter"
	"github.com/espalier-dev/espalier/server/storage/series"
	"github.com/espalier-dev/espalier/server/storage/store"
	"github.com/espalier-dev/espalier/server/tenants"
	"github.com/espalier-dev/espalier/server/turns"
)

const (
	// tenantAnnotation names the tenant in audit events.
	tenantAnnotation = "espalier.dev/tenant"
	// controllersDelay is how long controllers wait when a tenant starts, and electionTime how long they may take to get
	// their lease: until then, the tenant is not closed for want of requests. A tenant that is used for moments would never
	// get its default service accounts.
	controllersDelay = 300 * time.Millisecond
	electionTime     = 5 * time.Second
	// earlyTime is how long controllers may take to end while the tenant still answers them.
	earlyTime = 5 * time.Second
	// seriesPeriod is how often to look at the metrics of webhooks and policies, and
	// mostSeries how many series each of them may have.
	seriesPeriod = 30 * time.Second
	mostSeries   = 2000
	// tenantPoll is how often to look whether a tenant is ready.
	tenantPoll = 500 * time.Microsecond
)

// serveTenants returns what serves the tenants of the server.
func (s *Server) serveTenants() *tenants.Set {
	p := s.controlPlane
	s.turns = turns.New(runtime.GOMAXPROCS(0))
	s.lenders = bindings.NewLenders(s.options.Etcd.StorageConfig.Prefix)
	s.etcds = tenants.NewPool(p.dynamic, s.backend, s.options.TenantIdleTimeout, s.openEtcd)
	set := tenants.New(tenants.Options{
		Client: p.dynamic, Pool: s.etcds, Prefix: s.options.Etcd.StorageConfig.Prefix,
		Users: p.identity.Users, Authorizer: p.authorization, Signed: p.identity.Signed,
		Ready: p.ready, Denied: s.tenantDenied, Start: s.startTenant, Idle: s.options.TenantIdleTimeout, Most: s.options.TenantsKept,
	})
	s.transfer = tenants.NewTransfer(tenants.TransferOptions{
		Client: p.dynamic, Pool: s.etcds, Prefix: s.options.Etcd.StorageConfig.Prefix, Version: s.options.Version,
		Kinds: func() ([]builtin.Archived, error) { return s.builtin.Archived() }, Transformers: s.config.ResourceTransformers,
	})
	s.tasks = append(s.tasks, task{name: "tenants", run: set.Run}, task{name: "metric-series", run: boundSeries})
	return set
}

// boundSeries bounds the metrics that have names which administrators of tenants choose.
func boundSeries(ctx context.Context) error {
	tick := time.NewTicker(seriesPeriod)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
		if n, err := series.Bound(mostSeries); err != nil || n > 0 {
			klog.InfoS("Dropped metric series of webhooks and policies: there were too many", "series", n, "err", err)
		}
	}
}

// tenantDenied records that a user may not access a tenant.
func (s *Server) tenantDenied(req *http.Request, who user.Info, name string, refusal error) {
	if s.signals.denials == nil {
		return
	}
	ctx := request.WithUser(req.Context(), who)
	ctx = request.WithRequestInfo(ctx, &request.RequestInfo{
		IsResourceRequest: true, Verb: tenants.AccessVerb, APIGroup: tenants.Resource.Group, APIVersion: tenants.Resource.Version, Resource: tenants.Resource.Resource, Name: name,
	})
	status := responsewriters.ErrorToAPIStatus(refusal)
	s.signals.denials.ProcessEvents(denial(req.WithContext(ctx), uuid.NewUUID(), status))
}

// tenant is the plane of a tenant: a Server without a port, whose requests come from the
// server that it is part of.
type tenant struct {
	*Server
	feed  *informer.Feed
	meter *meter.Meter
	// end ends the plane, and endEarly first those tasks that others must outlive.
	end, endEarly  func()
	running, early sync.WaitGroup
	hadDefaults    func() (bool, error)
	given          bool         // it had its default objects before
	broken, closed atomic.Bool  // closed is that its guard is gone
	leads          atomic.Bool  // its controllers have their lease
	last           atomic.Int64 // when a controller of the tenant last wrote something
}

var _ tenants.Plane = (*tenant)(nil)

// startTenant starts the plane of a tenant and returns when it is ready. etcd is the one that
// the tenant is in.
func (s *Server) startTenant(ctx context.Context, of tenants.Tenant, etcd *store.Backend) (_ tenants.Plane, err error) {
	life, end := context.WithCancel(context.Background())
	o := s.tenantOptions(of)
	shared := s.newSharing(life, of, etcd)
	used := meter.New(o.Etcd.StorageConfig.Prefix, of.Limit)
	t := &tenant{meter: used, end: end, endEarly: func() {}, Server: &Server{
		tenant: &of, options: o, listener: s.listener, builtin: s.builtin, openAPI: s.openAPI, sharing: shared,
	}}
	t.backend = etcd.Within(store.Part{
		Prefix: o.Etcd.StorageConfig.Prefix, Guard: tenants.Guard(s.options.Etcd.StorageConfig.Prefix, of.UID), Holder: of.Holder(), Revisions: of.Revisions,
		Rule: shared.writes.Rule, Wrap: func(kv clientv3.KV) clientv3.KV { return turns.KV(used.Wrap(kv)) }, Lost: t.lost,
	})
	begun, stop := context.WithCancel(ctx)
	defer func() {
		stop()
		if err != nil && t.closed.Load() { // whatever else it says follows from that
			err = store.ErrClosed
		}
		if err != nil {
			t.Close()
		}
	}()
	// What etcd is asked for is under way together, while the handlers are made.
	loaded := ahead(func() (struct{}, error) { return struct{}{}, used.Load(begun) })
	t.hadDefaults = ahead(func() (bool, error) { return t.hasDefaults(begun) })
	t.join = ahead(func() (*replica.Member, error) {
		return replica.Join(begun, t.backend.Client(), replica.Options{
			Prefix: o.Etcd.StorageConfig.Prefix, CatchUp: func(ctx context.Context) error { return t.knowledge.catchUp(ctx) },
		})
	})
	if err := t.build(life, s); err != nil {
		return nil, err
	}
	if _, err := loaded(); err != nil {
		return nil, err
	}
	t.tasks = append(t.tasks, task{name: "usage", run: func(ctx context.Context) error {
		return used.Run(ctx, func(err error) {
			if !errors.Is(err, store.ErrClosed) { // it is opened again where the tenant is
				klog.ErrorS(err, "Counting what a tenant has in etcd failed, retrying", "tenant", of.Name)
			}
		})
	}})
	if !t.given {
		if err := t.giveDefaults(ctx); err != nil {
			return nil, err
		}
		t.run(life, task{name: "built-in-resources", run: t.feed.Run})
		t.tasks = append(t.tasks, task{name: "default-objects", run: t.repairDefaults})
	}
	t.controlPlane.prepared.Store(true)
	t.expectControllers()
	early, endEarly := context.WithCancel(life)
	t.endEarly = endEarly
	for _, one := range t.tasks {
		if one.early {
			t.early.Go(func() { t.until(early, life, one) })
		} else {
			t.run(life, one)
		}
	}
	return t, t.awaitReady(ctx, life)
}

// ahead begins something, and returns a function that waits for its result.
func ahead[T any](f func() (T, error)) func() (T, error) {
	result := sync.OnceValues(f)
	go func() { _, _ = result() }()
	return result
}

// run runs a task until the life of the tenant ends. If the task stops before, the life
// ends.
func (t *tenant) run(life context.Context, one task) {
	t.running.Go(func() { t.until(life, life, one) })
}

// until runs a task until a context ends.
func (t *tenant) until(ctx, life context.Context, one task) {
	if one.name == controllersTask { // the first request goes before them
		select {
		case <-ctx.Done():
			return
		case <-time.After(controllersDelay):
		}
	}
	if err := one.run(ctx); ctx.Err() == nil && life.Err() == nil {
		klog.ErrorS(err, "A task of a tenant stopped; the tenant is closed and opened again by the next request", "tenant", t.tenant.Name, "task", one.name)
		t.broken.Store(true)
		t.end()
	}
}

// lost ends the tenant on this server: its guard is gone, because it was deleted or moved.
func (t *tenant) lost() {
	t.closed.Store(true)
	t.broken.Store(true)
	t.end()
}

// Usage implements tenants.Plane.
func (t *tenant) Usage() meter.Usage { return t.meter.Usage() }

// Broken implements tenants.Plane.
func (t *tenant) Broken() bool { return t.broken.Load() }

// tenantOptions are those of the server, as far as they are for its tenants.
func (s *Server) tenantOptions(of tenants.Tenant) *Options {
	o, etcd := *s.options, *s.options.Etcd
	etcd.StorageConfig.Prefix = tenants.Prefix(s.options.Etcd.StorageConfig.Prefix, of.UID)
	o.Etcd, o.Tenants, o.observe = &etcd, false, nil
	// Webhooks that authorize would not know which tenant they are asked about.
	o.Authorization = newAuthorization()
	// A certificate that is signed with the CA of the server is one of a user of the server.
	o.Controllers = slices.Concat([]string{"-" + requestSigner, "-" + tenantRemover}, o.Controllers)
	return &o
}

// build makes the handlers and tasks of the tenant.
func (t *tenant) build(ctx context.Context, in *Server) (err error) {
	o, of := t.options, t.tenant
	t.feed = informer.New(informer.Options{
		Etcd: t.backend.Client(), Prefix: o.Etcd.StorageConfig.Prefix, Transformers: in.config.ResourceTransformers, Stream: string(of.UID),
	}, in.builtin.Informers())
	if t.controlPlane, err = newControlPlane(o.Kinds, t.feed.Register); err != nil {
		return err
	}
	p, config := t.controlPlane, *in.config
	if p.identity, err = in.controlPlane.identity.Part(authentication.Part{Path: tenants.Path(of.Name), Cached: p.accounts.Cached(), Live: p.accounts.Live()}); err != nil {
		return fmt.Errorf("authentication of service accounts: %w", err)
	}
	if p.authorization, err = o.Authorization.build(p.roles, config.APIServerID); err != nil {
		return err
	}
	p.rules = p.authorization
	config.Authentication.APIAudiences = p.identity.Audiences
	config.Authentication.Authenticator = union.New(p.loop, authenticator.RequestFunc(visitor), authenticator.RequestFunc(guest), p.identity.Authenticator)
	config.Authorization.Authorizer = visits{p.authorization, t.sharing}
	config.FlowControl, config.LoopbackClientConfig = nil, p.loop.Config()
	if err := p.admit(ctx, o, &config); err != nil {
		return err
	}
	if t.given, err = t.hadDefaults(); err != nil {
		return err
	}
	if t.given {
		t.run(ctx, task{name: "built-in-resources", run: t.feed.Run}) // while the rest is made
	}
	t.signals = t.limited(in, of)
	t.config = &config
	routes, err := t.wire(ctx, o, &config)
	if err != nil {
		return err
	}
	paths := mux.NewPathRecorderMux("tenant")
	routes.install(paths)
	t.installOther(paths, &config)
	shared := t.sharing
	config.Authorization.Authorizer = consumers{config.Authorization.Authorizer, shared}
	t.handler = t.ownURLs(t.watched(shared.split(t.signals.chain(shared.serve(paths), &config))))
	return nil
}

// limited are the signals of the server, with the limits of a tenant.
func (t *tenant) limited(in *Server, of *tenants.Tenant) *signals {
	p := t.controlPlane
	return &signals{
		tracing: in.signals.tracing, controlPlane: p, denials: in.signals.denials,
		tenant: of.Name, traffic: in.signals.traffic, leaving: in.signals.leaving, notAccepting: in.signals.notAccepting, writes: in.signals.writes,
		watches: limit.NewWatchesOfAll(t.options.Limits.WatchesPerUser, p.loop.Has), seats: newSeats(of.Requests, in.turns.Share(), p.loop.Has, t.meter.Full),
	}
}

// installOther serves what is not about resources. Metrics and profiles are the process's.
func (t *tenant) installOther(paths *mux.PathRecorderMux, config *genericapiserver.Config) {
	healthy := http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if !t.ready() {
			http.Error(w, "roles, bindings, default objects or CRDs have not been read yet", http.StatusInternalServerError)
			return
		}
		_, _ = w.Write([]byte("ok")) // a client that has gone needs no answer
	})
	for _, path := range []string{"/healthz", "/livez", "/readyz"} {
		paths.Handle(path, healthy)
	}
	paths.Handle("/version", http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		responsewriters.WriteRawJSON(http.StatusOK, config.EffectiveVersion.Info(), w)
	}))
	t.controlPlane.identity.Issuer.Install(paths)
}

// ownURLs serves clients within the process at the URLs that OpenAPI publishes: these begin
// with the path of the tenant, as they must for everyone else.
func (t *tenant) ownURLs(next http.Handler) http.Handler {
	below := http.StripPrefix(tenants.Path(t.tenant.Name), next)
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if t.controlPlane.loop.Has(req) && strings.HasPrefix(req.URL.Path, tenants.Path(t.tenant.Name)+"/") {
			below.ServeHTTP(w, req)
			return
		}
		next.ServeHTTP(w, req)
	})
}

// watched remembers when a controller of the tenant writes. That they renew their lease does not count, only that they
// get it.
func (t *tenant) watched(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if t.controlPlane.loop.Has(req) && req.Method != http.MethodGet {
			now := time.Now().UnixNano()
			switch lease := strings.Contains(req.URL.Path, "/leases"); {
			case lease && t.leads.CompareAndSwap(false, true), !lease && t.last.Load() < now: // others do not end the wait for them
				t.last.Store(now)
			}
		}
		next.ServeHTTP(w, req)
	})
}

// guest authenticates users of the server.
func guest(req *http.Request) (*authenticator.Response, bool, error) {
	who := tenants.Guest(req.Context())
	if who == nil {
		return nil, false, nil
	}
	return &authenticator.Response{User: who}, true, nil
}

// withTenant notes the tenant in the audit events of a request.
func withTenant(next http.Handler, name string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		audit.AddAuditAnnotation(req.Context(), tenantAnnotation, name)
		next.ServeHTTP(w, req)
	})
}

// ready reports whether the tenant can serve requests.
func (t *tenant) ready() bool {
	return t.controlPlane.ready() && t.knowledge.unread() == nil && t.sharing.binder.Ready()
}

// awaitReady returns when the tenant is ready, or its life has ended.
func (t *tenant) awaitReady(ctx, life context.Context) error {
	for !t.ready() {
		select {
		case <-ctx.Done():
			return fmt.Errorf("the tenant did not become ready: %w", ctx.Err())
		case <-life.Done():
			return errors.New("a task of the tenant stopped")
		case <-time.After(tenantPoll):
		}
	}
	return nil
}

// ServeHTTP implements tenants.Plane.
func (t *tenant) ServeHTTP(w http.ResponseWriter, req *http.Request) { t.handler.ServeHTTP(w, req) }

// expectControllers keeps the tenant open until its controllers lead, or have had the time to.
func (t *tenant) expectControllers() {
	t.last.Store(time.Now().Add(controllersDelay + electionTime).UnixNano())
}

// Quiet implements tenants.Plane. It is negative while controllers are expected.
func (t *tenant) Quiet() time.Duration { return time.Since(time.Unix(0, t.last.Load())) }

// Close implements tenants.Plane.
func (t *tenant) Close() {
	// Controllers give their lease back through the plane: the next one would wait for it.
	t.endEarly()
	ended := make(chan struct{})
	go func() { t.early.Wait(); close(ended) }()
	select {
	case <-ended:
	case <-time.After(earlyTime):
	}
	t.end()
	t.running.Wait()
	t.sharing.running.Wait()
	<-ended
	if t.allocator != nil {
		t.allocator.Close()
	}
	if member, err := t.join(); err == nil { // its task leaves, if it was started
		member.Leave(context.Background())
	}
	_ = t.backend.Close() // of a part: it only ends storages
}
