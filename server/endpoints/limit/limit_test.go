package limit

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/espalier-dev/espalier/server/endpoints/limit/limittest"
)

func TestClientAddresses(t *testing.T) {
	for addr, want := range map[string]string{
		"192.0.2.1:443":                     "192.0.2.1",
		"[::ffff:192.0.2.1]:443":            "192.0.2.1",
		"[2001:db8:1:2:3:4:5:6]:443":        "2001:db8:1:2::",
		"[fe80::1%lo]:443":                  "fe80::",
		"[2001:db8:1:2:ffff:ffff::1]:10000": "2001:db8:1:2::",
	} {
		if got := client(net.TCPAddrFromAddrPort(netip.MustParseAddrPort(addr))); got.String() != want {
			t.Errorf("%s is counted as %v, not %s", addr, got, want)
		}
	}
	if got := client(&net.UnixAddr{Name: "x"}); got.IsValid() {
		t.Errorf("a socket without address is counted as %v", got)
	}
}

// pair returns both ends of a limited connection.
func pair(t *testing.T, limits Connections) (server, client net.Conn, l *Listener) {
	t.Helper()
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l = Listen(inner, limits)
	t.Cleanup(func() { _ = l.Close() })
	if client, err = (&net.Dialer{}).DialContext(t.Context(), "tcp", l.Addr().String()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	if server, err = l.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	return server, client, l
}

// flood writes until it fails, and returns why and how long the last write took.
func flood(c net.Conn) (time.Duration, error) {
	record := make([]byte, 16<<10)
	for {
		began := time.Now()
		if _, err := c.Write(record); err != nil {
			return time.Since(began), err
		}
	}
}

func TestBlockedWriteEnds(t *testing.T) {
	server, _, _ := pair(t, Connections{WriteTimeout: 400 * time.Millisecond})
	took, err := flood(server)
	if !errors.Is(err, os.ErrDeadlineExceeded) || took < 150*time.Millisecond || took > 30*time.Second {
		t.Errorf("the write took %v: %v", took, err)
	}
}

func TestHurryEndsBlockedWrites(t *testing.T) {
	t.Parallel()
	for _, timeout := range []time.Duration{0, time.Hour} {
		server, _, l := pair(t, Connections{WriteTimeout: timeout})
		time.AfterFunc(300*time.Millisecond, l.Hurry)
		began := time.Now()
		if _, err := flood(server); !errors.Is(err, os.ErrDeadlineExceeded) || time.Since(began) > 10*time.Second {
			t.Errorf("timeout %v: the write ended after %v: %v", timeout, time.Since(began), err)
		}
	}
}

// A client that reads slowly keeps its connection. A deadline that other code sets
// holds.
func TestSlowReaderKeepsItsConnection(t *testing.T) {
	t.Parallel()
	server, client, _ := pair(t, Connections{WriteTimeout: 2 * time.Second})
	// The kernel wakes a blocked writer when a third of its buffer is free: with
	// buffers of megabytes, which it grows by itself, that takes seconds on a busy
	// machine.
	for _, err := range []error{
		server.(*conn).Conn.(*net.TCPConn).SetWriteBuffer(64 << 10),
		client.(*net.TCPConn).SetReadBuffer(64 << 10),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	stop := make(chan struct{})
	go func() {
		piece := make([]byte, 64<<10)
		for {
			select {
			case <-stop:
				return
			case <-time.After(50 * time.Millisecond):
				_, _ = io.ReadFull(client, piece)
			}
		}
	}()
	record := make([]byte, 16<<10)
	for began := time.Now(); time.Since(began) < 4*time.Second; {
		if _, err := server.Write(record); err != nil {
			t.Fatalf("after %v: %v", time.Since(began), err)
		}
	}
	close(stop)
	_ = server.SetWriteDeadline(time.Now().Add(-time.Second))
	if _, err := server.Write(record); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("after a deadline: %v", err)
	}
	_ = server.SetWriteDeadline(time.Time{})
	if _, err := server.Write(record[:1]); err != nil {
		t.Errorf("without a deadline again: %v", err)
	}
}

func TestTotal(t *testing.T) {
	_, _, l := pair(t, Connections{Total: 1})
	second, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer second.Close()
	accepted := make(chan error, 1)
	go func() { _, err := l.Accept(); accepted <- err }()
	_ = second.SetReadDeadline(time.Now().Add(time.Minute))
	if _, err := second.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the second connection: %v", err)
	}
	l.Cut()
	third, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer third.Close()
	if err := <-accepted; err != nil {
		t.Error(err)
	}
}

// slow is a writer that waits before each write.
type slow struct {
	http.ResponseWriter
	wait time.Duration
	set  chan time.Time
}

func (s *slow) Write(p []byte) (int, error) {
	time.Sleep(s.wait)
	return len(p), nil
}

func (s *slow) SetWriteDeadline(t time.Time) error {
	s.set <- t
	return nil
}

