package server

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/endpoints/metrics"
	"k8s.io/apiserver/pkg/endpoints/request"
)

// answerGrace is what a handler gets beyond the deadline of its request to
// write that it is over.
const answerGrace = 5 * time.Second

// withEnd ends requests whose context has a deadline when that has passed, in
// the goroutine they run in. grace is for the answer.
//
// k8s.io/apiserver runs every request in a second goroutine, to abandon it at
// the deadline; that costs a stack for each. Here handlers end by themselves:
// all that can take long looks at the context (etcd, the watch cache, webhooks)
// or moves bytes of the connection, which stops moving them when the time is
// up: a client that sends its body too slowly gets 504, one that reads the
// answer too slowly loses the connection.
func withEnd(handler http.Handler, grace time.Duration) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		ctx := req.Context()
		if _, limited := ctx.Deadline(); !limited {
			handler.ServeHTTP(w, req)
			return
		}
		if req.Body != nil && req.Body != http.NoBody {
			shallow := *req
			shallow.Body = &limitedBody{ReadCloser: req.Body, ctx: ctx}
			req = &shallow
		}
		ended := make(chan struct{})
		stop := context.AfterFunc(ctx, func() {
			defer close(ended)
			if errors.Is(ctx.Err(), context.DeadlineExceeded) {
				endConnection(w, req, grace)
			}
		})
		defer func() {
			if !stop() {
				<-ended // the writer may not be used after the handler has returned
			}
		}()
		handler.ServeHTTP(w, req)
	})
}

// endConnection stops reading from the client now, and writing soon.
func endConnection(w http.ResponseWriter, req *http.Request, grace time.Duration) {
	if info, ok := request.RequestInfoFrom(req.Context()); ok {
		metrics.RecordRequestTermination(req, info, metrics.APIServerComponent, http.StatusGatewayTimeout)
	}
	now := time.Now()
	connection := http.NewResponseController(w)
	// Errors say that the writer is none of a connection, as in tests: then
	// there is nobody to be slow.
	_ = connection.SetReadDeadline(now)
	_ = connection.SetWriteDeadline(now.Add(grace))
}

// limitedBody is a body that ends with the request's context.
type limitedBody struct {
	io.ReadCloser
	ctx context.Context
}

// Read implements io.Reader.
func (b *limitedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil && err != io.EOF && errors.Is(b.ctx.Err(), context.DeadlineExceeded) {
		err = apierrors.NewTimeoutError("request did not complete within the allotted timeout", 0)
	}
	return n, err
}
