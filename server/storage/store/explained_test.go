package store

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/endpoints/request"
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
