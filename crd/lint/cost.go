package lint

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"

	"github.com/espalier-dev/espalier/crd/cel"
	"github.com/espalier-dev/espalier/finding"
)

// What parts of an expression cost at most, for values as large as a request:
// elements of a list, each compared with something short, or a text.
const (
	largest      = 3 << 20
	searchWeight = largest / 2
	textWeight   = largest/10 + 10
	heavyWeight  = cel.MaxSchemaCost
)

// weigh adds a rough upper bound of the cost of the rules of n. The exact estimate
// takes as long as all other checks; for most schemas the bound shows that it is
// not needed.
func (c *checker) weigh(n *node, list []parsed) {
	for m := n; m.parent != nil; m = m.parent {
		if m.keyword != "properties" {
			c.heavy = true // evaluated many times
			return
		}
	}
	for _, p := range list {
		w := weight(p.tree.Expr())
		if p.rule.MessageExpression != "" {
			w += heavyWeight
		}
		c.weight += min(w, heavyWeight)
		c.heavy = c.heavy || w > cel.MaxRuleCost/nearLimit
	}
}

// weight bounds the cost of an expression.
func weight(e ast.Expr) uint64 {
	switch e.Kind() {
	case ast.IdentKind, ast.LiteralKind:
		return 1
	case ast.SelectKind:
		return 2 + weight(e.AsSelect().Operand())
	case ast.ListKind:
		w := uint64(50)
		for _, x := range e.AsList().Elements() {
			w += weight(x)
		}
		return w
	case ast.CallKind:
		x := e.AsCall()
		w, known := weights[x.FunctionName()]
		if !known {
			return heavyWeight
		}
		if x.IsMemberFunction() {
			w += weight(x.Target())
		}
		for _, a := range x.Args() {
			w += weight(a)
		}
		return w
	}
	return heavyWeight
}

// weights has what functions cost at most; those that are not in it may cost
// anything.
var weights = map[string]uint64{
	operators.LogicalAnd: 1, operators.LogicalOr: 1, operators.LogicalNot: 1, operators.Conditional: 1,
	operators.Index: 1, operators.OptIndex: 1, operators.OptSelect: 1, "size": 1, "hasValue": 1, "orValue": 1, "value": 1,
	operators.Equals: textWeight, operators.NotEquals: textWeight,
	operators.Less: textWeight, operators.LessEquals: textWeight, operators.Greater: textWeight, operators.GreaterEquals: textWeight,
	"startsWith": textWeight, "endsWith": textWeight,
	operators.In: searchWeight,
}

// nearLimit is the share of a limit from which a bound is worth adding.
const nearLimit = 2

// costs finds rules whose cost is near a limit for want of bounds.
func (c *checker) costs() {
	if !c.on["missing-bounds"] || c.weight < cel.MaxSchemaCost/nearLimit && !c.heavy {
		return
	}
	list, err := cel.Costs(c.version.Schema, cel.CheckOptions{Path: c.path, CompatibilityVersion: c.options.CompatibilityVersion})
	if err != nil {
		return // said elsewhere
	}
	total := uint64(0)
	for i := range list {
		total += min(list[i].Total, cel.MaxSchemaCost) // enough to be too much
	}
	slices.SortStableFunc(list, func(a, b cel.Cost) int { return cmp.Compare(b.Total, a.Total) })
	for i := range list {
		r := &list[i]
		near := r.Total > cel.MaxRuleCost/nearLimit
		// Of many rules that are expensive together only, the first few matter.
		much := total > cel.MaxSchemaCost/nearLimit && r.Total >= cel.MaxSchemaCost/100 && i < mostExpensive
		if len(r.Bounds) == 0 || !near && !much {
			continue
		}
		first := &r.Bounds[0]
		detail := fmt.Sprintf("the estimated cost of the CEL rule is %s of the limit per rule, because %s has no %s", percent(r.Total, cel.MaxRuleCost), c.field(first), first.Keyword)
		if !near {
			detail = fmt.Sprintf("the estimated cost of all CEL rules is %s of the total limit, and of this rule %s, because %s has no %s",
				percent(total, cel.MaxSchemaCost), percent(r.Total, cel.MaxSchemaCost), c.field(first), first.Keyword)
		}
		var lines []string
		var edits []edit
		for j := range r.Bounds {
			b := &r.Bounds[j]
			lines = append(lines, fmt.Sprintf("%s: %d # at %s: %s; then the cost is %s of the limit", b.Keyword, b.Value, c.field(b), b.Why, percent(b.Total, cel.MaxRuleCost)))
			edits = append(edits, insertInto(c.version.Offset-c.shift+b.Offset, fmt.Sprintf("%q:%d,", b.Keyword, b.Value)))
		}
		found := c.add("missing-bounds", r.Path, c.version.Pointer+r.Pointer, c.version.Offset+r.Offset, detail,
			fmt.Sprintf("Add %s to %s.", first.Keyword, c.field(first)))
		c.propose(found, strings.Join(lines, "\n"), edits...)
	}
}

// mostExpensive is how many rules are named that are expensive together, as many
// as API servers name.
const mostExpensive = 4

// field names the field of objects that a bound is for.
func (c *checker) field(b *cel.Bound) string {
	return cmp.Or(finding.Field(c.version.Pointer+b.Pointer), "the schema")
}

func percent(part, whole uint64) string {
	p := float64(part) / float64(whole) * 100
	switch {
	case p < 1:
		return "less than 1 %"
	case p > 100_000:
		return "over 1000 times"
	}
	return fmt.Sprintf("%.0f %%", p)
}
