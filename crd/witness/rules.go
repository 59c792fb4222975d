package witness

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
)

// facts are what a rule looks at.
type facts struct {
	paths    [][]Step // places, from the root of the object
	literals []string
	bounds   parts // its numbers, as limits
}

// parser reads expressions without expanding macros.
var parser = sync.OnceValues(func() (*cel.Env, error) {
	return cel.NewCustomEnv(cel.OptionalTypes(), cel.ClearMacros(), cel.EnableIdentifierEscapeSyntax(), cel.ParserRecursionLimit(200))
})

const maxRule = 1 << 14

// read returns what a rule at a place looks at. kind returns the type of a place.
func read(rule string, self []Step, kind func([]Step) string) facts {
	r := reader{kind: kind, names: map[string][]Step{"self": self, "oldSelf": self}}
	env, err := parser()
	if err != nil || len(rule) > maxRule {
		return r.facts
	}
	parsed, issues := env.Parse(rule)
	if issues.Err() != nil {
		return r.facts
	}
	r.expr(parsed.NativeRep().Expr())
	return r.facts
}

type reader struct {
	facts
	kind  func([]Step) string
	names map[string][]Step
}

// expr walks an expression and returns the place that it denotes, if it does.
func (r *reader) expr(e ast.Expr) ([]Step, bool) {
	switch e.Kind() {
	case ast.LiteralKind:
		r.literal(e)
	case ast.IdentKind:
		path, ok := r.names[e.AsIdent()]
		if ok {
			r.note(path)
		}
		return path, ok
	case ast.SelectKind:
		return r.sub(e.AsSelect().Operand(), Step{Name: unescape(e.AsSelect().FieldName())})
	case ast.CallKind:
		return r.call(e.AsCall())
	case ast.ListKind:
		for _, x := range e.AsList().Elements() {
			r.expr(x)
		}
	case ast.MapKind:
		for _, entry := range e.AsMap().Entries() {
			r.expr(entry.AsMapEntry().Key())
			r.expr(entry.AsMapEntry().Value())
		}
	}
	return nil, false
}

// sub returns a place within another.
func (r *reader) sub(of ast.Expr, step Step) ([]Step, bool) {
	path, ok := r.expr(of)
	if !ok {
		return nil, false
	}
	if step.Into == Field && r.kind(path) == "object" && r.kind(append(slices.Clip(path), step)) == "" {
		if v := append(slices.Clip(path), Step{Into: Value}); r.kind(v) != "" {
			step = Step{Into: Value}
		}
	}
	path = append(slices.Clip(path), step)
	r.note(path)
	return path, true
}

func (r *reader) call(c ast.CallExpr) ([]Step, bool) {
	args := c.Args()
	name := c.FunctionName()
	switch {
	case (name == operators.Index || name == operators.OptIndex) && len(args) == 2:
		switch key := args[1]; {
		case key.Kind() == ast.LiteralKind && key.AsLiteral().Type() == types.StringType:
			return r.sub(args[0], Step{Name: fmt.Sprint(key.AsLiteral().Value())})
		case key.Kind() == ast.LiteralKind:
			return r.sub(args[0], Step{Into: Item})
		}
		r.expr(args[1])
		path, ok := r.expr(args[0])
		if !ok {
			return nil, false
		}
		into := Value
		if r.kind(path) == "array" {
			into = Item
		}
		path = append(slices.Clip(path), Step{Into: into})
		r.note(path)
		return path, true
	case name == operators.OptSelect && len(args) == 2 && args[1].Kind() == ast.LiteralKind:
		return r.sub(args[0], Step{Name: fmt.Sprint(args[1].AsLiteral().Value())})
	case c.IsMemberFunction() && len(args) >= 2 && args[0].Kind() == ast.IdentKind && slices.Contains(macros, name):
		return r.macro(c)
	}
	if c.IsMemberFunction() {
		r.expr(c.Target())
	}
	for _, a := range args {
		r.expr(a)
	}
	return nil, false
}

var macros = []string{"all", "exists", "exists_one", "existsOne", "map", "filter"}

// macro walks a macro with its variable bound to the items.
func (r *reader) macro(c ast.CallExpr) ([]Step, bool) {
	over, ok := r.expr(c.Target())
	variable := c.Args()[0].AsIdent()
	outer, shadowed := r.names[variable]
	delete(r.names, variable)
	if ok && r.kind(over) == "array" {
		r.names[variable] = append(slices.Clip(over), Step{Into: Item})
	}
	for _, a := range c.Args()[1:] {
		r.expr(a)
	}
	delete(r.names, variable)
	if shadowed {
		r.names[variable] = outer
	}
	if c.FunctionName() == "filter" {
		return over, ok
	}
	return nil, false
}

// note keeps a place; one that only leads to another one comes after it.
func (r *reader) note(path []Step) {
	const most = 40
	if len(r.paths) < most && !slices.ContainsFunc(r.paths, func(p []Step) bool { return slices.Equal(p, path) }) {
		r.paths = slices.Insert(r.paths, 0, path)
	}
	slices.SortStableFunc(r.paths, func(a, b []Step) int { return len(b) - len(a) })
}

func (r *reader) literal(e ast.Expr) {
	const most = 40
	if len(r.literals) >= most {
		return
	}
	text := fmt.Sprint(e.AsLiteral().Value())
	r.literals = append(r.literals, text)
	var f float64
	switch v := e.AsLiteral().(type) {
	case types.Int:
		f = float64(v)
	case types.Double:
		f = float64(v)
	default:
		return
	}
	bound := &schema{Maximum: &f}
	if n := int64(f); n >= 0 && n < maxCount {
		bound.MaxItems, bound.MaxProperties, bound.MaxLength = &n, &n, &n
	} else if n >= 0 && n < maxText {
		bound.MaxLength = &n
	}
	r.bounds = append(r.bounds, bound)
}

// unescape returns the name of a property that an identifier stands for.
func unescape(name string) string {
	if !strings.Contains(name, "__") {
		return name
	}
	if strings.HasPrefix(name, "__") && strings.HasSuffix(name, "__") && len(name) > 4 {
		return name[2 : len(name)-2]
	}
	return strings.NewReplacer("__underscores__", "__", "__dot__", ".", "__dash__", "-", "__slash__", "/").Replace(name)
}
