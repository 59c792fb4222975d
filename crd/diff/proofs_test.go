package diff

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"

	"github.com/espalier-dev/espalier/internal/syntax"
)

// TestContains compares what automata say about pairs of patterns with what
// package regexp says about all short texts.
func TestContains(t *testing.T) {
	atoms := []string{"a", "b", "[ab]", "[^a]", ".", "(a|b)", "\\b", "^", "$", "(?i:A)", "a{0,2}", "(?:ab)+", "a*", "b?", "\\s", "(?m:^)", "\\n", "é"}
	var short []string
	level := []string{""}
	for range 4 {
		var next []string
		for _, s := range level {
			for _, r := range []string{"a", "b", "A", " ", "\n", "é"} {
				next = append(next, s+r)
			}
		}
		short = append(short, level...)
		level = next
	}
	r := rand.New(rand.NewPCG(1, 2))
	counts := map[answer]int{}
	for range 1500 {
		var exprs [2]string
		for i := range exprs {
			for range 1 + r.IntN(4) {
				exprs[i] += atoms[r.IntN(len(atoms))]
			}
			if r.IntN(3) == 0 {
				exprs[i] = "^" + exprs[i] + "$"
			}
		}
		if r.IntN(4) == 0 {
			exprs[1] = exprs[0] + "|" + exprs[1]
		}
		small, large := regexp.MustCompile(exprs[0]), regexp.MustCompile(exprs[1])
		got, example := newComparer(0).contains(exprs[0], exprs[1])
		counts[got]++
		switch got {
		case refuted:
			if !small.MatchString(example) || large.MatchString(example) {
				t.Errorf("%q in %q: %q is no example", exprs[0], exprs[1], example)
			}
		case proven:
			for _, s := range short {
				if small.MatchString(s) && !large.MatchString(s) {
					t.Errorf("%q in %q: what of %q?", exprs[0], exprs[1], s)
					break
				}
			}
		case unknown:
			t.Errorf("%q in %q: nothing is known", exprs[0], exprs[1])
		}
	}
	if counts[proven] < 200 || counts[refuted] < 200 {
		t.Errorf("%v", counts)
	}
	if got, _ := newComparer(0).contains("a", strings.Repeat("(a|b)", 2000)); got != unknown {
		t.Error("a pattern that is too large is compared")
	}
}

// TestImplies evaluates pairs of rules for all small numbers, if implies reports
// that the first implies the second.
func TestImplies(t *testing.T) {
	env, err := cel.NewEnv(cel.Variable("x", cel.IntType), cel.Variable("y", cel.IntType))
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(3, 4))
	var expr func(depth int) string
	expr = func(depth int) string {
		if depth == 0 || r.IntN(4) == 0 {
			v := []string{"x", "y", "10 / x"}[r.IntN(3)]
			return []string{
				fmt.Sprintf("%s %s %d", v, []string{"<", "<=", ">", ">=", "==", "!="}[r.IntN(6)], r.IntN(4)),
				fmt.Sprintf("%s in [%d, %d]", v, r.IntN(4), r.IntN(4)),
				"true", "false",
			}[min(r.IntN(12), 3)%4]
		}
		a, b := expr(depth-1), expr(depth-1)
		return []string{"(" + a + ") && (" + b + ")", "(" + a + ") || (" + b + ")", "!(" + a + ")", "(" + a + ") ? (" + b + ") : (" + expr(depth-1) + ")",
			"[x, y].all(e, e < 2 && (" + a + "))", "[x, y].exists(e, e < 2 || (" + a + "))"}[r.IntN(6)]
	}
	proved := 0
	for range 1500 {
		a := expr(2)
		b := []string{expr(2), "(" + a + ") || (" + expr(1) + ")", strings.Replace(a, "&&", "||", 1), strings.Replace(a, "< 2", "< 3", 1), strings.Replace(a, "1", "2", 1)}[r.IntN(5)]
		if a == b {
			continue
		}
		c := newComparer(0)
		pairs := 1
		if c.stronger([]*rule{{Rule: &syntax.Rule{Rule: a}}}, &rule{Rule: &syntax.Rule{Rule: b}}, &pairs) == nil {
			continue
		}
		proved++
		first, second := evaluateRule(t, env, a), evaluateRule(t, env, b)
		for x := range int64(5) {
			for y := range int64(5) {
				if first(x, y) && !second(x, y) {
					t.Fatalf("%s does not imply %s: x is %d, y is %d", a, b, x, y)
				}
			}
		}
	}
	if proved < 100 {
		t.Errorf("only %d proofs", proved)
	}
}

// evaluateRule returns whether an expression is true: an error is not.
func evaluateRule(t *testing.T, env *cel.Env, expr string) func(x, y int64) bool {
	ast, issues := env.Compile(expr)
	if issues.Err() != nil {
		t.Fatal(expr, issues.Err())
	}
	program, err := env.Program(ast)
	if err != nil {
		t.Fatal(err)
	}
	return func(x, y int64) bool {
		out, _, err := program.Eval(map[string]any{"x": x, "y": y})
		return err == nil && out == types.True
	}
}
