package check

import (
	"flag"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/conformance/robustness/history"
)

// histories is how many TestRandom simulates: more of them on a quiet machine.
var histories = flag.Uint64("histories", 2500, "number of simulated histories")

// TestRandom is the proof against false alarms: correct histories have no violation.
func TestRandom(t *testing.T) {
	var operations, unknown, events, writes, bookmarks, pages int
	for seed := range *histories {
		h := simulate(seed, 50+int(seed%400))
		operations += len(h.Operations)
		writes += len(h.Writes)
		for i := range h.Operations {
			if h.Operations[i].Outcome == history.Unknown {
				unknown++
			}
			if h.Operations[i].Pages > 1 {
				pages++
			}
		}
		for i := range h.Sessions {
			events += len(h.Sessions[i].Events)
			for j := range h.Sessions[i].Events {
				if h.Sessions[i].Events[j].Type == "BOOKMARK" {
					bookmarks++
				}
			}
		}
		if violations := All(h); len(violations) > 0 {
			var b strings.Builder
			Print(&b, Minimise(h, violations[0].Checker))
			for _, v := range violations {
				t.Logf("%s", v)
			}
			t.Fatalf("seed %d: a correct history has %d violations:\n%s", seed, len(violations), b.String())
		}
	}
	t.Logf("%d histories, %d operations (%d unknown, %d lists in pages), %d writes, %d events (%d bookmarks)", *histories, operations, unknown, pages, writes, events, bookmarks)
	if unknown == 0 || bookmarks == 0 || pages == 0 {
		t.Fatal("the simulation does not do what it must be tested with")
	}
}
