package tenants

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/client-go/dynamic"
	"k8s.io/klog/v2"

	"github.com/espalier-dev/espalier/server/storage/meter"
	"github.com/espalier-dev/espalier/server/storage/store"
)

// Plane serves one tenant.
type Plane interface {
	http.Handler
	// Quiet is for how long it has done nothing by itself.
	Quiet() time.Duration
	// Broken reports whether something that requests depend on has failed.
	Broken() bool
	// Usage is what the tenant has in etcd.
	Usage() meter.Usage
	// Close ends it, with its requests and watches.
	Close()
}

// Options are what a Set needs. All of them must be set.
type Options struct {
	// Client is for the objects of tenants, Pool for their folders.
	Client dynamic.Interface
	Pool   *Pool
	Prefix string
	// Users authenticates users of the server, Authorizer decides which of them may
	// access which tenant.
	Users      authenticator.Request
	Authorizer authorizer.UnconditionalAuthorizer
	// Signed reports whether a request has a token that the server has signed for what is
	// at a path.
	Signed func(req *http.Request, path string) bool
	// Ready reports whether Authorizer knows the roles yet. Denied is told of requests that
	// are refused before a tenant sees them.
	Ready  func() bool
	Denied func(req *http.Request, who user.Info, tenant string, refusal error)
	// Start returns what serves a tenant from its etcd, when it is ready.
	Start func(context.Context, Tenant, *store.Backend) (Plane, error)
	// Idle is how long a plane is kept without requests.
	Idle time.Duration
	// Most is how many planes there may be without a request under way.
	Most int
}

const (
	// startTime is how long the start of a plane may take.
	startTime = 30 * time.Second
	// drainTime is how long requests have to end when the settings of their tenant change.
	// Watches end then.
	drainTime, drainPoll = 5 * time.Second, 10 * time.Millisecond
)

// Set has the tenants that are in use. It is safe for concurrent use.
type Set struct {
	options  Options
	registry registry
	find     func(ctx context.Context, name string) (Tenant, *Use, error) // the registry's open

	life context.Context // of starts
	end  context.CancelFunc

	places   *places
	failures failures

	mu      sync.Mutex
	active  map[string]*entry
	closed  bool
	running sync.WaitGroup // starts and closures
}

// entry is a tenant in use. What is below plane is guarded by Set.mu.
type entry struct {
	name   string
	ready  chan struct{} // closed when err or tenant and plane are set
	err    error
	tenant Tenant
	use    *Use // of its etcd
	plane  Plane

	requests atomic.Int64

	users    int
	used     time.Time
	gone     bool // no longer in active
	finished bool // the start is over
	checking bool // whether it was deleted or changed
	changed  bool // meanwhile
}

// New returns a set without tenants in use.
func New(o Options) *Set {
	life, end := context.WithCancel(context.Background())
	r := registry{o.Client.Resource(Resource), o.Pool.root.Client(), o.Pool, o.Prefix}
	return &Set{options: o, registry: r, find: r.open, life: life, end: end, active: map[string]*entry{}, places: newPlaces()}
}

// attempts is how many planes a request waits for, if those that are started fail at once.
const attempts = 3

var errBroken = errors.New("the tenant failed again right after its start")

// enter returns a tenant that is ready. The caller must leave it.
func (s *Set) enter(ctx context.Context, name string) (*entry, error) {
	for range attempts {
		e, err := s.await(ctx, name)
		if errors.Is(err, store.ErrClosed) { // it was moved while it started
			continue
		}
		if err != nil {
			return nil, err
		}
		s.mu.Lock()
		gone := e.gone
		s.mu.Unlock()
		broken := e.plane.Broken()
		if !gone && !broken {
			return e, nil
		}
		s.leave(e)
		if broken {
			s.retire(e, 0)
		}
	}
	return nil, errBroken
}

// await starts a tenant, if it is not in use, and waits until it has started. Without an
// error, the caller must leave it.
func (s *Set) await(ctx context.Context, name string) (*entry, error) {
	s.mu.Lock()
	e := s.active[name]
	if e == nil {
		if s.closed {
			s.mu.Unlock()
			return nil, context.Canceled
		}
		if err := s.failures.check(name); err != nil {
			s.mu.Unlock()
			return nil, err
		}
		e = &entry{name: name, ready: make(chan struct{})}
		s.active[name] = e
		s.running.Go(func() { s.start(e) })
	}
	e.users++
	s.mu.Unlock()
	select {
	case <-e.ready:
	case <-ctx.Done():
		s.leave(e)
		return nil, ctx.Err()
	}
	if e.err != nil {
		s.leave(e)
		return nil, e.err
	}
	return e, nil
}

