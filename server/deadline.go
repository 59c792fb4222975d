package server

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/endpoints/metrics"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/endpoints/responsewriter"
)

// answerGrace is what a handler gets beyond the deadline of its request to
// write that it is over.
const answerGrace = 5 * time.Second

// withTimeout ends requests whose context has a deadline when that has passed, in
// the goroutine they run in. grace is for the answer.
//
// k8s.io/apiserver runs every request in a second goroutine, to abandon it at
// the deadline; that costs a stack for each. Here handlers end by themselves:
// all that can take long looks at the context (etcd, the watch cache, webhooks)
// or moves bytes of the connection, which stops moving them when the time is
// up: a client that sends its body too slowly gets 504, one that reads the
// answer too slowly loses the connection.
func withTimeout(handler http.Handler, grace time.Duration) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		ctx := req.Context()
		if _, limited := ctx.Deadline(); !limited {
			handler.ServeHTTP(w, req)
			return
		}
		e := &ending{ctx: ctx, body: limitedBody{ctx: ctx}}
		if req.Body != nil && req.Body != http.NoBody {
			shallow := *req
			e.body.ReadCloser = req.Body
			shallow.Body = &e.body
			req = &shallow
		}
		answer := w
		if req.ProtoMajor < 2 {
			e.ResponseWriter = w
			answer = responsewriter.WrapForHTTP1Or2(e)
		}
		ended := make(chan struct{})
		stop := context.AfterFunc(ctx, func() {
			defer close(ended)
			if errors.Is(ctx.Err(), context.DeadlineExceeded) {
				e.end(w, req, grace)
			}
		})
		returned := false
		defer func() {
			if stop() {
				return
			}
			<-ended // the writer may not be used after the handler has returned
			if returned && req.ProtoMajor < 2 {
				e.release()
			}
		}()
		handler.ServeHTTP(answer, req)
		returned = true // and did not panic, which closes the connection
	})
}

// ending is the end of a request. It is the writer of those over HTTP/1, whose
// deadlines are the connection's, and would be those of the requests that follow on
// it: of other users, behind a proxy. So an answer after the deadline announces that
// the connection is closed.
type ending struct {
	http.ResponseWriter
	ctx      context.Context
	body     limitedBody
	begun    bool // the headers are sent
	closes   bool // they say that the connection is closed
	unread   bool // reading from the connection was ended
	deadline bool // writing to it will be
}

var _ responsewriter.UserProvidedDecorator = (*ending)(nil)

// Unwrap implements responsewriter.UserProvidedDecorator.
func (e *ending) Unwrap() http.ResponseWriter { return e.ResponseWriter }

// WriteHeader implements http.ResponseWriter.
func (e *ending) WriteHeader(code int) {
	e.begin()
	e.ResponseWriter.WriteHeader(code)
}

// Write implements http.ResponseWriter.
func (e *ending) Write(data []byte) (int, error) {
	e.begin()
	return e.ResponseWriter.Write(data)
}

// Flush implements http.Flusher.
func (e *ending) Flush() {
	e.begin()
	if flusher, ok := e.ResponseWriter.(http.Flusher); ok {
		flusher.Flush()
	}
}

// begin is before the headers are sent.
func (e *ending) begin() {
	if e.begun {
		return
	}
	e.begun = true
	if errors.Is(e.ctx.Err(), context.DeadlineExceeded) {
		e.closes = true
		e.Header().Set("Connection", "close")
	}
}

// end stops reading from the client now, and writing soon.
func (e *ending) end(w http.ResponseWriter, req *http.Request, grace time.Duration) {
	if info, ok := request.RequestInfoFrom(req.Context()); ok {
		metrics.RecordRequestTermination(req, info, metrics.APIServerComponent, http.StatusGatewayTimeout)
	}
	now := time.Now()
	connection := http.NewResponseController(w)
	// An error means that the writer belongs to no connection, as in tests: then there is
	// no slow client either.
	//
	// When there is nothing more of a body, net/http itself reads from an HTTP/1
	// connection, and takes the deadline for the end of it.
	if req.ProtoMajor >= 2 || e.body.ReadCloser != nil && !e.body.over.Load() {
		e.unread = true
		_ = connection.SetReadDeadline(now)
	}
	e.deadline = true
	_ = connection.SetWriteDeadline(now.Add(grace))
}

// release makes an HTTP/1 connection fit for the next request, or closes it. It is for
// when the handler has returned and the end has been.
func (e *ending) release() {
	e.begin() // an answer without a body
	switch {
	case e.closes || !e.deadline:
	case e.unread:
		panic(http.ErrAbortHandler) // nothing else closes it when the headers are sent
	default:
		_ = http.NewResponseController(e.ResponseWriter).SetWriteDeadline(time.Time{})
	}
}

// limitedBody is a body that ends with the request's context.
type limitedBody struct {
	io.ReadCloser
	ctx  context.Context
	over atomic.Bool // all of it was read
}

// Read implements io.Reader.
func (b *limitedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err == io.EOF {
		b.over.Store(true)
	}
	if err != nil && err != io.EOF && errors.Is(b.ctx.Err(), context.DeadlineExceeded) {
		err = apierrors.NewTimeoutError("request did not complete within the allotted timeout", 0)
	}
	return n, err
}