func TestGuard(t *testing.T) { synctest.Test(t, testGuard) }

func testGuard(t *testing.T) {
	leaving := make(chan struct{})
	for _, test := range []struct {
		name          string
		wait, timeout time.Duration
		writes, bytes int
		leave, want   bool
	}{
		{"fast", 0, 200 * time.Millisecond, 1000, 10000, false, false},
		{"small", 500 * time.Millisecond, 200 * time.Millisecond, 1, 1000, false, false},
		{"blocked", 500 * time.Millisecond, 200 * time.Millisecond, 1, 10000, false, true},
		{"slow", 50 * time.Millisecond, 400 * time.Millisecond, 20, 10000, false, false},
		{"large and slow", 50 * time.Millisecond, 400 * time.Millisecond, 1, 20 * piece, false, false},
		{"unlimited", 300 * time.Millisecond, 0, 1, 10000, false, false},
		{"leaving", 500 * time.Millisecond, 300 * time.Millisecond, 1, 10000, true, true},
	} {
		if test.leave {
			close(leaving)
		}
		w := &slow{ResponseWriter: httptest.NewRecorder(), wait: test.wait, set: make(chan time.Time, 10)}
		var g Guard
		g.Watch(w, NewWrites(test.timeout, leaving))
		for range test.writes {
			if n, err := g.Write(make([]byte, test.bytes)); n != test.bytes || err != nil {
				t.Fatal(test.name, n, err)
			}
		}
		g.Done()
		if ended := len(w.set) > 0; ended != test.want {
			t.Errorf("%s: ended: %v", test.name, ended)
		}
	}
}

// An answer of ordinary size costs no allocation.
func TestGuardIsFree(t *testing.T) {
	w, limits, body := httptest.NewRecorder(), NewWrites(time.Minute, nil), make([]byte, 2000)
	w.Body = nil
	var g Guard
	if n := testing.AllocsPerRun(100, func() {
		g.written = 0
		g.Watch(w, limits)
		_, _ = g.Write(body)
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

// What net/http has kept of an answer when the handler returns is written then, to a
// client that may give it no room: that ends, too, and so does its goroutine.
func TestLastPieceEnds(t *testing.T) {
	for name, size := range map[string]int{"small": 2, "large": unguarded + 10} {
		t.Run(name, func(t *testing.T) {
			limits := NewWrites(300*time.Millisecond, nil)
			returned := make(chan struct{}, 100)
			s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
				var g Guard
				g.Watch(w, limits)
				_, _ = g.Write(make([]byte, size))
				g.Done()
				limits.Last(w, req)
				returned <- struct{}{}
			}))
			s.EnableHTTP2 = true
			s.StartTLS()
			t.Cleanup(s.Close)
			before := runtime.NumGoroutine()
			config := s.Client().Transport.(*http.Transport).TLSClientConfig
			c, err := limittest.Dial(t.Context(), limittest.NoWindow, s.Listener.Addr().String(), config)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = c.Close() })
			const requests = 50
			for range requests {
				if err := c.Get("/"); err != nil {
					t.Fatal(err)
				}
			}
			for range requests {
				<-returned
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			if _, err := c.Ended(ctx); err != nil {
				t.Fatalf("no answer is ended: %v", err)
			}
			for runtime.NumGoroutine() > before+10 {
				if ctx.Err() != nil {
					t.Fatalf("%d goroutines, %d before", runtime.NumGoroutine(), before)
				}
				time.Sleep(10 * time.Millisecond)
			}
		})
	}
}

// Only HTTP/2 has a deadline for one answer: that of an HTTP/1 connection would be
// one for the requests that follow.
func TestLastLeavesHTTP1Alone(t *testing.T) {
	limits := NewWrites(200*time.Millisecond, nil)
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		_, _ = w.Write([]byte("ok"))
		limits.Last(w, req)
	}))
	t.Cleanup(s.Close)
	for range 2 {
		resp, err := s.Client().Get(s.URL)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		if _ = resp.Body.Close(); err != nil || string(body) != "ok" {
			t.Errorf("%q: %v", body, err)
		}
		time.Sleep(300 * time.Millisecond)
	}
}

// BenchmarkLast measures what a deadline adds to an answer over HTTP/2.
func BenchmarkLast(b *testing.B) {
	for name, limits := range map[string]*Writes{"without": NewWrites(0, nil), "with": NewWrites(30*time.Second, nil)} {
		b.Run(name, func(b *testing.B) {
			s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
				_, _ = w.Write([]byte("ok"))
				limits.Last(w, req)
			}))
			s.EnableHTTP2 = true
			s.StartTLS()
			b.Cleanup(s.Close)
			b.ReportAllocs()
			for b.Loop() {
				resp, err := s.Client().Get(s.URL)
				if err != nil {
					b.Fatal(err)
				}
				_, _ = io.Copy(io.Discard, resp.Body)
				_ = resp.Body.Close()
			}
		})
	}
}
