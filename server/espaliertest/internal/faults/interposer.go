package faults

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// Options are about an Interposer.
type Options struct {
	Plan
	// Host is the URL of the server, and Transport that of its administrator.
	Host      string
	Transport http.RoundTripper
	// Bubble says that clients run in a bubble of testing/synctest.
	Bubble bool
	// Settle waits until the server has nothing more to do by itself.
	Settle func()
}

// An Interposer stands between clients and a server.
type Interposer struct {
	Options
	outside *outside
	direct  *outside    // for requests that need not wait
	turn    sync.Mutex  // of direct
	waiting atomic.Bool // for the clients to be quiet
	server  *server
	stop    context.CancelFunc // of the server's watches

	mu        sync.Mutex
	began     time.Time
	running   bool
	calm      bool
	pending   []*request
	streams   []*stream
	counts    map[string]int       // of requests and watches, by key
	row       map[string]int       // of faults one after the other, by key
	looked    map[string]time.Time // when informers of a resource last got something, by key
	faults    int                  // that requests have got
	answers   int                  // that clients have got
	activity  int                  // changes with everything that a client does
	unsettled bool                 // the server may do more by itself
	wake      chan struct{}
	trace     trace
}

// New returns an interposer. It must not be called in a bubble.
func New(o Options) (*Interposer, error) {
	host, err := url.Parse(o.Host)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	ip := &Interposer{
		Options: o, outside: newOutside(), direct: newOutside(), stop: cancel,
		server: &server{host: host, rt: o.Transport, ctx: ctx, logs: map[resource]*eventLog{}},
		counts: map[string]int{}, row: map[string]int{}, looked: map[string]time.Time{},
	}
	if o.Bubble {
		go ip.mind(ctx)
	}
	return ip, nil
}

// mind ends a test whose clients do not become quiet: it would wait for ever.
func (ip *Interposer) mind(ctx context.Context) {
	last, since := -1, time.Now()
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(time.Second):
		}
		ip.mu.Lock()
		now, stuck := ip.activity, len(ip.pending) > 0 && ip.waiting.Load()
		ip.mu.Unlock()
		if now != last || !stuck {
			last, since = now, time.Now()
		}
		if time.Since(since) > patience {
			panic("espaliertest: the goroutines of the test do not come to rest: one of them waits for a lock that another one holds during a request, or for the network. Use Start with Faults instead of Explore")
		}
	}
}

// errEnded is what requests get that come too late.
var errEnded = errors.New("the test server has ended")

// Begin has requests wait for Run. With Bubble both must be called in the bubble of
// the clients.
func (ip *Interposer) Begin() {
	ip.mu.Lock()
	defer ip.mu.Unlock()
	ip.began, ip.running, ip.wake = time.Now(), true, make(chan struct{}, 1)
}

// Run decides what happens until the context ends.
func (ip *Interposer) Run(ctx context.Context) {
	defer ip.finish()
	rest, since := shortest, time.Now()
	for ctx.Err() == nil {
		ip.quiet()
		if ip.step() {
			rest, since = shortest, time.Now()
			continue
		}
		if ip.settle() {
			continue
		}
		timer := time.NewTimer(min(rest, ip.untilRelease()))
		if ip.Bubble && time.Since(since) > forever {
			timer.Stop() // so that synctest notices that all goroutines wait
		}
		select {
		case <-ctx.Done():
		case <-ip.wake:
			rest, since = shortest, time.Now()
		case <-timer.C:
			// Only now and then: the server changes objects by itself, without a signal.
			rest = min(2*rest, longest)
		}
		timer.Stop()
	}
}

const (
	shortest = 10 * time.Millisecond
	longest  = time.Second
	// forever is how long nothing happens before nothing is expected to.
	forever = time.Hour
	// pause is how long clients that are not in a bubble must have done nothing to be
	// quiet. More makes schedules more repeatable, and slower.
	pause = 2 * time.Millisecond
)

// quiet waits until the clients do nothing but wait. In a bubble time goes on only
// then.
func (ip *Interposer) quiet() {
	if ip.Bubble {
		ip.waiting.Store(true)
		time.Sleep(time.Microsecond)
		ip.waiting.Store(false)
		return
	}
	for before := -1; ; {
		ip.mu.Lock()
		now := ip.activity
		ip.mu.Unlock()
		if now == before {
			return
		}
		before = now
		time.Sleep(pause)
	}
}

