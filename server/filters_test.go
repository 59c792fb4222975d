package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/warning"
)

// grace is for the answers. It is long enough for a machine that has other things to
// do: a write of TLS that comes too late leaves a broken record behind.
const grace = 5 * time.Second

// limited serves with a deadline for every request, over HTTP/2 or HTTP/1.
func limited(t *testing.T, http2 bool, timeout time.Duration, handler http.HandlerFunc) *httptest.Server {
	t.Helper()
	ended := withTimeout(handler, grace)
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		limit := timeout
		if req.URL.Path == "/next" {
			limit = time.Minute // it is about the deadline of the request before
		}
		ctx, cancel := context.WithTimeout(req.Context(), limit)
		defer cancel()
		ended.ServeHTTP(w, req.WithContext(ctx))
	}))
	s.EnableHTTP2 = http2
	s.StartTLS()
	t.Cleanup(s.Close)
	return s
}

func forBothProtocols(t *testing.T, f func(t *testing.T, http2 bool)) {
	t.Parallel() // they sleep most of the time
	t.Run("HTTP1", func(t *testing.T) { t.Parallel(); f(t, false) })
	t.Run("HTTP2", func(t *testing.T) { t.Parallel(); f(t, true) })
}

func TestSlowSenderTimesOut(t *testing.T) {
	forBothProtocols(t, func(t *testing.T, http2 bool) {
		got := make(chan error, 1)
		s := limited(t, http2, 50*time.Millisecond, func(w http.ResponseWriter, req *http.Request) {
			_, err := io.ReadAll(req.Body)
			got <- err
			w.WriteHeader(http.StatusGatewayTimeout)
		})
		body, stuck := io.Pipe()
		defer stuck.Close()
		go func() { _, _ = stuck.Write([]byte("half of it")) }()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL, body)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := s.Client().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if err := <-got; !apierrors.IsTimeout(err) {
			t.Errorf("the handler reads %v", err)
		}
		if resp.StatusCode != http.StatusGatewayTimeout {
			t.Errorf("the client gets %s", resp.Status)
		}
	})
}

func TestSlowReaderLosesTheConnection(t *testing.T) {
	forBothProtocols(t, func(t *testing.T, http2 bool) {
		got := make(chan error, 1)
		s := limited(t, http2, 50*time.Millisecond, func(w http.ResponseWriter, _ *http.Request) {
			piece := make([]byte, 1<<16)
			for {
				if _, err := w.Write(piece); err != nil {
					got <- err
					return
				}
			}
		})
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := s.Client().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		select {
		case <-got:
		case <-time.After(time.Minute):
			t.Error("the handler writes for ever")
		}
	})
}

func TestDeadlineLeavesOthersAlone(t *testing.T) {
	forBothProtocols(t, func(t *testing.T, http2 bool) {
		s := limited(t, http2, 50*time.Millisecond, func(w http.ResponseWriter, req *http.Request) {
			if req.URL.Path == "/late" {
				<-req.Context().Done()
				http.Error(w, "late", http.StatusGatewayTimeout)
				return
			}
			body, err := io.ReadAll(req.Body)
			if err != nil {
				t.Error(err)
			}
			_, _ = w.Write(body)
		})
		for i := range 3 {
			for path, want := range map[string]string{"/late": "late\n", "/next": "hello"} {
				resp, err := s.Client().Post(s.URL+path, "text/plain", strings.NewReader("hello"))
				if err != nil {
					t.Fatal(i, path, err)
				}
				body, err := io.ReadAll(resp.Body)
				_ = resp.Body.Close()
				if err != nil || string(body) != want {
					t.Errorf("%d %s: %q %v", i, path, body, err)
				}
			}
		}
	})
}

// TestNextRequestOfTheConnection: a deadline is that of one request, and not of those
// that follow on its connection. With HTTP/1 that is announced to be closed, or is as
// before if the answer had begun.
func TestNextRequestOfTheConnection(t *testing.T) {
	forBothProtocols(t, func(t *testing.T, http2 bool) {
		var wg sync.WaitGroup // all at once: they sleep for longer than the grace
		for _, method := range []string{http.MethodGet, http.MethodPost} {
			for _, path := range []string{"/late", "/unread", "/begun"} {
				wg.Go(func() {
					if err := nextRequest(t, http2, method, path); err != nil {
						t.Errorf("%s %s: %v", method, path, err)
					}
				})
			}
		}
		wg.Wait()
	})
}

