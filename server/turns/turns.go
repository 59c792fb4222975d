package turns

import (
	"context"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

const (
	// lapse is when a turn counts no longer: the request probably waits for something that this package does not
	// know of, for example a client that reads slowly.
	lapse = 100 * time.Millisecond
	// epoch is for how long a tenant counts as one of those that send requests, at least.
	epoch = time.Second
	// reserved is the part of the processors that a tenant leaves to others, one at least.
	reserved = 8
	// part of the time of the processors is the most that a tenant may use while others send requests. What a request
	// costs outside its turn is not counted, about as much again: reading it, TLS, decoding answers of etcd, and
	// collecting garbage.
	part = 4
	// ahead is how much a tenant that has used less than that may use at once, and behind for how long it waits at most
	// after it has used more, both in the time in which it may use as much.
	ahead, behind = 500 * time.Millisecond, 250 * time.Millisecond
)

// Turns are those of all tenants in a process. They are safe for concurrent use.
type Turns struct {
	processors int
	now        func() time.Time

	mu      sync.Mutex
	running int
	began   time.Time // of the epoch
	active  int       // tenants that have sent a request in this epoch
	before  int       // and in the one before
	epochs  int64
	queue   []*Share // with requests that wait, in the order in which they get turns

	alarm time.Time // when it is time to look at the queue again; zero if a turn that ends is soon enough
	clock *time.Timer
}

// New returns turns for a number of processors.
func New(processors int) *Turns { return &Turns{processors: processors, now: time.Now, epochs: 1} }

// A Share is one tenant's. Its fields are guarded by Turns.mu.
type Share struct {
	all     *Turns
	seen    int64 // the epoch of the last request
	running int
	due     time.Time // when the tenant may use processors again
	waiting []*waiter
}

// Share returns a tenant's share. It costs nothing while it is not used.
func (t *Turns) Share() *Share { return &Share{all: t} }

// waiter waits for a turn, which begins when its channel is closed.
type waiter struct {
	begin chan struct{}
	left  bool
}

// note counts the tenants that send requests. The caller holds mu.
func (t *Turns) note(s *Share) {
	if now := t.now(); now.Sub(t.began) >= epoch {
		t.before = t.active
		if now.Sub(t.began) >= 2*epoch {
			t.before = 0
		}
		t.active, t.began = 0, now
		t.epochs++
	}
	if s.seen != t.epochs {
		s.seen = t.epochs
		t.active++
	}
}

// may reports whether a tenant may have another turn. The caller holds mu.
func (t *Turns) may(s *Share) bool {
	if !t.shared() {
		return true
	}
	free := s.running < max(1, t.processors/t.tenants()) || t.running < t.processors-max(1, t.processors/reserved)
	return free && !s.due.After(t.now())
}

// tenants is how many send requests, and shared whether it is more than one. The caller holds mu.
func (t *Turns) tenants() int { return max(t.active, t.before) }
func (t *Turns) shared() bool { return t.tenants() > 1 }

// Contended reports whether others send requests beside this tenant.
func (s *Share) Contended() bool {
	if s == nil {
		return false
	}
	s.all.mu.Lock()
	defer s.all.mu.Unlock()
	return s.all.shared()
}

// begin starts a turn. The caller holds mu.
func (t *Turns) begin(s *Share) { s.running++; t.running++ }

// end ends a turn that took a time, and begins those that may begin now.
func (t *Turns) end(s *Share, took time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s.running--
	t.running--
	// Also if the tenant is alone: otherwise the first requests of another one would find it with nothing used.
	now := t.now()
	if earliest := now.Add(-ahead); s.due.Before(earliest) {
		s.due = earliest
	}
	s.due = s.due.Add(took * part / time.Duration(t.processors))
	if latest := now.Add(behind); s.due.After(latest) {
		s.due = latest
	}
	t.proceed()
}

// proceed begins the turns that may begin now, and sets the alarm for those that only wait for their time. The caller holds mu.
func (t *Turns) proceed() {
	for t.next() {
	}
	now := t.now()
	for _, s := range t.queue {
		if s.due.After(now) && (t.alarm.IsZero() || s.due.Before(t.alarm)) {
			t.alarm = s.due
			if t.clock != nil {
				t.clock.Stop()
			}
			t.clock = time.AfterFunc(s.due.Sub(now), t.ring)
		}
	}
}

// ring is called when the alarm is due. One that was stopped too late does no harm.
func (t *Turns) ring() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.alarm = time.Time{}
	t.proceed()
}

// next begins a turn of each tenant that has requests which wait and that may, and reports whether there was one. The
// caller holds mu.
func (t *Turns) next() (begun bool) {
	for range len(t.queue) {
		s := t.queue[0]
		t.queue = t.queue[1:]
		for len(s.waiting) > 0 && s.waiting[0].left {
			s.waiting = s.waiting[1:]
		}
		if len(s.waiting) > 0 && t.may(s) {
			close(s.waiting[0].begin)
			s.waiting = s.waiting[1:]
			t.begin(s)
			begun = true
		}
		if len(s.waiting) > 0 {
			t.queue = append(t.queue, s)
		} else {
			s.waiting = nil
		}
	}
	return begun
}