// settle has the server finish what follows from writes by itself: deletions of
// dependents, for instance. It reports whether there was a reason to wait.
func (ip *Interposer) settle() bool {
	ip.mu.Lock()
	was := ip.unsettled
	ip.unsettled = false
	ip.mu.Unlock()
	if was && ip.Settle != nil {
		ip.outside.run(ip.Settle)
	}
	return was
}

// finish answers all who wait.
func (ip *Interposer) finish() {
	ip.mu.Lock()
	pending, streams := ip.pending, ip.streams
	ip.running, ip.pending, ip.streams = false, nil, nil
	ip.mu.Unlock()
	for _, q := range pending {
		q.answer <- answer{err: errEnded}
	}
	for _, s := range streams {
		s.end(io.EOF)
	}
}

// Close stops the goroutines that belong to no bubble. Run must have returned.
func (ip *Interposer) Close() {
	ip.stop()
	ip.outside.stop()
	ip.direct.stop()
}

// Calm ends the faults.
func (ip *Interposer) Calm() {
	ip.mu.Lock()
	ip.calm = true
	for _, s := range ip.streams {
		s.hold = nil
	}
	ip.mu.Unlock()
	ip.rouse()
}

// Tail is the end of what has happened on the wire, for people.
func (ip *Interposer) Tail(n int) string {
	ip.mu.Lock()
	defer ip.mu.Unlock()
	return ip.trace.tail(n)
}

// Order is what has happened on the wire, without times.
func (ip *Interposer) Order() string {
	ip.mu.Lock()
	defer ip.mu.Unlock()
	return ip.trace.order()
}

// Transport is that of a client: requests wait for their turn, and are made with
// the client's own transport then.
func (ip *Interposer) Transport(rt http.RoundTripper, steady bool) http.RoundTripper {
	return &transport{ip, rt, steady}
}

type transport struct {
	ip     *Interposer
	rt     http.RoundTripper
	steady bool
}

// RoundTrip implements http.RoundTripper.
func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	q, err := read(r)
	if err != nil {
		return nil, err
	}
	q.rt, q.steady = t.rt, t.steady
	if q.verb == "" {
		return t.ip.passNow(r, q)
	}
	if !t.ip.submit(q) {
		return nil, errEnded
	}
	var a answer
	select {
	case a = <-q.answer:
	case <-r.Context().Done():
		t.ip.withdraw(q)
		return nil, r.Context().Err()
	}
	if a.err != nil {
		return nil, a.err
	}
	return a.response(r), nil
}

func (a answer) response(r *http.Request) *http.Response {
	return &http.Response{
		Status: strconv.Itoa(a.code) + " " + http.StatusText(a.code), StatusCode: a.code, Header: a.header, Body: a.body, ContentLength: -1,
		Proto: "HTTP/2.0", ProtoMajor: 2, Request: r,
	}
}

// passNow answers a request that is not about a resource, as discovery, without
// waiting for its turn: clients make it while they hold locks, and who waits for a
// lock is not quiet.
func (ip *Interposer) passNow(r *http.Request, q *request) (*http.Response, error) {
	ip.turn.Lock()
	defer ip.turn.Unlock()
	ip.mu.Lock()
	running := ip.running
	ip.mu.Unlock()
	if !running {
		return nil, errEnded
	}
	var got reply
	var err error
	ip.direct.run(func() { got, err = ip.server.forward(q) })
	if err != nil {
		return nil, err
	}
	return answer{code: got.code, header: got.header, body: io.NopCloser(bytes.NewReader(got.body))}.response(r), nil
}

func (ip *Interposer) submit(q *request) bool {
	ip.mu.Lock()
	defer ip.mu.Unlock()
	if !ip.running {
		return false
	}
	ip.counts[q.key]++
	q.nth = strconv.Itoa(ip.counts[q.key])
	q.notBefore = ip.smooth(q)
	ip.pending = append(ip.pending, q)
	ip.activity++
	ip.rouse()
	return true
}

// smooth returns when to answer a request at the earliest. Informers wait before
// they try again, and choose how long at random, between a time and its double: the
// server takes so much longer that the choice makes no difference.
func (ip *Interposer) smooth(q *request) time.Time {
	now := time.Now()
	last, ok := ip.looked[q.looks()]
	if !ip.Bubble || q.steady || !ok || now.Sub(last) < backoff/2 {
		return now
	}
	after := backoff
	for after < now.Sub(last) {
		after *= 2
	}
	return last.Add(after)
}

// backoff is the longest that an informer waits the first time.
const backoff = 1600*time.Millisecond + time.Microsecond

// look notes that an informer has got something.
func (ip *Interposer) look(q *request) {
	if key := q.looks(); key != "" {
		ip.mu.Lock()
		defer ip.mu.Unlock()
		ip.looked[key] = time.Now()
	}
}