// leave ends a use.
func (s *Set) leave(e *entry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e.users--
	e.used = time.Now()
}

// start opens a tenant and starts its plane.
func (s *Set) start(e *entry) {
	defer close(e.ready)
	began := time.Now()
	if e.err = s.open(e); e.err == nil {
		if e.err = s.begin(e); e.err != nil {
			e.use.Release()
		}
	}
	if !isGone(e.err) && !passing(e.err) && !errors.Is(e.err, errImporting) && !errors.Is(e.err, context.Canceled) {
		s.failures.note(e.name, e.err)
	}
	s.mu.Lock()
	e.finished, e.used = true, time.Now()
	if e.err != nil {
		s.forget(e)
	}
	gone := e.gone
	s.mu.Unlock()
	switch {
	case e.err == nil && gone: // deleted, or closed, meanwhile
		s.running.Go(e.close)
	case e.err == nil:
		klog.V(2).InfoS("Started a tenant", "tenant", e.name, "after", time.Since(began).Round(time.Microsecond))
		s.shrink()
	}
}

// passing reports whether a failure is not the tenant's, and others wait for its end.
func passing(err error) bool {
	_, away := errors.AsType[*AwayError](err)
	_, moving := errors.AsType[*movingError](err)
	return away || moving || errors.Is(err, store.ErrClosed)
}

// open finds the tenant and connects to its etcd. It waits for no place: that of an etcd which
// does not answer would be missed by others.
func (s *Set) open(e *entry) (err error) {
	ctx, cancel := context.WithTimeout(s.life, startTime)
	defer cancel()
	if e.tenant, e.use, err = s.locate(ctx, e.name); err == nil {
		s.warm(e.tenant.next)
	}
	return err
}

// warm connects to the etcd that a tenant is moved to, which then takes no time when the tenant is stopped.
func (s *Set) warm(etcd string) {
	if etcd != "" {
		s.running.Go(func() {
			use, err := s.options.Pool.Use(s.life, etcd)
			if err == nil {
				use.Release()
			}
		})
	}
}

// begin starts the plane of a tenant that was opened.
func (s *Set) begin(e *entry) (err error) {
	places := s.places
	if e.use.places != nil {
		places = e.use.places
	}
	ctx, leave, err := places.take(s.life)
	if err != nil {
		return err
	}
	defer leave()
	if !s.wanted(e) {
		return context.Canceled
	}
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	ctx, end := e.use.patient(ctx)
	defer end()
	e.plane, err = s.options.Start(ctx, e.tenant, e.use.Backend)
	if err != nil && errors.Is(context.Cause(ctx), errSlow) {
		return errSlow
	}
	return ended(ctx, err)
}

// close ends the plane, and then the use of its etcd.
func (e *entry) close() {
	e.plane.Close()
	e.use.Release()
}

// wanted reports whether to start a tenant: clients may have given up while others were
// started.
func (s *Set) wanted(e *entry) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return e.users > 0 && !e.gone && !s.closed
}

// forget takes an entry out, whose plane is then closed. The caller holds mu.
func (s *Set) forget(e *entry) {
	e.gone = true
	if s.active[e.name] == e {
		delete(s.active, e.name)
	}
}

// retire ends a tenant on this server. Requests that are under way have some time to end.
func (s *Set) retire(e *entry, patience time.Duration) {
	s.mu.Lock()
	ends := !e.gone && e.finished && e.err == nil
	s.forget(e)
	if ends && !s.closed { // otherwise nothing waits for what begins now
		s.running.Go(func() {
			s.drain(e, patience)
			e.close()
		})
		ends = false
	}
	s.mu.Unlock()
	if ends {
		e.close()
	}
}

// drain returns when no request uses an entry that was forgotten, or the time is over.
func (s *Set) drain(e *entry, patience time.Duration) {
	for end := time.Now().Add(patience); time.Now().Before(end) && s.life.Err() == nil; time.Sleep(drainPoll) {
		s.mu.Lock()
		users := e.users
		s.mu.Unlock()
		if users == 0 {
			return
		}
	}
}

