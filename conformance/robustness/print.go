package robustness

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// String is a line of counts.
func (t *Totals) String() string {
	return fmt.Sprintf("%d runs in %.0f s (%.1f s each), %d operations (%d with unknown outcome), %d events, %d writes in etcd, %d faults, %d schema acknowledgements, %d violations",
		t.Runs, t.Took.Seconds(), t.Took.Seconds()/float64(max(t.Runs, 1)), t.Operations, t.Unknown, t.Events, t.Writes, t.Faults, t.Acks, t.Violations)
}

// found counts violations.
func (t *Totals) found(checker string, n int) {
	if t.Checkers == nil {
		t.Checkers = map[string]int{}
	}
	t.Checkers[checker] += n
}

// ByChecker is the violations of each checker, in words; empty if there are none.
func (t *Totals) ByChecker() string {
	var parts []string
	for _, checker := range slices.Sorted(maps.Keys(t.Checkers)) {
		parts = append(parts, fmt.Sprintf("%s %d", checker, t.Checkers[checker]))
	}
	return strings.Join(parts, ", ")
}

// Add adds counts.
func (t *Totals) Add(o *Totals) {
	t.Runs += o.Runs
	t.Operations += o.Operations
	t.Unknown += o.Unknown
	t.Events += o.Events
	t.Writes += o.Writes
	t.Faults += o.Faults
	t.Acks += o.Acks
	t.Violations += o.Violations
	for checker, n := range o.Checkers {
		t.found(checker, n)
	}
	t.Took += o.Took
}

// Print shows a run: one line, and all about its violations.
func Print(w io.Writer, r *Runner, result *Result) {
	operations := 0
	if result.History != nil {
		operations = len(result.History.Operations)
	}
	fmt.Fprintf(w, "run %d seed %d: %v: %d operations in %.1f s, %d violations\n", r.Totals.Runs, result.Seed, result.Steps, operations, result.Took.Seconds(), len(result.Violations))
	for _, v := range result.Violations {
		fmt.Fprintf(w, "    %s: %s\n", v.Checker, v.Message)
	}
	if len(result.Violations) > 0 {
		fmt.Fprintf(w, "%s    again: %s\n", result.Minimised, r.Command(result.Seed))
	}
}