func nextRequest(t *testing.T, http2 bool, method, path string) error {
	t.Helper()
	const timeout = 200 * time.Millisecond
	s := limited(t, http2, timeout, func(w http.ResponseWriter, req *http.Request) {
		if req.URL.Path == "/next" {
			time.Sleep(timeout / 4) // a canceled connection is noticed
			if err := req.Context().Err(); err != nil {
				http.Error(w, err.Error(), http.StatusInternalServerError)
			}
			return
		}
		if req.URL.Path == "/late" || req.URL.Path == "/begun" {
			_, _ = io.Copy(io.Discard, req.Body)
		}
		if req.URL.Path == "/begun" {
			w.Header().Set("Content-Length", "5")
			w.WriteHeader(http.StatusOK)
		}
		<-req.Context().Done()
		time.Sleep(timeout / 10)
		if req.URL.Path == "/begun" {
			_, _ = w.Write([]byte("late\n"))
			return
		}
		http.Error(w, "late", http.StatusGatewayTimeout)
	})
	// The wait is longer than the time that the late answer had.
	for range 2 {
		var body io.Reader
		if method == http.MethodPost {
			body = strings.NewReader("hello")
		}
		req, err := http.NewRequestWithContext(t.Context(), method, s.URL+path, body)
		if err != nil {
			return err
		}
		resp, err := s.Client().Do(req)
		if err != nil {
			return err
		}
		content, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if err != nil {
			return fmt.Errorf("the late answer: %w", err)
		}
		if string(content) != "late\n" {
			return fmt.Errorf("the late answer is %q", content)
		}
		if want := !http2 && path != "/begun"; resp.Close != want {
			return fmt.Errorf("the connection is announced to be closed: %v", resp.Close)
		}
		time.Sleep(3 * grace / 2)
		resp, err = s.Client().Get(s.URL + "/next")
		if err != nil {
			return err
		}
		content, _ = io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			return fmt.Errorf("the next request: %s %s", resp.Status, content)
		}
	}
	return nil
}

func TestRequestsWithoutDeadline(t *testing.T) {
	called := false
	handler := withTimeout(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { called = true }), time.Second)
	handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil))
	if !called {
		t.Error("not called")
	}
}

// warned returns the warnings of an answer.
func warned(t *testing.T, handler http.HandlerFunc) []string {
	t.Helper()
	w := httptest.NewRecorder()
	withWarnings(handler, nil).ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil))
	return w.Result().Header.Values("Warning")
}

func TestWarnings(t *testing.T) {
	for name, answer := range map[string]http.HandlerFunc{
		"header": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusCreated) },
		"body":   func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("hello")) },
		"flush":  func(w http.ResponseWriter, _ *http.Request) { _ = http.NewResponseController(w).Flush() },
		"none":   func(http.ResponseWriter, *http.Request) {},
	} {
		got := warned(t, func(w http.ResponseWriter, req *http.Request) {
			warning.AddWarning(req.Context(), "", "one")
			warning.AddWarning(req.Context(), "", "two")
			warning.AddWarning(req.Context(), "", "one")
			warning.AddWarning(req.Context(), "", "")
			answer(w, req)
			warning.AddWarning(req.Context(), "", "too late")
		})
		if name == "none" {
			got = got[:len(got)-1] // nothing was answered yet when the last one came
		}
		if len(got) != 2 || got[0] != `299 - "one"` || got[1] != `299 - "two"` {
			t.Errorf("%s: %q", name, got)
		}
	}
}

func TestWarningsAreBounded(t *testing.T) {
	long := strings.Repeat("ä", 1000)
	for _, count := range []int{1, 4, 5, 100, 10000} {
		got := warned(t, func(_ http.ResponseWriter, req *http.Request) {
			for i := range count {
				warning.AddWarning(req.Context(), "", fmt.Sprint(i, long))
			}
		})
		runes := 0
		for _, header := range got {
			runes += len([]rune(header)) - len(`299 - ""`)
		}
		if runes > maxWarnings {
			t.Errorf("%d warnings: %d runes", count, runes)
		}
		if want := min(count, maxWarnings/maxCutWarning); len(got) != want {
			t.Errorf("%d warnings: %d headers, not %d", count, len(got), want)
		}
	}
}

// TestWarningsFromElsewhere is for the race detector.
func TestWarningsFromElsewhere(t *testing.T) {
	var wg sync.WaitGroup
	warned(t, func(w http.ResponseWriter, req *http.Request) {
		wg.Go(func() {
			for i := range 1000 {
				warning.AddWarning(req.Context(), "", fmt.Sprint(i))
			}
		})
		w.Header().Set("Content-Type", "text/plain")
		_, _ = w.Write([]byte("hello"))
	})
	wg.Wait()
}

func TestRareCheck(t *testing.T) {
	calls := 0
	check := &rareCheck{check: func(ctx context.Context) error {
		calls++
		return errors.Join(ctx.Err(), errors.New("down"))
	}}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	for range 100 {
		if err := check.result(gone); err == nil || err.Error() != "down" {
			t.Fatal(err)
		}
	}
	if calls != 1 {
		t.Errorf("etcd was asked %d times", calls)
	}
	check.at = time.Now().Add(-checkEvery)
	_ = check.result(gone)
	if calls != 2 {
		t.Errorf("etcd was asked %d times", calls)
	}
}