func (ip *Interposer) withdraw(q *request) {
	ip.mu.Lock()
	defer ip.mu.Unlock()
	ip.pending = slices.DeleteFunc(ip.pending, func(other *request) bool { return other == q })
	ip.activity++
}

// rouse ends a rest of Run.
func (ip *Interposer) rouse() {
	select {
	case ip.wake <- struct{}{}:
	default:
	}
}

// step has one thing happen on the wire, if there is one that can.
func (ip *Interposer) step() bool {
	ip.mu.Lock()
	ip.streams = slices.DeleteFunc(ip.streams, (*stream).over)
	q, s := ip.choose()
	ip.mu.Unlock()
	switch {
	case q != nil:
		ip.serve(q)
	case s != nil:
		ip.deliver(s)
	default:
		return false
	}
	return true
}

// choose picks a request to answer or a stream with something to deliver: the one
// of the least hash. Steady clients come first, so that they change nothing of the
// order of the others.
func (ip *Interposer) choose() (*request, *stream) {
	var chosen *request
	least := 2.0
	now := time.Now()
	for _, q := range ip.pending {
		if now.Before(q.notBefore) {
			continue
		}
		priority := -1.0
		if !q.steady {
			priority = ip.unit("turn", q.key, q.nth)
		}
		if chosen == nil || cmp.Or(cmp.Compare(priority, least), cmp.Compare(q.key, chosen.key), cmp.Compare(q.nth, chosen.nth)) < 0 {
			chosen, least = q, priority
		}
	}
	var stream *stream
	for _, s := range ip.streams {
		if priority := ip.unit("turn", s.key, strconv.Itoa(s.turns)); ip.due(s) && priority < least {
			stream, least = s, priority
		}
	}
	if stream != nil {
		return nil, stream
	}
	if chosen != nil {
		ip.pending = slices.DeleteFunc(ip.pending, func(other *request) bool { return other == chosen })
	}
	return chosen, nil
}

// due reports whether a stream has something to deliver, and delivers it now.
func (ip *Interposer) due(s *stream) bool {
	now := time.Now()
	if !s.ends.IsZero() && !now.Before(s.ends) {
		return true
	}
	if len(s.log.after(s.next)) == 0 {
		return false
	}
	if s.hold == nil {
		s.hold = ip.newHold(s, now)
	}
	return ip.calm || s.request.steady || ip.answers >= s.hold.answers || !now.Before(s.hold.until)
}

// newHold decides how long the next events of a stream wait.
func (ip *Interposer) newHold(s *stream, now time.Time) *hold {
	turn := strconv.Itoa(s.turns)
	if !ip.roll(ip.chance(LateEvents), "late", s.key, turn) {
		return &hold{ip.answers, now}
	}
	return &hold{
		answers: ip.answers + 1 + ip.pick(8, "answers", s.key, turn),
		// Not a round time: it is not to meet those that clients wait for.
		until: now.Add(time.Duration(math.Exp2(11*ip.unit("until", s.key, turn)) * float64(time.Millisecond))),
	}
}

// untilRelease is how long it is until a stream has something to do.
func (ip *Interposer) untilRelease() time.Duration {
	ip.mu.Lock()
	defer ip.mu.Unlock()
	least := longest
	for _, q := range ip.pending {
		least = min(least, time.Until(q.notBefore))
	}
	for _, s := range ip.streams {
		if s.hold != nil && len(s.log.after(s.next)) > 0 {
			least = min(least, time.Until(s.hold.until))
		}
		if !s.ends.IsZero() {
			least = min(least, time.Until(s.ends))
		}
	}
	return max(least, time.Microsecond)
}

// note writes a line of the trace.
func (ip *Interposer) note(who, what, then string, fault Kind) {
	ip.mu.Lock()
	defer ip.mu.Unlock()
	ip.trace.lines = append(ip.trace.lines, line{time.Since(ip.began), who, what, then, fault})
}

// fault decides whether a request gets a fault of a kind.
func (ip *Interposer) fault(q *request, k Kind) bool {
	ip.mu.Lock()
	defer ip.mu.Unlock()
	if ip.calm || q.steady || ip.row[q.key] >= row || ip.faults >= total || !ip.roll(ip.chance(k), string(k), q.key, q.nth) {
		return false
	}
	ip.row[q.key]++
	ip.faults++
	return true
}

func (ip *Interposer) clearRow(q *request) {
	ip.mu.Lock()
	defer ip.mu.Unlock()
	delete(ip.row, q.key)
}
