package loopback

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"k8s.io/client-go/rest"
)

// serve has the handler answer until the test ends.
func serve(t *testing.T, l *Loopback, handler http.Handler) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- l.Serve(ctx, handler) }()
	t.Cleanup(func() {
		cancel()
		select {
		case <-done:
		case <-time.After(time.Minute):
			t.Error("Serve does not end with its context")
		}
	})
}

func client(t *testing.T, l *Loopback) *http.Client {
	t.Helper()
	c, err := rest.HTTPClientFor(l.Config())
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// whoami answers with the name of the user, if the loopback authenticates one.
func whoami(l *Loopback) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		response, ok, err := l.AuthenticateRequest(req)
		if err != nil || !ok {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		_, _ = fmt.Fprintf(w, "%s %s", response.User.GetName(), req.Proto)
	})
}

func get(t *testing.T, c *http.Client, url string) (int, string) {
	t.Helper()
	resp, err := c.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

func TestRequestsAreFromTheServer(t *testing.T) {
	l := New()
	c := client(t, l)
	serve(t, l, whoami(l))
	if code, body := get(t, c, "http://loopback/x"); code != http.StatusOK || body != "system:apiserver HTTP/2.0" {
		t.Errorf("got %d %q", code, body)
	}
}

// Requests over other connections, even of another loopback, are not the server's.
func TestOthersAreNotTheServer(t *testing.T) {
	l, other := New(), New()
	serve(t, other, whoami(l))
	if code, _ := get(t, client(t, other), "http://loopback/x"); code != http.StatusUnauthorized {
		t.Errorf("through another loopback: %d", code)
	}
	s := httptest.NewServer(whoami(l))
	defer s.Close()
	if code, _ := get(t, s.Client(), s.URL); code != http.StatusUnauthorized {
		t.Errorf("through a port: %d", code)
	}
}

// Watches are answers that do not end: what is flushed must arrive.
func TestAnswersAreStreamed(t *testing.T) {
	l := New()
	next := make(chan struct{})
	serve(t, l, http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		for i := range 3 {
			_, _ = fmt.Fprintf(w, "event %d\n", i)
			w.(http.Flusher).Flush()
			select {
			case <-next:
			case <-req.Context().Done():
				return
			}
		}
		<-req.Context().Done()
	}))
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://loopback/watch", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := client(t, l).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	buffer := make([]byte, 100)
	for i := range 3 {
		n, err := resp.Body.Read(buffer)
		if want := fmt.Sprintf("event %d\n", i); err != nil || string(buffer[:n]) != want {
			t.Fatalf("got %q, %v; want %q", buffer[:n], err, want)
		}
		next <- struct{}{}
	}
}

// A client may come before the server: it waits, but not longer than it wants.
func TestRequestsWaitForTheServer(t *testing.T) {
	l := New()
	c := client(t, l)
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://loopback/x", nil)
	if err != nil {
		t.Fatal(err)
	}
	if resp, err := c.Do(req); err == nil {
		resp.Body.Close()
		t.Error("a request was answered by nobody")
	}
	serve(t, l, whoami(l))
	if code, _ := get(t, c, "http://loopback/x"); code != http.StatusOK {
		t.Errorf("got %d", code)
	}
}
