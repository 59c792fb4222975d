package expression

import (
	"math/rand/v2"
	"strings"
	"sync"

	"github.com/google/cel-go/common/types"
)

// A generator makes one case.
type generator struct {
	*rand.Rand
	types map[string]*shape // objects by the names of their types
	scope []variable
	uses  []Use
	loops int  // comprehensions around what is being made
	fine  bool // nothing is spoiled
}

// A variable is what an expression can name.
type variable struct {
	name string
	t    *types.Type
}

// A Use is an overload, macro or piece of syntax in an expression.
type Use struct {
	Row     string // one of Rows
	Looped  bool   // inside a comprehension
	Message bool   // in a messageExpression
}

func (g *generator) one(n int) bool                { return g.IntN(n) == 0 }
func (g *generator) of(list ...string) string      { return list[g.IntN(len(list))] }
func (g *generator) pick(list []string) string     { return list[g.IntN(len(list))] }
func (g *generator) use(row string)                { g.uses = append(g.uses, Use{Row: row, Looped: g.loops > 0}) }
func (g *generator) isObject(t *types.Type) *shape { return g.types[t.TypeName()] }

// expr makes an expression of a type.
func (g *generator) expr(t *types.Type, depth int) string {
	if !g.fine && g.one(160) {
		return g.spoiled(t, depth)
	}
	if depth <= 0 {
		return g.leaf(t)
	}
	if t == types.BoolType && g.one(10) {
		if text, ok := g.algebra(); ok {
			return text
		}
	}
	if t == types.BoolType && g.one(20) {
		return g.partial()
	}
	switch n := g.IntN(20); {
	case n < 5:
		return g.leaf(t)
	case n < 10:
		if text, ok := g.macro(t, depth); ok {
			return text
		}
	}
	return g.call(t, depth)
}

var returns sync.Map // type as text to []*signature

func (g *generator) call(t *types.Type, depth int) string {
	if g.isObject(t) != nil && g.one(2) {
		return g.leaf(t)
	}
	list, ok := returns.Load(t.String())
	if !ok {
		list, _ = returns.LoadOrStore(t.String(), returning(t))
	}
	choices := list.([]*signature)
	if len(choices) == 0 {
		return g.leaf(t)
	}
	s := choices[g.IntN(len(choices))]
	b := bindings{}
	unify(s.result, t, b)
	return g.apply(s, b, depth)
}

// apply makes a call of an overload.
func (g *generator) apply(s *signature, b bindings, depth int) string {
	before := len(g.uses)
	args := make([]string, len(s.args))
	for i, declared := range s.args {
		t := b.apply(declared, g.free)
		if text, ok := g.special(s, i, args); ok {
			args[i] = text
			continue
		}
		args[i] = g.expr(t, g.argument(t, i, depth))
	}
	if s.id == "string_format" {
		args[0], args[1] = g.formatted(depth)
	}
	g.uses = append(g.uses, Use{})
	copy(g.uses[before+1:], g.uses[before:])
	g.uses[before] = Use{Row: s.id, Looped: g.loops > 0}
	return render(s, args)
}

// argument is the depth of an argument. The size of most results is unknown to the estimate of cost, so that what is
// called on a text or list that was calculated is refused in most cases: most of these are paths and literals.
func (g *generator) argument(t *types.Type, i, depth int) int {
	switch t.Kind() {
	case types.StringKind, types.BytesKind, types.ListKind, types.MapKind, types.DynKind:
		if !g.one(6) {
			return 0
		}
	}
	if i > 0 && g.one(2) {
		return depth - 2
	}
	return depth - 1
}

// render writes a call as its function is written.
func render(s *signature, args []string) string {
	switch s.function {
	case "!_":
		return "!(" + args[0] + ")"
	case "-_":
		return "(-(" + args[0] + "))"
	case "@in":
		return "(" + args[0] + " in " + args[1] + ")"
	case "_?_:_":
		return "(" + args[0] + " ? " + args[1] + " : " + args[2] + ")"
	case "_[_]":
		return args[0] + "[" + args[1] + "]"
	case "_[?_]":
		return args[0] + "[?" + args[1] + "]"
	}
	if op, ok := strings.CutPrefix(s.function, "_"); ok {
		return "(" + args[0] + " " + strings.TrimSuffix(op, "_") + " " + args[1] + ")"
	}
	if s.member {
		return args[0] + "." + s.function + "(" + strings.Join(args[1:], ", ") + ")"
	}
	return s.function + "(" + strings.Join(args, ", ") + ")"
}

