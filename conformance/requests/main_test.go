package requests_test

import (
	"flag"
	"fmt"
	"maps"
	"slices"
	"sort"
	"strings"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/conformance/launch"
	"github.com/espalier-dev/espalier/server/espaliertest"
)

var (
	seedFlag = flag.Uint64("seed", 1, "makes the requests; each has others")
	onlyFlag = flag.Int("request", 0, "send this request only, by its number, and print all that is said about it")
	keepFlag = flag.String("keep", "", "with -request: an existing folder to leave the files of the command line in")
)

func TestMain(m *testing.M) { espaliertest.Main(m) }

// fewest is how many requests are worth the name of a comparison.
const fewest = 2000

// TestResults has the server and the command line answer the same requests.
func TestResults(t *testing.T) {
	if testing.Short() {
		t.Skip("thousands of requests")
	}
	began := time.Now()
	t.Logf("seed %d; one of the requests again: -seed %d -request NUMBER -v", *seedFlag, *seedFlag)
	all := testCRDs(t, *seedFlag)
	w := newTestServer(t, start(t), all)
	requests := generated(all, *seedFlag)
	if len(requests) < fewest {
		t.Fatalf("there are only %d requests", len(requests))
	}
	if *onlyFlag > 0 {
		replay(t, w, requests)
		return
	}
	stored := time.Since(began)
	send(t, w, requests)
	sent := time.Since(began)
	validate(t, requests)
	validated := time.Since(began)
	t.Logf("%v: stored after %.1f s, sent after %.1f s, validated after %.1f s", counts(requests), stored.Seconds(), sent.Seconds(), validated.Seconds())
	compareAll(t, requests)
}

// replay sends one request, with its siblings, and prints everything.
func replay(t *testing.T, w *testServer, requests []*request) {
	t.Helper()
	if *onlyFlag > len(requests) {
		t.Fatalf("there are %d requests", len(requests))
	}
	r := requests[*onlyFlag-1]
	alone := slices.Collect(maps.Values(r.siblings))
	send(t, w, alone)
	validate(t, alone)
	t.Logf("%v\nPOST or PUT %s\n%s", r, r.path(), r.body)
	if r.old != nil {
		t.Logf("the old object:\n%s", r.old.json[r.oldAs.Name])
	}
	t.Logf("CRD:\n%s", r.def.crd(false))
	t.Logf("the server: %d\n%s\nwarnings: %q", r.server.code, r.server.raw, r.server.warnings)
	t.Logf("the command line:\n%s", r.cli.raw)
	if d := compare(r); d != nil {
		causes := d.explain()
		t.Logf("causes: %q", causes)
		if d.any() {
			t.Error(d)
		}
	}
}

// send sends all requests; those with the same body one after the other, since they may create the same object.
func send(t *testing.T, w *testServer, requests []*request) {
	t.Helper()
	var groups [][]*request
	for i, r := range requests {
		if i > 0 && len(groups) > 0 && maps.Equal(groups[len(groups)-1][0].siblings, r.siblings) {
			groups[len(groups)-1] = append(groups[len(groups)-1], r)
		} else {
			groups = append(groups, []*request{r})
		}
	}
	var storing [][]*request
	groups = slices.DeleteFunc(groups, func(list []*request) bool {
		if list[0].stores() {
			storing = append(storing, list)
		}
		return list[0].stores()
	})
	each(t, groups, func(list []*request) error {
		for _, r := range list {
			w.send(t.Context(), r)
		}
		return nil
	})
	// What really is created is in the way of others of that name.
	for _, r := range slices.Concat(storing...) {
		w.send(t.Context(), r)
	}
}

func validate(t *testing.T, requests []*request) {
	t.Helper()
	program, err := launch.BuildCommandLine(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for b, list := range batches(requests) {
		dir := t.TempDir()
		if *keepFlag != "" {
			dir = *keepFlag
		}
		b.validate(t, program, dir, list)
	}
}

// counts says how many requests of each kind there are, and how many of them are accepted.
func counts(requests []*request) string {
	n, accepted := map[string]int{}, map[string]int{}
	for _, r := range requests {
		kind := fmt.Sprintf("%s %s", r.verb, r.mode)
		n[kind]++
		if !r.server.refused {
			accepted[kind]++
		}
	}
	var list []string
	for kind := range n {
		list = append(list, fmt.Sprintf("%d × %s (%d accepted)", n[kind], kind, accepted[kind]))
	}
	sort.Strings(list)
	return fmt.Sprintf("%d requests: %s", len(requests), strings.Join(list, ", "))
}