// unused are the tenants that no request uses at the moment. The caller holds mu.
func (s *Set) unused() []*entry {
	var all []*entry
	for _, e := range s.active {
		if e.users == 0 && e.finished && e.err == nil {
			all = append(all, e)
		}
	}
	return all
}

// shrink ends the tenants that were not used for the longest time, if too many are not
// used at the moment.
func (s *Set) shrink() {
	s.mu.Lock()
	defer s.mu.Unlock()
	unused := s.unused()
	slices.SortFunc(unused, func(a, b *entry) int { return a.used.Compare(b.used) })
	for _, e := range unused[:max(0, len(unused)-s.options.Most)] {
		s.forget(e) // with the lock: no request enters it any more
		s.running.Go(e.close)
	}
}

// expire ends the tenants that were not used for the idle time, and those that have failed: their watches
// are to end.
func (s *Set) expire() {
	for _, e := range s.failed() {
		s.retire(e, 0)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.unused() {
		if time.Since(e.used) > s.options.Idle && e.plane.Quiet() > s.options.Idle {
			s.forget(e) // with the lock: no request enters it any more
			s.running.Go(e.close)
		}
	}
}

// failed are the tenants that have failed.
func (s *Set) failed() (failed []*entry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.active {
		if e.finished && e.err == nil && e.plane.Broken() {
			failed = append(failed, e)
		}
	}
	return failed
}

// entries are the tenants in use.
func (s *Set) entries() []*entry {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]*entry, 0, len(s.active))
	for _, e := range s.active {
		all = append(all, e)
	}
	return all
}

// Active is how many tenants are in use.
func (s *Set) Active() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.active)
}

// Run follows changes of tenants, and closes planes that are not used, until the context
// ends. Then all are closed.
func (s *Set) Run(ctx context.Context) error {
	defer s.close()
	changes := make(chan string, 16)
	go s.registry.follow(ctx, s.registry.objects(), changes)
	etcds := make(chan string, 16)
	go s.registry.follow(ctx, s.registry.etcds(), etcds)
	tick := time.NewTicker(max(s.options.Idle/4, 10*time.Millisecond))
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
			s.expire()
		case name := <-changes:
			s.changed(ctx, name)
		case <-etcds: // rarely: all tenants look whether it is theirs
			s.changed(ctx, "")
		}
	}
}

// changed looks again at tenants in use: the one of a name, or all if it is empty.
func (s *Set) changed(ctx context.Context, name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.active {
		if name != "" && e.name != name {
			continue
		}
		if e.changed = true; !e.checking {
			e.checking = true
			s.running.Go(func() { s.check(ctx, e) })
		}
	}
}

// check ends a tenant that was deleted or has other settings now. If that cannot be read,
// the tenant goes on: without its guard it writes nothing.
func (s *Set) check(ctx context.Context, e *entry) {
	select {
	case <-e.ready:
	case <-ctx.Done():
		return
	}
	for pause := firstRetry; s.unchecked(e); pause = min(2*pause, lastRetry) {
		now, use, err := s.find(ctx, e.name)
		use.Release()
		s.warm(now.next)
		now.next = e.tenant.next
		switch _, moving := errors.AsType[*movingError](err); {
		case moving: // new requests wait until it is there
			s.retire(e, grace)
			return
		case err == nil && now == e.tenant:
			continue
		case err == nil && now.UID == e.tenant.UID && now.Epoch != e.tenant.Epoch: // it has no guard any more
			s.retire(e, grace)
			return
		case err == nil && now.UID == e.tenant.UID: // it has other settings
			s.retire(e, drainTime)
			return
		case err == nil || isGone(err):
			s.retire(e, 0)
			return
		case ctx.Err() != nil:
			return
		}
		klog.ErrorS(err, "Reading a tenant in use failed, retrying", "tenant", e.name)
		s.mu.Lock()
		e.changed = true
		s.mu.Unlock()
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
	}
}

// unchecked reports whether a tenant in use may have changed since the last call.
func (s *Set) unchecked(e *entry) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	e.checking = e.changed && !e.gone
	e.changed = false
	return e.checking
}

func (s *Set) close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.end()
	var closing sync.WaitGroup
	for _, e := range s.entries() {
		closing.Go(func() { s.retire(e, 0) })
	}
	closing.Wait()
	s.running.Wait()
	s.options.Pool.Close()
}
