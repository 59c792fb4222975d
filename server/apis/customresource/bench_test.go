package customresource

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// The benchmarks run requests through the handlers, without HTTP around them.
// A CRD and an object of one's own, in which NAME stands for the name,
// are given by path:
//
//	ESPALIER_BENCH_DEFINITION=crd.yaml ESPALIER_BENCH_OBJECT=object.json ESPALIER_BENCH_PATH=/apis/… go test -bench .
type bench struct {
	*env
	path, object string
	created      atomic.Int64
}

func startBench(b *testing.B) *bench {
	b.Helper()
	e := &bench{env: start(b), path: widgets, object: widget("NAME", `"color":"blue","replicas":3,"size":"s","parts":[`+
		strings.TrimSuffix(strings.Repeat(`{"name":"NAME-%d","count":7},`, 30), ",")+`]`)}
	for i := range 30 {
		e.object = strings.Replace(e.object, "NAME-%d", fmt.Sprintf("part-%d", i), 1)
	}
	crd := widgetsYAML
	if path := os.Getenv("ESPALIER_BENCH_DEFINITION"); path != "" {
		crd = readFile(b, path)
		e.object, e.path = readFile(b, os.Getenv("ESPALIER_BENCH_OBJECT")), os.Getenv("ESPALIER_BENCH_PATH")
	}
	e.define(crd)
	e.call(b, http.MethodPost, e.path, e.next(), http.StatusCreated) // what is made on first use
	return e
}

func readFile(b *testing.B, path string) string {
	b.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		b.Fatal(err)
	}
	return string(data)
}

// next returns an object with a new name.
func (e *bench) next() string {
	return strings.Replace(e.object, "NAME", fmt.Sprintf("object-%d", e.created.Add(1)), 1)
}

func (e *bench) call(b *testing.B, method, path, body string, code int) {
	req := httptest.NewRequest(method, path, strings.NewReader(body))
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	w := httptest.NewRecorder()
	e.handler.ServeHTTP(w, req)
	if w.Code != code {
		b.Errorf("%s %s: %d %s", method, path, w.Code, w.Body)
	}
}

func BenchmarkCreate(b *testing.B) {
	e := startBench(b)
	b.ReportAllocs()
	b.SetParallelism(16)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			e.call(b, http.MethodPost, e.path, e.next(), http.StatusCreated)
		}
	})
}

func BenchmarkGet(b *testing.B) {
	e := startBench(b)
	b.ReportAllocs()
	b.SetParallelism(16)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			e.call(b, http.MethodGet, e.path+"/object-1", "", http.StatusOK)
		}
	})
}

func BenchmarkList10k(b *testing.B) {
	e := startBench(b)
	for range 9999 {
		e.call(b, http.MethodPost, e.path, e.next(), http.StatusCreated)
	}
	e.call(b, http.MethodGet, e.path+"?resourceVersion=0", "", http.StatusOK)
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		e.call(b, http.MethodGet, e.path+"?resourceVersion=0", "", http.StatusOK)
	}
}

// BenchmarkWatch delivers each event to 100 watches. What the write itself takes is
// part of it.
func BenchmarkWatch(b *testing.B) {
	const watchers = 100
	e := startBench(b)
	delivered := make(chan struct{}, 1<<16)
	ctx, cancel := context.WithCancel(b.Context())
	var open sync.WaitGroup
	for range watchers {
		began := make(chan struct{})
		open.Go(func() {
			req := httptest.NewRequest(http.MethodGet, e.path+"?watch=1&resourceVersion=0", nil).WithContext(ctx)
			e.handler.ServeHTTP(&watcher{header: http.Header{}, began: began, delivered: delivered}, req)
		})
		<-began
		<-delivered // the object that there is
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for b.Loop() {
		e.call(b, http.MethodPost, e.path, e.next(), http.StatusCreated)
		for range watchers {
			<-delivered
		}
	}
	runtime.ReadMemStats(&after)
	n := float64(b.N * watchers)
	b.ReportMetric(float64(after.Mallocs-before.Mallocs)/n, "allocs/event")
	b.ReportMetric(float64(after.TotalAlloc-before.TotalAlloc)/n, "B/event")
	cancel()
	open.Wait()
}

// watcher is a client that counts the writes of a watch.
type watcher struct {
	header    http.Header
	began     chan struct{}
	delivered chan<- struct{}
}

func (w *watcher) Header() http.Header { return w.header }

func (w *watcher) WriteHeader(int) { close(w.began) }

func (w *watcher) Write(p []byte) (int, error) {
	if !bytes.Contains(p, []byte(`"type":"BOOKMARK"`)) {
		w.delivered <- struct{}{}
	}
	return len(p), nil
}

func (w *watcher) Flush() {}

func (w *watcher) CloseNotify() <-chan bool { return nil }
