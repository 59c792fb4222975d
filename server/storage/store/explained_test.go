package store

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/storage"
)

// resultOf is what an error says of a write, with its code.
func resultOf(t *testing.T, err error) (code int32, cause metav1.CauseType, text string) {
	t.Helper()
	var known apierrors.APIStatus
	if !errors.As(err, &known) {
		t.Fatalf("%v has no Status", err)
	}
	s := known.Status()
	for _, c := range s.Details.Causes {
		if c.Type != CauseRequestUID {
			cause = c.Type
		}
	}
	return s.Code, cause, s.Message
}

// A write that was in doubt when etcd became full is in doubt for the client, too.
func TestErrorsSayWhatBecameOfAWrite(t *testing.T) {
	for name, c := range map[string]struct {
		err   error
		code  int32
		cause metav1.CauseType
	}{
		"full":                       {rpctypes.ErrNoSpace, http.StatusInsufficientStorage, CauseNothingWritten},
		"full, and perhaps written":  {&unansweredError{cause: rpctypes.ErrNoSpace}, http.StatusGatewayTimeout, CauseOutcomeUnknown},
		"refused":                    {rpctypes.ErrTooManyRequests, http.StatusServiceUnavailable, CauseNothingWritten},
		"refused, perhaps not":       {&unansweredError{cause: rpctypes.ErrTooManyRequests}, http.StatusGatewayTimeout, CauseOutcomeUnknown},
		"not answered":               {&unansweredError{cause: rpctypes.ErrTimeout}, http.StatusGatewayTimeout, CauseOutcomeUnknown},
		"not answered, and not done": {&unansweredError{cause: rpctypes.ErrTimeout, nothing: true}, http.StatusServiceUnavailable, CauseNothingWritten},
	} {
		e := explained{space: &space{}}
		if code, cause, text := resultOf(t, e.written(withDoubt(t.Context()), c.err)); code != c.code || cause != c.cause {
			t.Errorf("%s: %d %s %s", name, code, cause, text)
		}
	}
}

// Of a request that deletes many objects, one error does not say that nothing was deleted.
func TestErrorOfOneOfMany(t *testing.T) {
	one := NothingWritten("the CRD has changed")
	for verb, want := range map[string]metav1.CauseType{"delete": CauseNothingWritten, "deletecollection": ""} {
		ctx := request.WithRequestInfo(t.Context(), &request.RequestInfo{Verb: verb})
		code, cause, text := resultOf(t, ofMany(ctx, one))
		if code != http.StatusServiceUnavailable || cause != want || strings.Contains(text, nothingWritten) != (want != "") {
			t.Errorf("%s: %d %s %s", verb, code, cause, text)
		}
	}
	if _, cause, _ := resultOf(t, one); cause != CauseNothingWritten {
		t.Error("the error itself was changed")
	}
}

// Errors of reads have a Status that says to try again; those that are not etcd's stay.
func TestErrorsOfReads(t *testing.T) {
	other := errors.New("not etcd's")
	for _, err := range []error{nil, other, storage.NewKeyNotFoundError("k", 1), outOfSpaceError()} {
		if got := explainRead(err); !errors.Is(got, err) || err != nil && got.Error() != err.Error() {
			t.Errorf("%v has become %v", err, got)
		}
	}
	for _, c := range []struct {
		err  error
		code int32
		text string
	}{
		{rpctypes.ErrTooManyRequests, http.StatusServiceUnavailable, "reading from etcd failed: etcdserver: too many requests"},
		{status.Error(codes.Unavailable, "no connection"), http.StatusServiceUnavailable, "reading from etcd failed: no connection"},
		{context.Canceled, http.StatusServiceUnavailable, "reading from etcd failed: the request ended before etcd had answered"},
		{&unansweredError{cause: status.Error(codes.Unavailable, "gone")}, http.StatusServiceUnavailable, "reading from etcd failed: gone"},
		{context.DeadlineExceeded, http.StatusGatewayTimeout, "reading from etcd failed: etcd did not answer in the time of the request"},
		{status.Error(codes.DeadlineExceeded, "late"), http.StatusGatewayTimeout, "reading from etcd failed: etcd did not answer in the time of the request"},
	} {
		err := explainRead(c.err)
		var known apierrors.APIStatus
		if !errors.As(err, &known) || !errors.Is(err, c.err) {
			t.Fatalf("%v", err)
		}
		if s := known.Status(); s.Code != c.code || !strings.Contains(s.Message, c.text) || s.Message != err.Error() || s.Details.RetryAfterSeconds != 1 {
			t.Errorf("%+v, want %d %s", s, c.code, c.text)
		}
	}
}

func outOfSpaceError() error { return &etcdError{outOfSpace, rpctypes.ErrNoSpace} }

// Only an answer of etcd that it does not do a write is a refusal, and only a request that
// has sent no write is in no doubt.
func TestRefusalsAndDoubt(t *testing.T) {
	for err, want := range map[error]bool{
		rpctypes.ErrTooManyRequests:              true,
		rpctypes.ErrCompacted:                    true,
		rpctypes.ErrNoLeader:                     false,
		rpctypes.ErrTimeout:                      false,
		status.Error(codes.InvalidArgument, "e"): false,
	} {
		if got := isRefusal(err); got != want {
			t.Errorf("%v: %t", err, got)
		}
	}
	lost := status.Error(codes.Unavailable, "lost")
	quiet, sent := withDoubt(t.Context()), withDoubt(t.Context())
	inDoubtOf(sent).set(true)
	for name, c := range map[string]struct {
		ctx   context.Context
		err   error
		cause metav1.CauseType
	}{
		"nothing was sent": {quiet, lost, CauseNothingWritten},
		"it was sent":      {sent, lost, CauseOutcomeUnknown},
		"nothing is known": {t.Context(), lost, CauseOutcomeUnknown},
		"it was refused":   {sent, rpctypes.ErrTooManyRequests, CauseNothingWritten},
	} {
		if _, cause, text := resultOf(t, explainWrite(c.ctx, c.err)); cause != c.cause {
			t.Errorf("%s: %s %s", name, cause, text)
		}
	}
	if err := explainWrite(quiet, nil); err != nil {
		t.Error(err)
	}
}

// Whether etcd is full is known from the last write.
func TestSpace(t *testing.T) {
	e := explained{space: &space{}}
	for _, c := range []struct {
		err  error
		full bool
	}{
		{nil, false},
		{status.Error(codes.ResourceExhausted, "another resource"), false},
		{rpctypes.ErrNoSpace, true},
		{rpctypes.ErrTimeout, true}, // says nothing about space
		{nil, false},
		{rpctypes.ErrGRPCNoSpace, true},
	} {
		if _ = e.written(t.Context(), c.err); e.space.full.Load() != c.full {
			t.Errorf("after %v: %t", c.err, !c.full)
		}
	}
}
