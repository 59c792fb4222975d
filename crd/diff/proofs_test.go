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

// proves reports whether a rule is found to imply another.
func proves(a, b string) bool {
	pairs := 1
	return newComparer(0).stronger([]*rule{{Rule: &syntax.Rule{Rule: a}}}, &rule{Rule: &syntax.Rule{Rule: b}}, &pairs) != nil
}

// TestComparisons has all pairs of comparisons with small constants. x may be a double,
// so values between the constants count. What holds is proven, except that a range
// excludes a value.
func TestComparisons(t *testing.T) {
	operators := []string{"<", "<=", ">", ">=", "==", "!="}
	holds := func(op int, x, y float64) bool {
		return []bool{x < y, x <= y, x > y, x >= y, x == y, x != y}[op]
	}
	for a := range operators {
		for b := range operators {
			for pair := range 9 {
				n, m := pair/3+1, pair%3+1
				want := operators[b] != "!=" || operators[a] == "==" || operators[a] == "!="
				for x := 0.0; x < 5; x += 0.5 {
					want = want && (!holds(a, x, float64(n)) || holds(b, x, float64(m)))
				}
				first, second := fmt.Sprintf("x %s %d", operators[a], n), fmt.Sprintf("x %s %d", operators[b], m)
				if got := proves(first, second); got != want {
					t.Errorf("%s implies %s: %t, expected %t", first, second, got, want)
				}
			}
		}
	}
}

// Only so many rules are parsed, and so many pairs compared. Nothing is proven about others.
func TestParsedRules(t *testing.T) {
	for pairs, want := range []bool{false, true} {
		if got := newComparer(0).stronger([]*rule{{Rule: &syntax.Rule{Rule: "a && b"}}}, &rule{Rule: &syntax.Rule{Rule: "a"}}, &pairs) != nil; got != want {
			t.Errorf("of %d pairs: %t", pairs, got)
		}
	}
	for parsed, want := range []bool{false, false, true, true} {
		c := newComparer(0)
		c.parsed = parsed
		pairs := 1
		if got := c.stronger([]*rule{{Rule: &syntax.Rule{Rule: "a && b"}}}, &rule{Rule: &syntax.Rule{Rule: "a"}}, &pairs) != nil; got != want {
			t.Errorf("of %d rules: %t", parsed, got)
		}
	}
	// A rule counts once, also if it does not parse.
	c := newComparer(0)
	for _, text := range []string{"a", "a &&"} {
		r, before := &rule{Rule: &syntax.Rule{Rule: text}}, c.parsed
		if first := c.tree(r); c.tree(r) != first || c.parsed != before-1 {
			t.Errorf("%s: %d of %d are left", text, c.parsed, before)
		}
	}
}

// A place takes as many steps as it has parts in both CRDs.
func TestStepsOfPlaces(t *testing.T) {
	c := newComparer(0)
	before := c.steps
	v := c.framed(part{s: &schema{Type: "string"}}, nil, false, false)
	more := c.under(c.under(v, part{s: &schema{}}), part{s: &schema{}})
	v.own = false // so that what follows is compared
	c.compare(v, more, nil, around{})
	c.compare(v, v, nil, around{})
	if first := before - c.steps; first != 1+3+3*1+1*3+1+1+1+1 {
		t.Errorf("%d steps", first)
	}
}

// The digest of a schema is made once: trees that share schemas take linear time.
func TestDigestsAreKept(t *testing.T) {
	c := newComparer(0)
	shared := &schema{Type: "string"}
	first := c.digest(shared)
	shared.Type = "integer"
	if c.digest(shared) != first || newComparer(0).digest(shared) == first {
		t.Error("the digest is made again")
	}
}

