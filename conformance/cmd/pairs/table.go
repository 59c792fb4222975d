package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/espalier-dev/espalier/conformance/releases"
	"github.com/espalier-dev/espalier/crd/diff"
)

// tally counts changes, and pairs by their worst change.
type tally struct {
	changes, witnessed, random, none map[string]int // breaking changes by check: all, with a witness, shown by a random object, by none
	risky                            map[string]int
	safe                             int
	pairs                            map[string]int // by worst level, and by what crdify says
	byProject                        map[string]*[3]int
	missed, doubt, probed, failed    int
	took                             []time.Duration
	other                            int // breaking changes that are not of schemas
}

func newTally() *tally {
	return &tally{changes: map[string]int{}, witnessed: map[string]int{}, random: map[string]int{}, none: map[string]int{}, risky: map[string]int{},
		pairs: map[string]int{}, byProject: map[string]*[3]int{}}
}

// table prints the results, and returns how many breaks were not reported.
func (m *measurement) table(w io.Writer, pairs []releases.Pair, list bool) int {
	t := newTally()
	for i := range pairs {
		t.add(w, &pairs[i], &m.results[i], list)
	}
	sum := func(m map[string]int) (n int) {
		for _, x := range m {
			n += x
		}
		return n
	}
	fmt.Fprintf(w, "\n| project | pairs | breaking | risky |\n|---|---:|---:|---:|\n")
	for _, name := range slices.Sorted(maps.Keys(t.byProject)) {
		n := t.byProject[name]
		fmt.Fprintf(w, "| %s | %d | %d | %d |\n", name, n[0]+n[1]+n[2], n[diff.Breaking], n[diff.Risky])
	}
	fmt.Fprintf(w, "\n| change of a schema | breaking | with a witness | shown by a random object only | by none | risky |\n|---|---:|---:|---:|---:|---:|\n")
	checks := map[string]bool{}
	for _, x := range []map[string]int{t.changes, t.risky} {
		for name := range x {
			checks[name] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(checks)) {
		fmt.Fprintf(w, "| %s | %d | %d | %d | %d | %d |\n", name, t.changes[name], t.witnessed[name], t.random[name], t.none[name], t.risky[name])
	}
	breaking := sum(t.changes)
	fmt.Fprintf(w, "| **all** | %d | %d | %d | %d | %d |\n", breaking, sum(t.witnessed), sum(t.random), sum(t.none), sum(t.risky))
	fmt.Fprintf(w, "\nbreaking changes without any witness (false breaking): %d of %d, %.2f %%\n", sum(t.none), breaking, 100*float64(sum(t.none))/float64(max(breaking, 1)))
	fmt.Fprintf(w, "breaking changes of names, versions and subresources, which need no witness: %d; safe changes: %d\n", t.other, t.safe)
	fmt.Fprintf(w, "missed breaks: %d, among %d random objects that the old CRD stores (%d breaks not confirmed by the reference)\n", t.missed, t.probed, t.doubt)
	slices.Sort(t.took)
	if n := len(t.took); n > 0 {
		fmt.Fprintf(w, "time of a comparison: median %v, 99 %% %v, longest %v; %d pairs failed\n", t.took[n/2].Round(time.Millisecond), t.took[n*99/100].Round(time.Millisecond), t.took[n-1].Round(time.Millisecond), t.failed)
	}
	fmt.Fprintf(w, "\n| pairs | crdify: error | crdify: warning | crdify: nothing |\n|---|---:|---:|---:|\n")
	for _, level := range []string{"breaking, with a witness", "breaking, without", "risky", "safe"} {
		fmt.Fprintf(w, "| %s | %d | %d | %d |\n", level, t.pairs[level+" error"], t.pairs[level+" warning"], t.pairs[level+" nothing"])
	}
	fmt.Fprintf(w, "\ncrdify's errors in pairs that are safe or risky: ")
	for _, name := range slices.SortedFunc(maps.Keys(t.pairs), func(a, b string) int { return cmp.Or(cmp.Compare(t.pairs[b], t.pairs[a]), cmp.Compare(a, b)) }) {
		if rest, ok := strings.CutPrefix(name, "by "); ok {
			fmt.Fprintf(w, "%s %d, ", rest, t.pairs[name])
		}
	}
	fmt.Fprintln(w)
	return t.missed
}

func (t *tally) add(w io.Writer, p *releases.Pair, r *result, list bool) {
	if r.err != nil {
		t.failed++
		fmt.Fprintf(w, "failed: %s %s to %s: %v\n", p.CRD, p.OldName, p.NewName, r.err)
		return
	}
	t.took = append(t.took, r.took)
	t.probed += r.probed
	t.doubt += r.doubt
	worst, proven := diff.Safe, false
	for i := range r.changes {
		x := &r.changes[i]
		check := string(x.Check)
		if !alarms(x) {
			t.safe++
			continue
		}
		worst = max(worst, x.Level)
		switch {
		case x.Level == diff.Risky:
			t.risky[check]++
			if list {
				fmt.Fprintf(w, "risky: %s %s %s %s %s: %s\n", p.CRD, p.NewName, x.Version, check, x.Path, x.Message)
			}
		case !schematic(x):
			t.other++
			proven = true
		default:
			t.changes[check]++
			switch {
			case x.Witness.Object != "":
				t.witnessed[check]++
				proven = true
			case r.shown[i]:
				t.random[check]++
				proven = true
			default:
				t.none[check]++
				if list {
					fmt.Fprintf(w, "no witness: %s %s %s %s %s: %s\n", p.CRD, p.NewName, x.Version, check, x.Path, x.Message)
				}
			}
		}
	}
	for _, miss := range r.missed {
		t.missed++
		fmt.Fprintf(w, "missed: %s %s to %s, %s: %s\n%s\n", p.CRD, p.OldName, p.NewName, miss.version, miss.what, miss.object)
	}
	if t.byProject[p.Project] == nil {
		t.byProject[p.Project] = &[3]int{}
	}
	t.byProject[p.Project][worst]++
	level := map[diff.Level]string{diff.Safe: "safe", diff.Risky: "risky", diff.Breaking: "breaking, without"}[worst]
	if worst == diff.Breaking && proven {
		level = "breaking, with a witness"
	}
	says := "nothing"
	if len(r.crdify.Warnings) > 0 {
		says = "warning"
	}
	if len(r.crdify.Errors) > 0 {
		says = "error"
		if worst != diff.Breaking {
			for _, name := range r.crdify.Errors {
				t.pairs["by "+name]++
			}
		}
	}
	t.pairs[level+" "+says]++
}
