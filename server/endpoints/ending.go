package endpoints

import (
	"cmp"
	"context"
	"errors"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/espalier-dev/espalier/server/endpoints/reply"
)

// untilEnd makes a handler stop writing when its request is over: the client has gone,
// or the deadline has passed. Encoders of lists write in pieces, and stop at the first
// failed write. It costs one small object per list.
func untilEnd(handler http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, req *http.Request) {
		e := &endingWriter{ResponseWriter: w, ctx: req.Context()}
		handler(e, req)
		switch {
		case e.refused != nil:
			fail(w, req, e.sent, e.refused)
		case e.code != 0 && !e.sent:
			w.WriteHeader(e.code)
		}
	}
}

// endingWriter fails writes after its context has ended.
type endingWriter struct {
	http.ResponseWriter
	ctx     context.Context
	code    int // that is not sent yet
	sent    bool
	refused error
}

// Unwrap is for http.ResponseController.
func (e *endingWriter) Unwrap() http.ResponseWriter { return e.ResponseWriter }

// WriteHeader implements http.ResponseWriter.
func (e *endingWriter) WriteHeader(code int) {
	if e.code == 0 {
		e.code = code
	}
}

// Write implements http.ResponseWriter.
func (e *endingWriter) Write(p []byte) (int, error) {
	if err := e.ctx.Err(); err != nil {
		if e.sent || left(e.ctx) {
			// As fail does, and at once: an encoder that is told would only log it.
			panic(http.ErrAbortHandler)
		}
		e.refused = err
		return 0, err
	}
	if !e.sent {
		e.sent = true
		e.ResponseWriter.WriteHeader(cmp.Or(e.code, http.StatusOK))
	}
	n, err := e.ResponseWriter.Write(p)
	if err != nil {
		e.refused = err // the answer has a gap
	}
	return n, err
}

// left reports whether the client has gone. Otherwise the server has ended the request.
func left(ctx context.Context) bool { return errors.Is(context.Cause(ctx), context.Canceled) }

// fail ends a request whose answer is incomplete. If a part of it is sent, the
// connection ends, so that the part is not taken for the whole.
func fail(w http.ResponseWriter, req *http.Request, sent bool, err error) {
	if sent || errors.Is(err, context.Canceled) && left(req.Context()) {
		panic(http.ErrAbortHandler)
	}
	w.Header().Del("Content-Encoding")
	switch {
	case errors.Is(err, context.Canceled): // by the server, which says why
		err = reply.Unavailable(context.Cause(req.Context()).Error())
	case errors.Is(err, context.DeadlineExceeded):
		err = apierrors.NewTimeoutError("request did not complete within the allotted timeout", 0)
	}
	reply.Error(w, req, err)
}
