package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/conformance/launch"
	"github.com/espalier-dev/espalier/conformance/specs"
)

func TestParseList(t *testing.T) {
	got, err := parseList("a.txt", "# why\n\n[sig-b] two\r\n  [sig-a] one\n")
	if err != nil || !reflect.DeepEqual(got, []string{"[sig-b] two", "[sig-a] one"}) {
		t.Errorf("%q %v", got, err)
	}
	if _, err := parseList("a.txt", "one\ntwo\none\n"); err == nil || !strings.Contains(err.Error(), "a.txt:3: ") {
		t.Errorf("a spec that is listed twice: %v", err)
	}
	for name := range headers {
		text := formatList(name, []string{"b", "a"})
		if got, err := parseList(name, text); err != nil || !reflect.DeepEqual(got, []string{"a", "b"}) {
			t.Errorf("%s: %q %v", name, got, err)
		}
	}
}

// The lists of the repository are as -record writes them, and name no spec twice.
func TestLists(t *testing.T) {
	known, err := load(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for name, list := range map[string][]string{referenceList: known.reference, controllersList: known.controllers} {
		if len(list) == 0 {
			t.Errorf("%s is empty", name)
		}
		path, err := listPath(name)
		if err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(path)
		if err != nil || string(text) != formatList(name, list) {
			t.Errorf("%s is not as -record writes it: %v", name, err)
		}
		for _, spec := range list {
			if !strings.HasPrefix(spec, "[sig-") || !strings.Contains(spec, "[Conformance]") {
				t.Errorf("%s: not a conformance spec: %s", name, spec)
			}
		}
	}
	if got := known.of(launch.Kubernetes); !slices.Equal(got, known.reference) {
		t.Errorf("kube-apiserver runs %d specs, not the %d of %s", len(got), len(known.reference), referenceList)
	}
	if got := known.of(launch.Espalier); len(got) != len(known.reference)+len(known.controllers) {
		t.Errorf("our server runs %d specs, not those of both lists", len(got))
	}
}

func TestChoose(t *testing.T) {
	names := []string{"[sig-a] one", "[sig-b] two", "[sig-a] three"}
	if got := matching(names, regexp.MustCompile("sig-a")); !slices.Equal(got, []string{"[sig-a] one", "[sig-a] three"}) {
		t.Errorf("%q", got)
	}
	if got := without(names, []string{"[sig-a] one"}); !slices.Equal(got, []string{"[sig-b] two", "[sig-a] three"}) {
		t.Errorf("%q", got)
	}
}

func TestCause(t *testing.T) {
	for _, test := range []struct{ a, b, want string }{
		{
			"Unexpected error: <*errors.StatusError | 0xc0012a>: the server could not find the requested resource { ErrStatus: { TypeMeta: {} } } occurred",
			"Unexpected error: <*errors.StatusError | 0xc00ffa>: the server could not find the requested resource { ErrStatus: { Code: 404 } } occurred",
			"the server could not find the requested resource",
		},
		{
			`failed to create pod "pods-4711/pod-qos-class-8a0d1f7e": timed out after 2.001s`,
			`failed to create pod "pods-13/pod-qos-class-77": timed out after 30s`,
			`failed to create pod "pods-…/pod-qos-class-…": timed out after …s`,
		},
		{"", "", "no reason was reported"},
	} {
		if a, b := cause(test.a), cause(test.b); a != test.want || b != test.want {
			t.Errorf("%q\n%q\n%q", a, b, test.want)
		}
	}
	if got := say(strings.Repeat("ä", 1000)); len(got) > longest+len("…") || !strings.HasSuffix(got, "ä…") {
		t.Errorf("%q", got)
	}
}

func TestShow(t *testing.T) {
	var out bytes.Buffer
	show(&out, "are lost", nil)
	if out.Len() > 0 {
		t.Errorf("%q", &out)
	}
	show(&out, "are lost", []specs.Spec{
		{Name: "b", State: "failed", Took: time.Second, Reason: "no pods"},
		{Name: "c", State: "timedout", Took: time.Minute, Reason: "ns-1 is gone"},
		{Name: "a", State: "failed", Took: time.Second, Reason: "no pods"},
	})
	const want = `
3 specs are lost:
  2 × no pods
    failed after 1 s: a
    failed after 1 s: b
  1 × ns-… is gone
    timedout after 60 s: c
      ns-1 is gone
`
	if out.String() != want {
		t.Errorf("%s", &out)
	}
}

// suite is a program in place of the specs: it writes a report about the spec that --ginkgo.focus names.
const suite = `#!/bin/sh
for a in "$@"; do
  case $a in
  --ginkgo.json-report=*) report=${a#*=};;
  --ginkgo.focus=*) focus=$(printf %s "${a#*=}" | tr -d '\\$');;
  esac
done
state=passed
case $focus in *crash*) exit 2;; *fail*) state=failed;; *other*) focus=unknown;; esac
printf '[{"SpecReports":[{"LeafNodeType":"It","LeafNodeText":"skipped","State":"skipped"},{"LeafNodeType":"It","LeafNodeText":"%s","State":"%s","Failure":{"Message":"why"}}]}]' "$focus" "$state" >"$report"
`

func TestPool(t *testing.T) {
	dir := t.TempDir()
	binary := filepath.Join(dir, "suite")
	if err := os.WriteFile(binary, []byte(suite), 0o755); err != nil {
		t.Fatal(err)
	}
	var order []string
	p := &pool{suite: specs.Suite{Name: "suite", Binary: binary, Dir: dir}, workers: 3, limit: time.Minute, logs: filepath.Join(dir, "logs"),
		progress: func(_ string, arguments ...any) { order = append(order, arguments[len(arguments)-1].(string)) }}
	names := []string{"[sig-a] alone [Serial]", "[sig-a] works", "[sig-a] fails", "[sig-b] crashes", "[sig-b] is another"}
	got, err := p.run(t.Context(), names)
	if err != nil {
		t.Fatal(err)
	}
	for i, state := range []string{"passed", "passed", "failed", "crashed", "missing"} {
		if got[i].Name != names[i] || got[i].State != state || (state != "passed" && got[i].Reason == "") {
			t.Errorf("%s: %+v", names[i], got[i])
		}
	}
	if len(passing(got)) != 2 || len(failures(got, names[:3])) != 1 {
		t.Errorf("%d passed, %d of the list failed", len(passing(got)), len(failures(got, names[:3])))
	}
	if len(order) != len(names) || order[len(order)-1] != names[0] {
		t.Errorf("the serial spec did not run last: %q", order)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := p.run(ctx, names); err == nil {
		t.Error("an interrupted run has a result")
	}
}

// TestReport fails if too few specs pass, with the server or in its tenant.
func TestReport(t *testing.T) {
	root := []specs.Spec{{Name: "a", State: "passed"}, {Name: "b", State: "passed"}}
	known := lists{reference: []string{"a", "b"}}
	defer func(one, other int) { *least, *inside = one, other }(*least, *inside)
	for _, test := range []struct {
		least, inside int
		within        []specs.Spec
		fails         bool
	}{
		{2, 0, nil, false},
		{3, 0, nil, true},
		{2, 1, []specs.Spec{{Name: "a", State: "passed"}, {Name: "b", State: "failed"}}, false},
		{2, 2, []specs.Spec{{Name: "a", State: "passed"}, {Name: "b", State: "failed"}}, true},
	} {
		*least, *inside = test.least, test.inside
		err := report(known, map[string][]specs.Spec{launch.Espalier.String(): root, tenantSide: test.within})
		if (err != nil) != test.fails {
			t.Errorf("%+v: %v", test, err)
		}
	}
}

func TestSpread(t *testing.T) {
	var mu sync.Mutex
	running, most, sum := 0, 0, 0
	spread(t.Context(), []int{1, 2, 3, 4, 5, 6}, 2, func(i int) {
		mu.Lock()
		running++
		most = max(most, running)
		sum += i
		mu.Unlock()
		time.Sleep(5 * time.Millisecond)
		mu.Lock()
		running--
		mu.Unlock()
	})
	if most > 2 || sum != 21 {
		t.Errorf("%d at the same time, sum %d", most, sum)
	}
}
