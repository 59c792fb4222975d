package customresource

import (
	"bufio"
	"context"
	"maps"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apiserver/pkg/endpoints/responsewriter"
	"k8s.io/klog/v2"
)

// watches are the answers to the open watches of a versionStorage.
//
//	versionStorage.close ──▶ the storage drops what it keeps for them ──▶ end: what their handlers
//	                still have is not written ──▶ the handlers return ──▶ the change is acknowledged
//
// The storage alone cannot do that: a handler has taken events ahead, and may be
// blocked by a client that does not read. Such an event would be sent seconds after
// the acknowledgement. For the same reason a watch ends that has an event to write while
// this replica does not know the CRDs as others do.
//
// A change of the schema alone keeps the storage and its watches:
//
//	the new schema is in force: events are encoded by it ──▶ renew: events that were encoded
//	before are sent, or their watches end ──▶ the change is acknowledged
type watches struct {
	mu   sync.Mutex
	open map[*watching]struct{}
}

// endTime is how long the end of watches waits for their handlers, and again for those
// whose connection it has ended.
const endTime = 500 * time.Millisecond

// watching is the answer to one watch.
type watching struct {
	http.ResponseWriter
	current func() bool        // that of Options
	cancel  context.CancelFunc // has the handler return
	ended   atomic.Bool
	// unsent is the first schema of the events that are being encoded, or are written and may
	// not be sent yet; nil if there are none. Only the handler's goroutine sets it.
	unsent atomic.Pointer[versionSchema]
	left   chan struct{} // closed when the handler has returned

	// Of the handler's goroutine.
	events     bool // what is written are events, and no error
	compressed bool // some of what is written comes only when the handler flushes
	direct     bool // what is written is sent at once: it is a websocket

	mu   sync.Mutex
	over bool     // the handler has returned: the writer may not be used any more
	conn net.Conn // of a websocket
}

var _ responsewriter.UserProvidedDecorator = (*watching)(nil)

// enter returns the writer and the request for the handler of a watch, which has to call
// leave. A watch that comes after the end gets an error of the storage, which is destroyed
// by then.
func (s *watches) enter(w http.ResponseWriter, req *http.Request, current func() bool) (_ http.ResponseWriter, _ *http.Request, leave func()) {
	ctx, cancel := context.WithCancel(req.Context())
	one := &watching{ResponseWriter: w, current: current, cancel: cancel, left: make(chan struct{})}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open == nil {
		s.open = map[*watching]struct{}{}
	}
	s.open[one] = struct{}{}
	return responsewriter.WrapForHTTP1Or2(one), req.WithContext(context.WithValue(ctx, watchingKey{}, one)), func() {
		cancel()
		one.leave()
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.open, one)
	}
}

// end ends the watches. When it returns, no event is written for their clients any more.
// One exception remains: if a client reads nothing of an HTTP/2 connection at all,
// net/http may still have one frame of an event, of 16 KB at most, to write.
func (s *watches) end(resource string) {
	s.mu.Lock()
	open := make([]*watching, 0, len(s.open))
	for one := range s.open {
		one.ended.Store(true)
		open = append(open, one)
	}
	s.mu.Unlock()
	open = stillOpen(open)
	for _, one := range open {
		one.abort()
	}
	if open = stillOpen(open); len(open) > 0 {
		// Their writes have failed, and others are not sent. TLS takes up to 5 s to send
		// close_notify, and HTTP/2 as long as another stream blocks the whole connection.
		klog.V(2).InfoS("Watches of a CRD that has changed wait for their connections to close", "resource", resource, "watches", len(open))
	}
}

// renewPause is how often renew looks whether events have been sent.
const renewPause = 5 * time.Millisecond

