package customresource

import (
	"bufio"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/server/endpoints/apitest"
	"github.com/espalier-dev/espalier/server/etcdtest"
)

// streams asks etcd how many streams of watches there are.
func streams(tb testing.TB) int {
	tb.Helper()
	resp, err := http.Get(etcdtest.Endpoint(tb) + "/metrics")
	if err != nil {
		tb.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
		if value, ok := strings.CutPrefix(lines.Text(), "etcd_debugging_mvcc_watch_stream_total "); ok {
			n, err := strconv.Atoi(value)
			if err != nil {
				tb.Fatal(err)
			}
			return n
		}
	}
	tb.Fatal("etcd does not tell how many streams there are")
	return 0
}

// The catalog has one gRPC stream, however many CRDs there are and are asked for. Only
// a watch cache in use adds one.
func TestStreamsDoNotGrowWithResources(t *testing.T) {
	// Servers of tests before this one are stopped; their streams end a little later.
	apitest.Eventually(t, func() bool { return streams(t) == 0 })
	e := start(t)
	path := func(i int) string { return fmt.Sprintf("/apis/example.com/v1/boxes%d", i) }
	for i := range 20 {
		text := strings.Replace(boxesWith("a: {type: string}"), "plural: boxes, kind: Box", fmt.Sprintf("plural: boxes%d, kind: Box%d", i, i), 1)
		e.define(text)
		e.Do("GET", path(i)+"/none", "").Is(http.StatusNotFound)
		e.Do("GET", "/apis/example.com/v1/nothing", "").Is(http.StatusNotFound) // asks for the progress
	}
	if n := streams(t); n != 1 {
		t.Errorf("%d streams for 20 resources without watches", n)
	}
	for range 3 {
		e.Watch(path(0) + "?watch=1&resourceVersion=0")
	}
	apitest.Eventually(t, func() bool { return streams(t) == 2 })
	time.Sleep(100 * time.Millisecond)
	if n := streams(t); n != 2 {
		t.Errorf("%d streams with one watch cache", n)
	}
}
