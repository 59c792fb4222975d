package openapihandler

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"runtime/debug"
	"sync"

	"k8s.io/klog/v2"
)

// rendered is a document, compressed.
type rendered struct {
	hash hash
	data []byte
}

// source is a document as it is at one moment.
type source struct {
	hash  hash
	write func(context.Context, io.Writer) error
}

// flights renders a document once for all waiting requests. A request that arrives
// during a rendering waits for the next one, so that its document is never older than
// the request. A document that changes all the time is rendered by one goroutine at a
// time, for any number of requests, and not at all without requests.
type flights struct {
	mu      sync.Mutex
	running map[string]*flight // by the name of the document
	next    map[string]*flight
}

// flight is a rendering.
type flight struct {
	waiting int // callers
	cancel  context.CancelFunc
	done    chan struct{}
	result  rendered
	err     error
}

// do returns the result of a call of render that begins after the call of do.
func (f *flights) do(ctx context.Context, name string, render func(context.Context) (rendered, error)) (rendered, error) {
	one := f.join(name, render)
	select {
	case <-one.done:
		return one.result, one.err
	case <-ctx.Done():
		f.leave(name, one)
		return rendered{}, ctx.Err()
	}
}

// join returns the rendering that begins next.
func (f *flights) join(name string, render func(context.Context) (rendered, error)) *flight {
	f.mu.Lock()
	defer f.mu.Unlock()
	if one := f.next[name]; one != nil {
		one.waiting++
		return one
	}
	if f.running == nil {
		f.running, f.next = map[string]*flight{}, map[string]*flight{}
	}
	ctx, cancel := context.WithCancel(context.Background()) // it belongs to no single request
	one := &flight{waiting: 1, cancel: cancel, done: make(chan struct{})}
	before := f.running[name]
	if before == nil {
		f.running[name] = one
	} else {
		f.next[name] = one
	}
	go f.run(ctx, name, one, before, render)
	return one
}

// leave is called by a request that stops waiting. When no request waits any more, the
// rendering is cancelled, and no other request joins it.
func (f *flights) leave(name string, one *flight) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if one.waiting--; one.waiting > 0 {
		return
	}
	one.cancel()
	if f.next[name] == one {
		delete(f.next, name)
	}
}

// begin makes a rendering the current one when the one before is over. It reports
// whether a request waits for it.
func (f *flights) begin(name string, one, before *flight) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.next[name] == one {
		f.running[name] = one
		delete(f.next, name)
		return true
	}
	// If the rendering before held its slot for this one, the slot is free now.
	if f.running[name] == before && f.next[name] == nil {
		delete(f.running, name)
	}
	return false
}

// run renders when the rendering before is over.
func (f *flights) run(ctx context.Context, name string, one, before *flight, render func(context.Context) (rendered, error)) {
	if before != nil {
		<-before.done
		if !f.begin(name, one, before) {
			return
		}
	}
	one.result, one.err = recovered(ctx, name, render)
	one.cancel()
	f.mu.Lock()
	if f.next[name] == nil { // otherwise the next one takes the place
		delete(f.running, name)
	}
	f.mu.Unlock()
	close(one.done)
}

// recovered returns a panic of render as an error. render runs in a goroutine of its
// own, so nothing else recovers the panic, and it would end the process.
func recovered(ctx context.Context, name string, render func(context.Context) (rendered, error)) (made rendered, err error) {
	defer func() {
		if why := recover(); why != nil {
			klog.ErrorS(nil, "Panicked while rendering an OpenAPI document", "document", name, "panic", why, "stack", string(debug.Stack()))
			made, err = rendered{}, fmt.Errorf("rendering %s panicked: %v", name, why)
		}
	}()
	return render(ctx)
}

var zippers = sync.Pool{New: func() any {
	z, err := gzip.NewWriterLevel(nil, gzip.BestSpeed)
	if err != nil {
		panic(err) // the level is valid
	}
	return z
}}

// render makes a document, unless it is in the cache.
func (h *Handler) render(ctx context.Context, name string, s source) (rendered, error) {
	if data := h.cache.get(name, s.hash); data != nil {
		return rendered{s.hash, data}, nil
	}
	var out bytes.Buffer
	zipper := zippers.Get().(*gzip.Writer)
	defer zippers.Put(zipper)
	zipper.Reset(&out)
	if err := s.write(ctx, zipper); err != nil {
		return rendered{}, err
	}
	if err := zipper.Close(); err != nil {
		return rendered{}, err
	}
	data := bytes.Clone(out.Bytes()) // without the room for more
	h.cache.put(name, s.hash, data)
	return rendered{s.hash, data}, nil
}
