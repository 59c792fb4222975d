package endpoints

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
)

const (
	apply     = string(types.ApplyYAMLPatchType)
	strategic = string(types.StrategicMergePatchType)
	merge     = string(types.MergePatchType)
)

// patched is what a handler of patches read.
type patched struct {
	called bool
	body   string
	err    error
	turns  int // applies that were running
}

func patch(ctx context.Context, t *testing.T, kind string, body io.Reader, length, limit int64, own func([]byte) error) (p patched, w *httptest.ResponseRecorder, aborted any) {
	t.Helper()
	req := httptest.NewRequestWithContext(ctx, http.MethodPatch, "/", body)
	req.Header.Set("Content-Type", kind)
	req.ContentLength = length
	w = httptest.NewRecorder()
	defer func() { aborted = recover() }()
	inTurn(limit, own, func(_ http.ResponseWriter, req *http.Request) {
		data, err := io.ReadAll(req.Body)
		p = patched{true, string(data), err, len(appliers)}
	})(w, req)
	return p, w, nil
}

// Large applies take their turn, and those with too many fields are refused before.
// Other patches are handled at once.
func TestAppliesTakeTurns(t *testing.T) {
	small, large := `{"a":1}`, `{"a":"`+strings.Repeat("x", largeApply)+`"}`
	wide := `{"a":[` + strings.Repeat("1234567,", 20_000) + `1]}`
	below := `{"a":"` + strings.Repeat("x", largeApply-9) + `"}`
	refuse := func([]byte) error { return apierrors.NewBadRequest("refused") }
	for _, test := range []struct {
		name, kind, body string
		unknown          bool // the length
		limit            int64
		own              func([]byte) error
		code, turns      int
	}{
		{name: "small", kind: apply, body: small, code: 200},
		{name: "one byte below large", kind: apply, body: below, unknown: true, code: 200},
		{name: "just large", kind: apply, body: below + " ", code: 200, turns: 1},
		{name: "large", kind: apply, body: large, code: 200, turns: 1},
		{name: "large, with a parameter", kind: apply + ";charset=utf-8", body: large, code: 200, turns: 1},
		{name: "large, and strategic", kind: strategic, body: large, code: 200, turns: 1},
		{name: "large, and another patch", kind: merge, body: wide, own: refuse, code: 200},
		{name: "of unknown length", kind: apply, body: large, unknown: true, code: 200, turns: 1},
		{name: "wide", kind: apply, body: wide, code: 413},
		{name: "wide, of unknown length", kind: apply, body: wide, unknown: true, code: 413},
		{name: "refused, small", kind: apply, body: small, own: refuse, code: 400},
		{name: "refused, large", kind: strategic, body: large, own: refuse, code: 400},
		{name: "accepted, small", kind: apply, body: small, own: func(b []byte) error {
			if string(b) != small {
				return errors.New("not the body")
			}
			return nil
		}, code: 200},
		{name: "as long as is allowed", kind: apply, body: wide, limit: int64(len(wide)), code: 413},
	} {
		length := int64(len(test.body))
		if test.unknown {
			length = -1
		}
		p, w, aborted := patch(t.Context(), t, test.kind, strings.NewReader(test.body), length, test.limit, test.own)
		if w.Code != test.code || aborted != nil {
			t.Errorf("%s: %d %v %s", test.name, w.Code, aborted, w.Body)
		}
		if test.code == 200 && (p.body != test.body || p.err != nil || p.turns != test.turns) || p.called != (test.code == 200) {
			t.Errorf("%s: the handler is called: %t, %d bytes, error %v, %d take turns", test.name, p.called, len(p.body), p.err, p.turns)
		}
		if len(appliers) > 0 {
			t.Fatalf("%s: the turn is not over", test.name)
		}
	}
}

// The handler reports what is wrong with a body.
func TestApplyOfBodyThatCannotBeRead(t *testing.T) {
	refuse := func([]byte) error { return errors.New("refused") }
	if p, _, _ := patch(t.Context(), t, apply, strings.NewReader("12345"), -1, 4, refuse); !p.called || len(p.body) < 5 || p.err != nil {
		t.Errorf("too long: %+v", p)
	}
	long := bytes.Repeat([]byte{'x'}, DefaultMaxRequestBodyBytes+1)
	if p, _, _ := patch(t.Context(), t, apply, bytes.NewReader(long), -1, 0, refuse); !p.called || len(p.body) != len(long) {
		t.Errorf("too long by default: %t, %d bytes", p.called, len(p.body))
	}
	broken := errors.New("broken")
	body := io.MultiReader(strings.NewReader("123"), iotest.ErrReader(broken))
	if p, _, _ := patch(t.Context(), t, apply, body, -1, 10, refuse); p.body != "123" || !errors.Is(p.err, broken) {
		t.Errorf("broken: %+v", p)
	}
}

// An apply waits for its turn no longer than its request lasts.
func TestApplyEndsWithItsRequest(t *testing.T) {
	for range cap(appliers) {
		appliers <- struct{}{}
	}
	defer func() {
		for range cap(appliers) {
			<-appliers
		}
	}()
	large := `{"a":"` + strings.Repeat("x", largeApply) + `"}`
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	p, _, aborted := patch(gone, t, apply, strings.NewReader(large), -1, 0, nil)
	if p.called || aborted != any(http.ErrAbortHandler) {
		t.Errorf("canceled: %t %v", p.called, aborted)
	}
	late, cancel := context.WithTimeout(t.Context(), 0)
	defer cancel()
	p, w, aborted := patch(late, t, apply, strings.NewReader(large), -1, 0, nil)
	if p.called || aborted != nil || w.Code != http.StatusGatewayTimeout {
		t.Errorf("late: %t %v %d", p.called, aborted, w.Code)
	}
	if p, _, _ := patch(late, t, apply, strings.NewReader("{}"), -1, 0, nil); !p.called {
		t.Error("a small apply waits")
	}
}
