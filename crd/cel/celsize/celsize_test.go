package celsize

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/ext"
)

func parse(tb testing.TB, text string) *cel.Ast {
	tb.Helper()
	env, err := cel.NewEnv(cel.OptionalTypes(), ext.TwoVarComprehensions())
	if err != nil {
		tb.Fatal(err)
	}
	parsed, issues := env.Parse(text)
	if issues.Err() != nil {
		tb.Skip(issues.Err()) // of fuzzing only
	}
	return parsed
}

// nested is comprehensions in each other, each over a list of a map of the
// variable around it.
func nested(depth int) string {
	text := "true"
	for i := depth; i > 0; i-- {
		text = fmt.Sprintf("[{a%d: a%d}].all(a%d, %s)", i-1, i-1, i, text)
	}
	return text
}

func TestTooLarge(t *testing.T) {
	for text, want := range map[string]bool{
		"self.a.all(x, x.b.exists(y, y == x.c))":       false,
		`{"a": [1, 2], "b": [{"c": "d"}]}.size() == 2`: false,
		nested(3):  false,
		nested(30): true,
		strings.Repeat("[", 40) + "1" + strings.Repeat("]", 40) + " == []":  false,
		strings.Repeat("[", 200) + "1" + strings.Repeat("]", 200) + "== []": true,
		"self.m.transformMap(k, v, {k: v}).size() == 1":                     false,
	} {
		if got := new(Bound).TooLarge(parse(t, text).NativeRep().Expr()); got != want {
			t.Errorf("%.80s: %t", text, got)
		}
	}
}

// lists puts an expression into n lists.
func lists(n int, text string) string {
	return strings.Repeat("[", n) + text + strings.Repeat("]", n)
}

// Each name in a type counts: lists around an expression make it too large as soon as
// there are more than Max names with those of the lists.
func TestNamesOfTypes(t *testing.T) {
	b := &Bound{}
	b.Declare("pair", types.NewMapType(types.StringType, types.NewListType(types.IntType)))
	b.Declare("unknown", nil)
	for _, c := range []struct {
		text  string
		names int
	}{
		{"1", 1}, {"self", 1}, {"self.a.b", 1}, {"[]", 2}, {"[1]", 2}, {"[1, [2]]", 3}, {"[[1], 2]", 3}, {"[1].a", 2},
		{"{}", 3}, {"{1: 2}", 3}, {"{1: [2]}", 4}, {"{[1]: 2}", 4}, {"{[1]: [2], 3: 4}", 5}, {"{1: 2, [3]: [4]}", 5},
		{"T{a: 1}", 1}, {"variables.pair", 4}, {"variables.unknown", 1}, {"variables.other", 1}, {"self.pair", 1},
		// Operators return one of their operands, functions something of all of them.
		{"[1] + [[2]]", 3}, {"[[1]] + [2]", 3}, {"-1", 1}, {"f()", 2}, {"f(1)", 2}, {"f([1])", 4}, {"f([1], {})", 7}, {"[1].f()", 4}, {"[1].f({})", 7},
		// A name is as large as what it goes through, and only in there.
		{"[[1]].map(x, x)", 4}, {"[[1]].map(x, [x])", 5}, {"[[1]].map(x, 1)", 2}, {"[[[1]].exists(x, true), x]", 2},
		{"{1: [2]}.transformList(k, v, v)", 5}, {"{1: [2]}.transformList(k, v, k)", 5}, {"[{1: [2]}.exists(k, v, true), k, v]", 2},
		{"self.m.transformMap(k, v, v)", 5}, {"self.m.transformMap(k, v, [1])", 7}, {"self.m.transformMap(k, v, [[1]].map(y, y) == [], v)", 5},
		{"[1].map(variables, variables.pair)", 3}, {"[[1].exists(variables, true), variables.pair]", 5},
	} {
		if b.TooLarge(parse(t, lists(Max-c.names, c.text)).NativeRep().Expr()) || !b.TooLarge(parse(t, lists(Max-c.names+1, c.text)).NativeRep().Expr()) {
			t.Errorf("%s has not %d names", c.text, c.names)
		}
	}
	// What is in an expression counts by itself.
	large := lists(Max, "1")
	for text, want := range map[string]bool{
		"T{a: " + large + "}": true, "T{a: 1, b: " + large + "}": true, large + ".exists(x, true)": true, "[1].exists(x, " + large + " == [])": true,
		"[" + lists(Max-1, "1") + ".exists(x, true)]": false,
	} {
		if got := b.TooLarge(parse(t, text).NativeRep().Expr()); got != want {
			t.Errorf("%.20s…%s: %t", text, text[max(len(text)-20, 0):], got)
		}
	}
}

func TestVariablesCount(t *testing.T) {
	b := &Bound{}
	pair := types.NewMapType(types.StringType, types.NewListType(types.IntType))
	for i := range 20 {
		name := fmt.Sprintf("v%d", i)
		b.Declare(name, pair)
		expression := parse(t, fmt.Sprintf("{variables.%s: variables.%s}", name, name)).NativeRep().Expr()
		large := b.TooLarge(expression)
		if want := sizeOf(pair)*2+1 > Max; large != want {
			t.Fatalf("a type of %d names, twice: %t", sizeOf(pair), large)
		}
		if large {
			return
		}
		pair = types.NewMapType(pair, pair)
	}
	t.Error("nothing is too large")
}

func FuzzTooLarge(f *testing.F) {
	for _, text := range []string{"self.a.all(x, x == 1)", nested(5), "{a: b}.map(k, [k, {k: k}])", "[?a, b]", "T{a: [1]}"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) < 10000 {
			new(Bound).TooLarge(parse(t, text).NativeRep().Expr())
		}
	})
}