// TestImplications has what must be proven, and what does not hold.
func TestImplications(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{"a && b", "a", true}, {"a && b", "b", true}, {"a && b", "b && a", true}, {"a", "a && b", false}, {"a", "b && a", false}, {"a && b", "c", false},
		{"a", "a || b", true}, {"b", "a || b", true}, {"a || b", "b || a", true}, {"a || b", "a", false}, {"a || b", "b", false}, {"c", "a || b", false},
		{"!(a || b)", "!a", true}, {"!a", "!(a && b)", true}, {"!a", "!(a || b)", false}, {"!(a && b)", "!a", false}, {"!a", "a", false}, {"a", "!a", false}, {"!a", "-a", false},
		{"c ? a : b", "c ? (a || d) : b", true}, {"c ? a : b", "c ? a : (b || d)", true}, {"c ? a : b", "d ? a : b", false},
		{"c ? (a || d) : b", "c ? a : b", false}, {"c ? a : (b || d)", "c ? a : b", false}, {"c ? a : b", "c || a", false},
		{"l.all(e, e < 2)", "l.all(e, e < 3)", true}, {"l.exists(e, e < 2)", "l.exists(e, e < 3)", true},
		{"l.all(e, e < 3)", "l.all(e, e < 2)", false}, {"l.all(e, e < 2)", "m.all(e, e < 3)", false}, {"l.all(e, e < 2)", "l.all(f, e < 3)", false},
		{"l.all(e, e < 2)", "l.exists(e, e < 3)", false}, {"l.exists(e, e < 2)", "l.all(e, e < 3)", false},
		{"l.all(e, f, e < 2)", "l.all(e, f, e < 3)", false}, {"l.all(e, e < 2)", "l.all(e, f, e < 3)", false}, {"l.all(e, f, e < 2)", "l.all(e, e < 3)", false},
		{"false", "a", true}, {"a", "true", true}, {"true", "a", false}, {"a", "false", false}, {"a", "b", false},
		{"x == 1", "x in [2, 1]", true}, {"x == 3", "x in [2, 1]", false}, {"x < 1", "x in [2, 1]", false}, {"x == 1", "y in [1]", false}, {"x == 1", "x in l", false},
		// The other members of a list must not fail.
		{"x == 1", "x in [1, y]", false}, {"x in [1]", "x in [1, y.z]", false}, {"x == y", "x in [1, y]", true}, {"x in [y, z]", "x in [z, 1, y]", true},
		{"x == y", "x in [?y]", false}, {"x in [?y]", "x in [y]", false}, {"x in [y]", "x in [?y]", false},
		{"x in [1, 2]", "x in [3, 2, 1]", true}, {"x in [1, 4]", "x in [3, 2, 1]", false}, {"x in l", "x in [1]", false}, {"x in [1]", "x in l", false},
		{"x < 1", "y < 2", false}, {"x < y", "x < 2", false}, {"x < 1", "x < y", false}, {"x < '1'", "x < '2'", false}, {"x < 1.0", "x < 2", false}, {"x < 1", "x < 2.0", false},
		// Formatting makes no difference, and everything else does.
		{"f(x,1)", "f( x, 1 )", true}, {"x.f(1)", "f(x, 1)", false}, {"has(x.y)", "x.y", false}, {"x.y", "x.z", false}, {"f(1)", "f('1')", false}, {"f(1)", "f(1u)", false},
		{"f('a', 'b')", `f('a:"string" b')`, false}, {"f('a', 'b')", `f('a" string:"b')`, false},
		{"f([1])", "f([ 1 ])", true}, {"f([1])", "f([2])", false}, {"f([x])", "f([?x])", false}, {"f([x, ?y])", "f([?x, y])", false},
		{"f({'a': 1})", "f({ 'a':1 })", true}, {"f({'a': 1})", "f({'a': 2})", false}, {"f({'a': 1})", "f({'b': 1})", false}, {"f({'a': x})", "f({?'a': x})", false},
		{"f(T{a: 1})", "f(T{ a:1 })", true}, {"f(T{a: 1})", "f(U{a: 1})", false}, {"f(T{a: 1})", "f(T{b: 1})", false}, {"f(T{a: 1})", "f(T{a: 2})", false}, {"f(T{a: x})", "f(T{?a: x})", false},
		{"a &&", "a", false}, {"a", "a ||", false},
		{strings.Repeat("a && ", 4000) + "a", "b", false},
		{strings.Repeat("a && ", 100) + "b", "b", true}, {"x in []", "x in l", true},
	} {
		if got := proves(c.a, c.b); got != c.want {
			t.Errorf("%.80s implies %s: %t", c.a, c.b, got)
		}
	}
}