// renew returns when nothing is written to the watches any more that is encoded by
// another schema than the decoder's. If a client does not read such an event within
// endTime, its watch ends. The exception described at end applies here, too.
func (s *watches) renew(resource string, f *Decoder) {
	s.mu.Lock()
	open := slices.Collect(maps.Keys(s.open))
	s.mu.Unlock()
	sent := func(one *watching) bool { return !one.behind(f) }
	deadline := time.Now().Add(endTime)
	for {
		open = slices.DeleteFunc(open, sent)
		if len(open) == 0 {
			return
		}
		if time.Now().After(deadline) {
			break
		}
		time.Sleep(renewPause)
	}
	for _, one := range open {
		one.ended.Store(true)
		one.cancel()
		one.abort()
	}
	if left := stillOpen(open); len(left) > 0 {
		klog.V(2).InfoS("Watches of a CRD that has changed wait for their connections to close", "resource", resource, "watches", len(left))
	}
}

// behind reports whether the watch has events to send by another schema than the
// decoder's.
func (w *watching) behind(f *Decoder) bool {
	select {
	case <-w.left:
		return false
	default:
	}
	unsent := w.unsent.Load()
	return unsent != nil && unsent != f.current(f.kind.Version)
}

// encode returns the schema to encode an event by, and notes it: the acknowledgement of
// a later change waits until the event is sent.
func (w *watching) encode(f *Decoder) *versionSchema {
	if w.behind(f) {
		if w.compressed {
			return f.current(f.kind.Version) // still behind, until the handler flushes
		}
		w.Flush()
	}
	for {
		s := f.current(f.kind.Version)
		if w.unsent.Load() != s {
			w.unsent.Store(s)
		}
		if f.current(f.kind.Version) == s { // otherwise renew may have looked before it was noted
			return s
		}
	}
}

// encoded is when an event is encoded and written.
func (w *watching) encoded() {
	if w.direct {
		w.unsent.Store(nil)
	}
}

// stillOpen waits for handlers to return, and says which have not.
func stillOpen(open []*watching) (left []*watching) {
	if len(open) == 0 {
		return nil
	}
	timer := time.NewTimer(endTime)
	defer timer.Stop()
	late := false
	for _, one := range open {
		if !late {
			select {
			case <-one.left:
				continue
			case <-timer.C:
				late = true
			}
		}
		select {
		case <-one.left:
		default:
			left = append(left, one)
		}
	}
	return left
}

// leave is when the handler has returned. What it has written before the end is sent
// now, and not when net/http gets to it.
func (w *watching) leave() {
	if w.events {
		w.Flush()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.over = true
	close(w.left)
}

// abort makes a handler fail that waits for its client.
func (w *watching) abort() {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.over:
	case w.conn != nil:
		_ = w.conn.Close()
	default:
		// An error says that the writer is none of a connection, as in tests.
		_ = http.NewResponseController(w.ResponseWriter).SetWriteDeadline(time.Now())
	}
}

// Unwrap implements responsewriter.UserProvidedDecorator.
func (w *watching) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// WriteHeader implements http.ResponseWriter.
func (w *watching) WriteHeader(code int) {
	w.events = code == http.StatusOK
	w.compressed = w.Header().Get("Content-Encoding") != ""
	w.ResponseWriter.WriteHeader(code)
}

// Write implements http.ResponseWriter. An event is one call. After the end none is
// written, so that there is no gap: the client goes on from the last that it has.
func (w *watching) Write(data []byte) (int, error) {
	if w.events && w.current != nil && !w.current() {
		w.ended.Store(true)
		w.cancel()
	}
	if w.events && w.ended.Load() {
		return len(data), nil
	}
	return w.ResponseWriter.Write(data)
}

// Flush implements http.Flusher.
func (w *watching) Flush() {
	if flusher, ok := w.ResponseWriter.(http.Flusher); ok {
		flusher.Flush()
	}
	w.unsent.Store(nil)
}

// Hijack implements http.Hijacker, for websockets. Their events do not come by Write:
// the connection is closed at the end.
func (w *watching) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	hijacker, ok := w.ResponseWriter.(http.Hijacker)
	if !ok {
		return nil, nil, http.ErrNotSupported
	}
	conn, buffered, err := hijacker.Hijack()
	if err == nil {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.conn, w.direct = conn, true
	}
	return conn, buffered, err
}
