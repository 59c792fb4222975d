package requests_test

import (
	"bytes"
	"flag"
	"regexp"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/espalier-dev/espalier/conformance/launch"
	"github.com/espalier-dev/espalier/conformance/tree"
)

var upstreamFlag = flag.Bool("upstream", false, "ask upstream's server the same, and report where ours differs from it")

// TestUpstream has upstream's server answer the requests, too: it tells which of two answers is right. Servers are
// compared with each other elsewhere, so this is for developers who work on a difference.
func TestUpstream(t *testing.T) {
	if !*upstreamFlag {
		t.Skip("only with -upstream")
	}
	all := testCRDs(t, *seedFlag)
	ours := newTestServer(t, start(t), all)
	requests := generated(all, *seedFlag)
	send(t, ours, requests)

	copies := testCRDs(t, *seedFlag)
	theirs := newTestServer(t, startUpstream(t), copies)
	time.Sleep(5 * time.Second) // upstream's applies changed CRDs some time after it says so
	olds := map[string][]*stored{}
	for _, d := range copies {
		olds[d.Kind] = d.olds
	}
	translated := make([]*request, len(requests))
	for i, r := range requests {
		other := *r
		other.siblings = map[string]*request{r.mode: &other} // each is a group of its own
		if r.old != nil {
			other.translate(olds[r.def.Kind])
		}
		translated[i] = &other
	}
	send(t, theirs, translated)
	seen := map[string]int{}
	for i, r := range requests {
		theirs := translated[i].server
		theirs.code = 0
		d := &difference{request: r}
		d.server, d.cli = apart(settled(r.server.errors), settled(theirs.errors))
		d.serverWarnings, d.cliWarnings = apart(settled(r.server.warnings), settled(theirs.warnings))
		d.decision = r.server.refused != theirs.refused
		if !d.any() {
			continue
		}
		if kind := d.kind(); seen[kind] < shown {
			seen[kind]++
			d.request.cli = theirs
			t.Errorf("the command line stands for upstream's server: %v", d)
		}
	}
}

func startUpstream(t *testing.T) *rest.Config {
	t.Helper()
	etcd, err := launch.StartEtcd(t.Context(), "--unsafe-no-fsync")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(etcd.Stop)
	binary, err := launch.Upstream.Program(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	server, err := launch.StartServer(t.Context(), launch.Spec{Kind: launch.Upstream, Binary: binary, Etcd: etcd.URL, Prefix: "/requests"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Stop)
	return server.Config
}

// translate has the request update the object of another server that has the same name. The times in its managedFields
// stay: rules that compare all of an object see a change in that.
func (r *request) translate(olds []*stored) {
	metadata := func(o *stored) *tree.Node { return tree.Must(string(o.json[r.version.Name])).Get("metadata") }
	for _, o := range olds {
		if o.name != r.old.name {
			continue
		}
		now, was := metadata(o), metadata(r.old)
		r.body = bytes.ReplaceAll(r.body, []byte(was.Get("uid").Text()), []byte(now.Get("uid").Text()))
		r.body = bytes.ReplaceAll(r.body, []byte(`"resourceVersion":`+was.Get("resourceVersion").Raw), []byte(`"resourceVersion":`+now.Get("resourceVersion").Raw))
	}
}

var (
	uids  = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)
	times = regexp.MustCompile(`20[0-9-]+T[0-9:]+Z`)
	marks = regexp.MustCompile(`resourceVersion":"[0-9]+"`)
)

// settled are texts without what is another thing on every server.
func settled(list []said) []said {
	var out []said
	for _, s := range list {
		s.text = uids.ReplaceAllString(s.text, "UID")
		s.text = times.ReplaceAllString(s.text, "TIME")
		s.text = marks.ReplaceAllString(s.text, "RV")
		out = append(out, s)
	}
	return out
}