// TestContainsClasses has patterns that only some runes tell apart: the ends of classes,
// other cases of a letter, the runes around the surrogates, the last one.
func TestContainsClasses(t *testing.T) {
	for _, c := range []struct {
		small, large string
		want         answer
		example      string
	}{
		{"^[b-y]$", "^[b-x]$", refuted, "y"},
		{"^[b-y]$", "^[c-y]$", refuted, "b"},
		{"^[b-y]$", "^[b-y]$", proven, ""},
		{"^[bdf]$", "^[bd]$", refuted, "f"},
		{"^[bdfh-j]$", "^[bdfh-i]$", refuted, "j"},
		{"^[bdfh-j]$", "^[bdf]$", refuted, "h"},
		{"^(?i:k)$", "^[kK]$", refuted, "\u212a"}, // the sign for kelvin
		{"^(?i:k)$", "^[kK\u212a]$", proven, ""},
		{"^[\\x{d000}-\\x{e000}]$", "^[\\x{d000}-\\x{d7ff}]$", refuted, "\ue000"},
		{"^[\\x{d000}-\\x{dfff}]$", "^[\\x{d000}-\\x{d7ff}]$", proven, ""}, // no text has surrogates
		{"^[a-\\x{10ffff}]$", "^[a-\\x{10fffe}]$", refuted, "\U0010ffff"},
		{"(?s)^.$", "^.$", refuted, "\n"},
		{"a\\b", "a\\b", proven, ""},
		{"a", "a\\b", refuted, "a0"},
		{"a", "^a", refuted, "\x00a"},
		{"^a", "a", proven, ""},
		{separate(115), separate(115) + "$", proven, ""},
		{separate(130), separate(130) + "$", unknown, ""},           // too many classes
		{"^[" + strings.Repeat("a", 2044) + "]", "^a", proven, ""},  // as long as a pattern may be
		{"^[" + strings.Repeat("a", 2046) + "]", "^a", unknown, ""}, // too long
		{"^a", "^[" + strings.Repeat("a", 2046) + "]", unknown, ""},
		{"(", "a", unknown, ""},
		{"^(a*b*)*$", "^[ab]*$", proven, ""},                                                   // instructions that lead back to themselves
		{"^a[ab]*a[ab]{14}$", "^a", proven, ""},                                                // what follows does not matter, however much there is
		{"^[a-i]{9}$", "a.{3}a|b.{3}b|c.{3}c|d.{3}d|e.{3}e|f.{3}f|g.{3}g|h.{3}h", unknown, ""}, // too many pairs of states
	} {
		got, example := newComparer(0).contains(c.small, c.large)
		if got != c.want || example != c.example {
			t.Errorf("%q in %q: %d %q, expected %d %q", c.small, c.large, got, example, c.want, c.example)
		}
	}
}

// separate is a pattern of n runes with gaps between them.
func separate(n int) string {
	var runes []rune
	for i := range n {
		runes = append(runes, rune(0x1000+2*i))
	}
	return "^[" + string(runes) + "]$"
}

// All comparisons of patterns together may take only so many steps. An answer that is known
// takes none.
func TestStepsOfPatterns(t *testing.T) {
	const small, large = "^a$", "^[ab]c?$"
	c := newComparer(0)
	c.contains(small, large)
	a, _ := compileProgram(small)
	b, _ := compileProgram(large)
	first, each := maxAutomata-c.automata, fixedCost+len(a.prog.Inst)+len(b.prog.Inst)
	// There are two pairs of states, each with itself and the classes that begin with these.
	if runes := len([]rune("\x00\n\x0b0:ABCD[_`abcd{\ue000")); first != 2*(1+runes)*each {
		t.Errorf("the first comparison takes %d steps of %d, %d", first/each, each, first%each)
	}
	c.contains(small, large)
	if again := maxAutomata - c.automata; again != first {
		t.Errorf("the same comparison takes %d steps more", again-first)
	}
	for _, x := range []struct {
		left int
		want answer
	}{{first, proven}, {first - 1, unknown}, {0, unknown}} {
		c := newComparer(0)
		c.automata = x.left
		if got, _ := c.contains(small, large); got != x.want {
			t.Errorf("with %d of %d steps: %d", x.left, first, got)
		}
	}
	// Without steps, nothing is known, also about the empty text.
	c.automata = -1
	if got, _ := c.contains("", "a"); got != unknown {
		t.Errorf("without steps: %d", got)
	}
}
