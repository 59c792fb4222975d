package exec

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/espalier-dev/espalier/internal/jsondoc"
	"github.com/espalier-dev/espalier/internal/plan"
)

// branch is the violations of one branch of a logical keyword.
type branch struct {
	errs     []Violation
	failures int
	matches  int
}

// try compares v with a branch without reporting anything. Upstream does not
// ratchet inside logical keywords.
func (e *explainer) try(v jsondoc.Value, n *plan.Node) branch {
	m := e.mark()
	e.nesting++
	matches := e.value(v, n, pairing{})
	e.nesting--
	b := branch{errs: slices.Clone(e.errs[m.errs:]), failures: e.failures - m.failures, matches: matches}
	e.reset(m)
	return b
}

// take notes the violations of a branch after all.
func (e *explainer) take(b branch) {
	e.failures += b.failures
	for _, x := range b.errs {
		e.bytes += len(x.Path) + len(x.At) + len(x.message)
	}
	e.errs = append(e.errs, b.errs...)
}

// logical checks allOf, anyOf, oneOf and not, and returns the matches.
func (e *explainer) logical(v jsondoc.Value, n *plan.Node) int {
	matches := 1
	for i := range n.Asserts {
		a := &n.Asserts[i]
		switch a.Op {
		case plan.AnyOf:
			matches += e.anyOf(v, a)
		case plan.OneOf:
			matches += e.oneOf(v, a)
		case plan.AllOf:
			matches += e.allOf(v, a)
		case plan.Not:
			if b := e.try(v, a.Nodes[0]); b.failures == 0 {
				e.logicalError(v, "not", []branch{b}, "must not validate the schema (not)")
			}
		}
	}
	return matches
}

func (e *explainer) anyOf(v jsondoc.Value, a *plan.Assert) int {
	var tried []branch
	best := -1
	for i, n := range a.Nodes {
		b := e.try(v, n)
		if b.failures == 0 {
			return b.matches
		}
		tried = append(tried, b)
		if best < 0 || b.matches > tried[best].matches {
			best = i
		}
	}
	e.logicalError(v, "anyOf", tried, "must validate at least one schema (anyOf)")
	e.take(tried[best])
	return tried[best].matches
}

func (e *explainer) oneOf(v jsondoc.Value, a *plan.Assert) int {
	var tried []branch
	best, first, valid := -1, -1, 0
	for i, n := range a.Nodes {
		b := e.try(v, n)
		tried = append(tried, b)
		switch {
		case b.failures == 0:
			if valid++; first < 0 {
				first = i
			}
		case best < 0 || b.matches > tried[best].matches:
			best = i
		}
	}
	switch valid {
	case 1:
		return tried[first].matches
	case 0:
		e.logicalError(v, "oneOf", tried, "must validate one and only one schema (oneOf). Found none valid")
		e.take(tried[best])
		return tried[best].matches
	}
	e.logicalError(v, "oneOf", tried, fmt.Sprintf("must validate one and only one schema (oneOf). Found %d valid alternatives", valid))
	return 0
}

func (e *explainer) allOf(v jsondoc.Value, a *plan.Assert) int {
	var tried []branch
	matches, valid := 0, 0
	for _, n := range a.Nodes {
		b := e.try(v, n)
		tried = append(tried, b)
		matches += b.matches
		if b.failures == 0 {
			valid++
		}
		e.take(b)
	}
	switch valid {
	case len(a.Nodes):
	case 0:
		e.logicalError(v, "allOf", tried, "must validate all the schemas (allOf). None validated")
	default:
		e.logicalError(v, "allOf", tried, "must validate all the schemas (allOf)")
	}
	return matches
}

// logicalError notes that a logical keyword is not satisfied, with what each branch has
// against the value. Upstream gives no path besides the one in the text.
func (e *explainer) logicalError(v jsondoc.Value, keyword string, tried []branch, must string) {
	x := Violation{Type: field.ErrorTypeInvalid, BadValue: "", Keyword: keyword}
	for _, b := range tried {
		if e.branches += len(b.errs); e.branches > maxBranchViolations {
			x.Branches = nil
			break
		}
		x.Branches = append(x.Branches, b.errs)
	}
	e.add(x, "", v, fmt.Sprintf("%q %s", e.body(), must))
}
