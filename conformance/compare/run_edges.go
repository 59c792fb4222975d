package compare

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/espalier-dev/espalier/conformance/engine"
	"github.com/espalier-dev/espalier/conformance/expression"
	"github.com/espalier-dev/espalier/conformance/oracle"
)

// EdgeCounts is what has been compared of the edges of cost limits.
type EdgeCounts struct {
	Bounds, BoundEdges   atomic.Int64 // schemas, and those with a bound from which on they are refused
	Budgets, BudgetEdges atomic.Int64 // schemas, and those with a size from which on evaluation is given up
	EdgeRuns             atomic.Int64 // answers that were compared
}

// String is a line of progress.
func (c *EdgeCounts) String() string {
	return fmt.Sprintf("cost edges of schemas %d (found %d), of objects %d (found %d)", c.Bounds.Load(), c.BoundEdges.Load(), c.Budgets.Load(), c.BudgetEdges.Load())
}

// edges looks for the bounds and sizes at which costs become too high, on each side, and compares them.
func (r *runner) edges(round uint64) {
	r.each(r.cfg.Edges*boundsPerBudget, func(i int) {
		seed := r.cfg.Seed + round*uint64(r.cfg.Edges*boundsPerBudget) + uint64(i)
		r.bound(seed)
		for j := range uint64(sizesPerBound) {
			n := seed*sizesPerBound + j
			r.compileRules(expression.Size(n), fmt.Sprintf("size %d", n))
		}
		if i%boundsPerBudget == 0 {
			r.budget(seed / boundsPerBudget)
		}
	})
}

// boundsPerBudget is how many edges of schemas are looked for per edge of objects, which take longer to find.
const boundsPerBudget = 40

// sizesPerBound is how many schemas without bounds are compared per edge of a schema: their costs are compared, and no
// edge is looked for.
const sizesPerBound = 4

// first finds the smallest number from which on something is true, or most+1. That there is none is seen at once: every
// other step would take as long.
func first(most int, is func(int) bool) int {
	if !is(most) {
		return most + 1
	}
	low, high := 1, most
	for low < high {
		if middle := low + (high-low)/2; is(middle) {
			high = middle
		} else {
			low = middle + 1
		}
	}
	return low
}

// mostBound is more than any request has room for.
const mostBound = 4 << 20

func (r *runner) bound(seed uint64) {
	b := expression.NewBound(seed)
	ours := first(mostBound, func(n int) bool { return len(engine.Check(b.Schema(n), false).Errors) > 0 })
	crashed := false
	theirs := first(mostBound, func(n int) bool {
		v := oracle.Check(b.Schema(n), false)
		crashed = crashed || v.Panic != nil
		return len(v.All()) > 0
	})
	r.counts.Bounds.Add(1)
	if crashed {
		r.counts.Panics.Add(1)
		return
	}
	if theirs > 1 && theirs <= mostBound {
		r.counts.BoundEdges.Add(1)
	}
	// Where the edges differ, the answers about the smaller bound do.
	for _, n := range []int{min(ours, theirs) - 1, min(ours, theirs)} {
		if n == 0 {
			continue
		}
		r.counts.EdgeRuns.Add(1)
		if d, _ := Schema(b.Schema(n), false); d != nil {
			r.differ(d, fmt.Sprintf("bound %d, %s %d (refused from %d on, by the reference from %d on)", seed, b.Keyword, n, ours, theirs))
		}
	}
}

// exceeds tells the errors of the budgets.
func exceeds(v *oracle.Validation) bool {
	return slices.ContainsFunc(v.Errors, func(e string) bool { return strings.Contains(e, "no further validation rules will be run") })
}

func (r *runner) budget(seed uint64) {
	b := expression.NewBudget(seed)
	origin := fmt.Sprintf("budget %d", seed)
	pair, d := Compile(b.Schema)
	if d != nil {
		r.differ(d, origin)
	}
	if pair == nil {
		return
	}
	input := func(n int) ([]byte, oracle.ValidateOptions) {
		object := b.Object(n)
		if b.Old {
			return b.Object(1), oracle.ValidateOptions{Old: object}
		}
		return object, oracle.ValidateOptions{}
	}
	edge := func(validate func([]byte, oracle.ValidateOptions) oracle.Validation) int {
		return first(b.Most, func(n int) bool {
			v := validate(input(n))
			return exceeds(&v)
		})
	}
	ours, theirs := edge(pair.ours.Validate), edge(pair.theirs.Validate)
	r.counts.Budgets.Add(1)
	if theirs <= b.Most {
		r.counts.BudgetEdges.Add(1)
	}
	for _, n := range []int{min(ours, theirs) - 1, min(ours, theirs)} {
		object, o := input(min(n, b.Most))
		r.counts.EdgeRuns.Add(1)
		if d, _, _ := pair.Validate(object, o); d != nil {
			r.differ(d, fmt.Sprintf("%s of a %s, size %d (exceeded from %d on, in the reference from %d on)", origin, b.What, n, ours, theirs))
		}
	}
}