// free chooses the type of a type parameter: one that something in scope has, or any.
func (g *generator) free() *types.Type {
	if paths := g.paths(); len(paths) > 0 && !g.one(3) {
		p := paths[g.IntN(len(paths))]
		if p.t.Kind() == types.ListKind && g.one(2) {
			return p.t.Parameters()[0]
		}
		return p.t
	}
	return g.plain()
}

var plainTypes = []*types.Type{
	types.BoolType, types.IntType, types.IntType, types.UintType, types.DoubleType, types.StringType, types.StringType, types.BytesType, types.TimestampType, types.DurationType,
	types.NewListType(types.IntType), types.NewListType(types.StringType), types.NewMapType(types.StringType, types.IntType), types.NewOptionalType(types.StringType), types.DynType,
	types.NewListType(types.NewListType(types.IntType)), types.NewListType(types.DurationType), types.NewMapType(types.IntType, types.StringType),
}

func (g *generator) plain() *types.Type { return plainTypes[g.IntN(len(plainTypes))] }

// paths lists what is in scope, with the fields of objects.
func (g *generator) paths() []variable {
	var list []variable
	for _, v := range g.scope {
		list = g.extend(list, v, 3)
	}
	return list
}

func (g *generator) extend(list []variable, v variable, depth int) []variable {
	list = append(list, v)
	s := g.isObject(v.t)
	if s == nil || depth == 0 {
		return list
	}
	for _, f := range s.steps() {
		list = g.extend(list, variable{v.name + "." + f.name, f.shape.cel}, depth-1)
	}
	return list
}

// path finds something in scope that has a type.
func (g *generator) path(t *types.Type) (string, bool) {
	var fit []string
	for _, p := range g.paths() {
		switch {
		case same(p.t, t):
			fit = append(fit, p.name)
		case p.t.Kind() == types.ListKind && same(p.t.Parameters()[0], t):
			fit = append(fit, p.name+"["+g.of("0", "0", "0", "1", "size("+p.name+") - 1")+"]")
		case p.t.Kind() == types.MapKind && p.t.Parameters()[0] == types.StringType && same(p.t.Parameters()[1], t):
			fit = append(fit, p.name+"["+quote(g.pick(keys))+"]")
		case isOptional(t):
			if s := g.isObject(p.t); s != nil {
				for _, f := range s.steps() {
					if same(f.shape.cel, t.Parameters()[0]) {
						fit = append(fit, p.name+".?"+f.name)
					}
				}
			}
		}
	}
	if len(fit) == 0 {
		return "", false
	}
	text := fit[g.IntN(len(fit))]
	switch {
	case strings.Contains(text, ".?"):
		g.use("optional select")
	case strings.Contains(text, "."):
		g.use("select")
	}
	return text, true
}

// leaf makes the smallest expressions: paths and literals.
func (g *generator) leaf(t *types.Type) string {
	if !g.one(3) {
		if text, ok := g.path(t); ok {
			return text
		}
	}
	if text, ok := g.literal(t, 1); ok {
		return text
	}
	if text, ok := g.path(t); ok {
		return text
	}
	return "dyn(null)" // an object, and there is none in scope
}

// with makes an expression in which more variables are in scope. A variable hides others of its name.
func (g *generator) with(more []variable, loop bool, inside func()) {
	before := g.scope
	g.scope = nil
	for _, v := range before {
		hidden := false
		for _, m := range more {
			hidden = hidden || m.name == v.name
		}
		if !hidden {
			g.scope = append(g.scope, v)
		}
	}
	g.scope = append(g.scope, more...)
	if loop {
		g.loops++
	}
	inside()
	if loop {
		g.loops--
	}
	g.scope = before
}
