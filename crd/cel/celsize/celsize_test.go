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
