package limit

import (
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// unguarded is how many bytes of an answer are written without a timer:
	// net/http keeps them, and writes them when the handler has returned (Last).
	unguarded = 4 << 10
	// piece is how much is written at a time: a client that takes less within the
	// timeout loses the answer.
	piece = 256 << 10
	// lookEvery is how often a write under way is looked at, at most.
	lookEvery = 2 * time.Second
)

// Writes says how long a write of an answer may be blocked. HTTP/2 blocks writes
// of one answer until the client gives it room, though the connection is fine.
type Writes struct {
	timeout time.Duration
	leaving <-chan struct{}
}

// NewWrites ends answers that have been blocked for the timeout, or, when leaving
// is closed, within seconds. A timeout of 0 is no limit until then.
func NewWrites(timeout time.Duration, leaving <-chan struct{}) *Writes {
	register()
	return &Writes{timeout: timeout, leaving: leaving}
}

// period is the time between two looks.
func (l *Writes) period() time.Duration {
	if l.timeout <= 0 {
		return lookEvery
	}
	return max(min(lookEvery, l.timeout/4), time.Millisecond)
}

// ends reports whether a write that was under way at so many looks is to end.
func (l *Writes) ends(looks int) bool {
	select {
	case <-l.leaving:
		return looks > 0
	default:
		return l.timeout > 0 && time.Duration(looks)*l.period() >= l.timeout
	}
}

// Guard watches over the writes of one answer. All of its methods but the timer's
// are for the goroutine that answers.
type Guard struct {
	limits  *Writes
	written int
	// writes is odd while a write is under way.
	writes atomic.Uint64
	armed  atomic.Bool

	w http.ResponseWriter

	mu    sync.Mutex
	timer *time.Timer
	seen  uint64 // writes at the last look
	looks int    // how many have seen the same write
	over  bool   // the answer was ended, or the handler has returned
}

// Watch makes a guard watch over the writes to w. Without limits it does nothing.
func (g *Guard) Watch(w http.ResponseWriter, limits *Writes) { g.w, g.limits = w, limits }

// Write writes to the guarded writer.
func (g *Guard) Write(data []byte) (n int, err error) {
	if g.limits == nil {
		return g.w.Write(data)
	}
	if g.written += len(data); g.written <= unguarded {
		return g.w.Write(data)
	}
	for {
		part := data[n:min(len(data), n+piece)]
		g.begin()
		wrote, err := g.w.Write(part)
		g.writes.Add(1)
		n += wrote
		if err != nil || n >= len(data) {
			return n, err
		}
	}
}

// Flush flushes the guarded writer.
func (g *Guard) Flush() {
	flusher, ok := g.w.(http.Flusher)
	if !ok {
		return
	}
	if g.limits == nil {
		flusher.Flush()
		return
	}
	g.begin()
	flusher.Flush()
	g.writes.Add(1)
}

// begin is before a write.
func (g *Guard) begin() {
	g.writes.Add(1)
	if g.armed.CompareAndSwap(false, true) {
		g.mu.Lock()
		defer g.mu.Unlock()
		if g.timer == nil {
			g.timer = time.AfterFunc(g.limits.period(), g.look)
		} else {
			g.timer.Reset(g.limits.period())
		}
	}
}

// look is what the timer does: as long as there are writes, it comes again.
func (g *Guard) look() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.over {
		return
	}
	now := g.writes.Load()
	switch {
	case now == g.seen && now%2 == 1:
		g.looks++
	case now == g.seen:
		// Nothing is written. A write that begins just now must not miss this.
		g.armed.Store(false)
		if g.writes.Load() == now || !g.armed.CompareAndSwap(false, true) {
			return
		}
		fallthrough
	default:
		g.seen, g.looks = g.writes.Load(), 0
	}
	if g.limits.ends(g.looks) {
		g.over = true
		answersEnded.WithLabelValues("stream").Inc()
		// An error says that the writer is none of a connection, as in tests.
		_ = http.NewResponseController(g.w).SetWriteDeadline(time.Now())
		return
	}
	g.timer.Reset(g.limits.period())
}

// Done is for when the handler has returned: the writer may not be used any more.
func (g *Guard) Done() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.over = true
	if g.timer != nil {
		g.timer.Stop()
	}
}

// Last is for when the handler of a request returns, whatever it has written: it
// gives what net/http still has to write as long as any blocked write, and seconds
// when the server leaves. The guard cannot: then the writer is no longer the
// handler's.
//
// Only HTTP/2 has deadlines for one answer; those of HTTP/1 connections are the
// listener's. It costs net/http a timer, which ends with the stream, and a message
// to the connection's goroutine: 3 allocations, about 150 bytes.
func (l *Writes) Last(w http.ResponseWriter, req *http.Request) {
	if l == nil || req.ProtoMajor != 2 {
		return
	}
	timeout := l.timeout
	select {
	case <-l.leaving:
		timeout = lookEvery
	default:
	}
	if timeout > 0 {
		// An error says that the writer is none of a connection, as in tests.
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(timeout))
	}
}
