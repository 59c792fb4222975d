package openapihandler

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// TestRenderedOnce: a document that is too large to be kept in a small cache is
// made once for all who ask, and not once for each.
func TestRenderedOnce(t *testing.T) {
	s := start(t)
	s.Run(t)
	random := rand.New(rand.NewPCG(1, 2))
	for i := range 60 {
		var text strings.Builder
		for range 40 << 10 {
			text.WriteByte(byte('!' + random.IntN(90)))
		}
		spec := fmt.Sprintf(`{"description":%q,"properties":{"a":{"type":"string"}},"type":"object"}`, text.String())
		s.Create(t, crdJSON(fmt.Sprintf("books%ds", i), "library.example", spec, "v1"))
	}
	ask := func(times int) time.Duration {
		before := cpu(t)
		var wait sync.WaitGroup
		for range times {
			wait.Go(func() {
				if got := s.Do(t, "GET", "/openapi/v2", "Accept-Encoding", "gzip"); got.StatusCode != http.StatusOK || len(got.Content) < 1<<20 {
					t.Errorf("%s with %d bytes", got.Status, len(got.Content))
				}
			})
		}
		wait.Wait()
		return cpu(t) - before
	}
	ask(1) // what is made once in the life of a process
	for i, times := range []int{1, 40} {
		s.Create(t, crdJSON(fmt.Sprintf("changes%ds", i), "library.example", simple, "v1"))
		took := ask(times)
		t.Logf("%d requests after a change: %v of CPU", times, took)
		if limit := 10 * renderTime(t, s); times > 1 && took > limit {
			t.Errorf("%d requests take %v of CPU, more than 10 renderings", times, took)
		}
	}
}

// renderTime is what one rendering takes.
func renderTime(t *testing.T, s *state) time.Duration {
	t.Helper()
	static, err := s.handler.static()
	if err != nil {
		t.Fatal(err)
	}
	before := cpu(t)
	if err := s.handler.all(static).writeJSON(t.Context(), gzip.NewWriter(io.Discard)); err != nil {
		t.Fatal(err)
	}
	return cpu(t) - before
}

func cpu(t *testing.T) time.Duration {
	t.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// TestFlights: there is one rendering at a time. It begins after all requests that get
// it, and is cancelled when no request waits.
func TestFlights(t *testing.T) {
	var f flights
	var version, running, made atomic.Int64
	render := func(context.Context) (rendered, error) {
		if running.Add(1) > 1 {
			t.Error("two renderings at a time")
		}
		defer running.Add(-1)
		made.Add(1)
		at := version.Load()
		time.Sleep(5 * time.Millisecond)
		return rendered{data: fmt.Append(nil, at)}, nil
	}
	var wait sync.WaitGroup
	begun := time.Now()
	for range 100 {
		wait.Go(func() {
			for range 10 {
				asked := version.Add(1)
				got, err := f.do(t.Context(), "x", render)
				var at int64
				if _, scanErr := fmt.Sscan(string(got.data), &at); err != nil || scanErr != nil || at < asked {
					t.Errorf("asked at %d, got %d: %v", asked, at, errors.Join(err, scanErr))
				}
			}
		})
	}
	wait.Wait()
	if most := int64(time.Since(begun)/(5*time.Millisecond)) + 1; made.Load() > most || made.Load() > 500 {
		t.Errorf("%d renderings for 1000 requests", made.Load())
	}
	if len(f.running) != 0 || len(f.next) != 0 {
		t.Errorf("%d and %d renderings are left", len(f.running), len(f.next))
	}
	ended := make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	go cancel()
	_, err := f.do(ctx, "x", func(ctx context.Context) (rendered, error) {
		<-ctx.Done()
		close(ended)
		return rendered{}, ctx.Err()
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	select {
	case <-ended:
	case <-time.After(time.Minute):
		t.Error("a rendering goes on that nobody waits for")
	}
}

// TestAbandonedFlight: a request that comes after all requests for the next rendering
// have left gets a rendering of its own, and not the cancelled one.
func TestAbandonedFlight(t *testing.T) {
	for range 20 {
		var f flights
		begun, finish := make(chan struct{}), make(chan struct{})
		var wait sync.WaitGroup
		wait.Go(func() {
			_, _ = f.do(t.Context(), "x", func(context.Context) (rendered, error) {
				close(begun)
				<-finish
				return rendered{}, nil
			})
		})
		<-begun
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := f.do(gone, "x", func(context.Context) (rendered, error) {
			t.Error("rendered for nobody")
			return rendered{}, nil
		}); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		var running atomic.Int64
		for range 3 {
			wait.Go(func() {
				if _, err := f.do(t.Context(), "x", func(ctx context.Context) (rendered, error) {
					if running.Add(1) > 1 {
						t.Error("two renderings at a time")
					}
					defer running.Add(-1)
					time.Sleep(time.Millisecond)
					return rendered{}, ctx.Err()
				}); err != nil {
					t.Errorf("who came later got %v", err)
				}
			})
		}
		time.Sleep(time.Millisecond)
		close(finish)
		wait.Wait()
		f.mu.Lock()
		if len(f.running) != 0 || len(f.next) != 0 {
			t.Errorf("%d and %d renderings are left", len(f.running), len(f.next))
		}
		f.mu.Unlock()
	}
}

// TestPanickingFlight: a rendering that panics returns an error to the requests that
// wait for it. The next one is not affected.
func TestPanickingFlight(t *testing.T) {
	var f flights
	if _, err := f.do(t.Context(), "x", func(context.Context) (rendered, error) { panic("a schema nobody thought of") }); err == nil {
		t.Error("no error")
	}
	if _, err := f.do(t.Context(), "x", func(context.Context) (rendered, error) { return rendered{}, nil }); err != nil {
		t.Error(err)
	}
}

// TestNeverStale: a document that is requested after a change includes it.
func TestNeverStale(t *testing.T) {
	s := start(t)
	s.Run(t)
	stop := make(chan struct{})
	var wait sync.WaitGroup
	for range 3 {
		wait.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					s.Do(t, "GET", "/openapi/v2")
				}
			}
		})
	}
	for i := range 20 {
		name := fmt.Sprintf("birds%ds", i)
		s.Create(t, crdJSON(name, "sky.example", colored, "v1"))
		if got := s.Do(t, "GET", "/openapi/v2"); !bytes.Contains(got.Content, []byte("/apis/sky.example/v1/"+name)) {
			t.Errorf("%s is not there", name)
		}
	}
	close(stop)
	wait.Wait()
}