// wait returns when a turn has begun, and reports whether it has: the context may end before.
func (s *Share) wait(ctx context.Context, first bool) bool {
	t := s.all
	t.mu.Lock()
	t.note(s)
	if len(s.waiting) == 0 && t.may(s) {
		t.begin(s)
		t.mu.Unlock()
		return true
	}
	w := &waiter{begin: make(chan struct{})}
	if len(s.waiting) == 0 {
		t.queue = append(t.queue, s)
	}
	if first {
		s.waiting = append([]*waiter{w}, s.waiting...)
	} else {
		s.waiting = append(s.waiting, w)
	}
	t.proceed() // for the alarm
	t.mu.Unlock()
	select {
	case <-w.begin:
		return true
	case <-ctx.Done():
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	select {
	case <-w.begin: // meanwhile
		return true
	default:
		w.left = true
		return false
	}
}

// Turn is one request's. A nil Turn may be used, and does nothing.
type Turn struct {
	share *Share

	mu    sync.Mutex
	on    bool // it counts
	over  bool
	count int // of the times that it was on
	since time.Time
	timer *time.Timer
}

type key struct{}

// Take waits for a turn. The context that it returns is that of the request. Without an error, the caller must leave the
// turn; more than one call of Leave does no harm.
func (s *Share) Take(ctx context.Context) (context.Context, *Turn, error) {
	if s == nil {
		return ctx, nil, nil
	}
	if !s.wait(ctx, false) {
		return nil, nil, context.Cause(ctx)
	}
	turn := &Turn{share: s}
	turn.begun()
	return context.WithValue(ctx, key{}, turn), turn, nil
}

// begun notes that the turn counts.
func (t *Turn) begun() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.over { // the request ended while something of it waited
		t.share.all.end(t.share, 0)
		return
	}
	t.on, t.since = true, t.share.all.now()
	t.count++
	count := t.count
	t.timer = time.AfterFunc(lapse, func() { t.pause(count) })
}

// pause has the turn not count, and reports whether it did. n is which of its times is meant, 0 for any.
func (t *Turn) pause(n int) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.on || n != 0 && n != t.count {
		return false
	}
	t.on = false
	t.timer.Stop()
	t.share.all.end(t.share, t.share.all.now().Sub(t.since))
	return true
}

// Leave ends the turn.
func (t *Turn) Leave() {
	if t == nil {
		return
	}
	t.pause(0)
	t.mu.Lock()
	t.over = true
	t.mu.Unlock()
}

// Away gives the turn of a request to others while it waits for something outside this process. The function that it returns
// waits for the turn to go on.
func Away(ctx context.Context) (back func()) {
	t, _ := ctx.Value(key{}).(*Turn)
	if t == nil || !t.pause(0) { // it may have lapsed, or another goroutine of the request waits
		return func() {}
	}
	return func() {
		if t.share.wait(ctx, true) {
			t.begun()
		}
	}
}

// KV gives turns to others while requests wait for etcd.
func KV(next clientv3.KV) clientv3.KV { return kv{next} }

type kv struct{ clientv3.KV }

// Put implements clientv3.KV.
func (k kv) Put(ctx context.Context, key, val string, opts ...clientv3.OpOption) (*clientv3.PutResponse, error) {
	defer Away(ctx)()
	return k.KV.Put(ctx, key, val, opts...)
}

// Get implements clientv3.KV.
func (k kv) Get(ctx context.Context, key string, opts ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	defer Away(ctx)()
	return k.KV.Get(ctx, key, opts...)
}

// Delete implements clientv3.KV.
func (k kv) Delete(ctx context.Context, key string, opts ...clientv3.OpOption) (*clientv3.DeleteResponse, error) {
	defer Away(ctx)()
	return k.KV.Delete(ctx, key, opts...)
}

// Do implements clientv3.KV.
func (k kv) Do(ctx context.Context, op clientv3.Op) (clientv3.OpResponse, error) {
	defer Away(ctx)()
	return k.KV.Do(ctx, op)
}

// Txn implements clientv3.KV.
func (k kv) Txn(ctx context.Context) clientv3.Txn { return &txn{k.KV.Txn(ctx), ctx} }

type txn struct {
	clientv3.Txn
	ctx context.Context
}

// If implements clientv3.Txn.
func (t *txn) If(cs ...clientv3.Cmp) clientv3.Txn { t.Txn = t.Txn.If(cs...); return t }

// Then implements clientv3.Txn.
func (t *txn) Then(ops ...clientv3.Op) clientv3.Txn { t.Txn = t.Txn.Then(ops...); return t }

// Else implements clientv3.Txn.
func (t *txn) Else(ops ...clientv3.Op) clientv3.Txn { t.Txn = t.Txn.Else(ops...); return t }

// Commit implements clientv3.Txn.
func (t *txn) Commit() (*clientv3.TxnResponse, error) {
	defer Away(t.ctx)()
	return t.Txn.Commit()
}
