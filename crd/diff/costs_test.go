package diff

import (
	"math"
	"testing"

	"github.com/espalier-dev/espalier/internal/syntax"
)

// What evaluating expressions costs at most: one for each step, more for comparisons of texts, and nothing for what is
// skipped.
func TestCostsOfExpressions(t *testing.T) {
	c := newComparer(0)
	v := c.framed(part{s: &schema{Type: "object", Required: []string{"a"}, Properties: []syntax.Property{
		{Name: "a", Schema: &schema{Type: "integer", Minimum: new(float64(1))}},
		{Name: "b", Schema: &schema{Type: "string"}},
		{Name: "c", Schema: &schema{Type: "string", MaxLength: new(int64(30))}},
		{Name: "d", Schema: &schema{Type: "string", Pattern: "^a{1,19}$"}},
	}}}, nil, false, false)
	none := math.Inf(1)
	for _, x := range []struct {
		expr string
		want float64
	}{
		{"true", 1}, {"self.a", 2}, {"has(self.a)", 3}, {"size(self.b)", 3}, {"self.a >= 1", 4}, {"1 <= self.a", 4},
		{"self.b == 'xyz'", 7}, {"self.b in ['x', 'yz']", 32}, {"[1] == [2]", 33}, {"self.b == self.c", none}, {"[self.b] == 1", none},
		{"self.a >= 1 || self.b == self.b", 4}, {"self.b == '' || self.a >= 1", 9}, {"self.a >= 1 && self.b == ''", 9},
		{"!(self.a >= 1) && self.b == self.b", 5}, {"!(self.a >= 1) || self.b == self.b", none},
		{"self.a >= 1 ? true : self.b == self.b", 6}, {"!(self.a >= 1) ? self.b == self.b : false", 7}, {"has(self.b) ? true : false", 6},
		{"self.c.matches('12345')", 9}, {"self.d.matches('12345')", 5}, {"self.b.matches('12345')", 629147}, {"self.x.matches('12345')", 629147},
		{"self.b.matches(self.c)", none}, {"size(self.b).matches('x')", none}, {"matches('x')", none}, {"f(self.a)", none}, {"f(1).a", none}, {"{}", none},
	} {
		tree := c.tree(&rule{Rule: &syntax.Rule{Rule: x.expr}})
		if tree == nil {
			t.Fatal(x.expr)
		}
		b := &believer{c: c, self: v, now: v, steps: believeSteps}
		if got := b.cost(tree); got != x.want {
			t.Errorf("%s: %v, expected %v", x.expr, got, x.want)
		}
	}
}

// A rule that takes more steps than it may is not believed, whatever part of it is read last.
func TestStepsOfBelief(t *testing.T) {
	c := newComparer(0)
	v := c.framed(part{s: &schema{Type: "object", Properties: []syntax.Property{{Name: "a", Schema: &schema{Type: "integer"}}}}}, nil, false, false)
	for expr, want := range map[string]truth{
		"self.a == 7": unknown, "self.a == 7 || self.a == 8": unknown, "!(self.a == 7) && self.a == 8": unknown, "self.a == 7 ? self.a == 8 : self.a == 9": unknown,
		"true": proven, "true || self.a == 7": proven, "!(false && self.a == 7)": proven, "true ? true : false": proven,
	} {
		tree := c.tree(&rule{Rule: &syntax.Rule{Rule: expr}})
		if tree == nil {
			t.Fatal(expr)
		}
		for steps := range 20 {
			b := &believer{c: c, self: v, now: v, steps: steps}
			if got := b.truth(tree); got != unknown && got != want || steps == 0 && got != unknown {
				t.Errorf("%s is %v after %d steps", expr, got, steps)
			}
		}
		b := &believer{c: c, self: v, now: v, steps: believeSteps}
		if got := b.truth(tree); got != want {
			t.Errorf("%s is %v", expr, got)
		}
	}
}
