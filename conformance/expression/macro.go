package expression

import (
	"github.com/google/cel-go/common/types"
)

// A source is what a macro iterates over.
type source struct {
	text       string
	list       bool
	key, value *types.Type // of a map; of a list the index and the items
}

// source makes a list or map, one in scope if there is one.
func (g *generator) source(depth int, fits func(*types.Type) bool) (source, bool) {
	var fit []variable
	for _, p := range g.paths() {
		if (p.t.Kind() == types.ListKind || p.t.Kind() == types.MapKind) && fits(p.t) {
			fit = append(fit, p)
		}
	}
	var v variable
	switch {
	case len(fit) > 0 && !g.one(4):
		v = fit[g.IntN(len(fit))]
		if len(v.name) > 8 {
			g.use("select")
		}
	default:
		t := types.NewListType(plainTypes[g.IntN(10)])
		if g.one(4) {
			t = types.NewMapType(types.StringType, plainTypes[g.IntN(10)])
		}
		if !fits(t) {
			return source{}, false
		}
		d := 0
		if g.one(8) {
			d = min(depth-1, 2)
		}
		v = variable{g.expr(t, d), t}
	}
	if v.t.Kind() == types.ListKind {
		return source{v.name, true, types.IntType, v.t.Parameters()[0]}, true
	}
	return source{v.name, false, v.t.Parameters()[0], v.t.Parameters()[1]}, true
}

// single is the type of the only variable of a macro: items of a list, keys of a map.
func (s *source) single() *types.Type {
	if s.list {
		return s.value
	}
	return s.key
}

func anything(*types.Type) bool { return true }

// names of variables. Nested macros hide the variables of outer ones now and then, and once in a while self.
func (g *generator) name() string {
	if g.one(150) {
		return "self"
	}
	return g.of("x", "y", "z", "i", "k", "v", "item")
}

func (g *generator) names() (string, string) {
	a, b := g.name(), g.name()
	for b == a {
		b = g.name()
	}
	return a, b
}

// macro makes an expression of a type with a macro, if there is one for the type.
func (g *generator) macro(t *types.Type, depth int) (string, bool) {
	switch t.Kind() {
	case types.BoolKind:
		return g.test(depth)
	case types.ListKind:
		return g.listed(t.Parameters()[0], depth)
	case types.MapKind:
		return g.mapped(t, depth)
	}
	if isOptional(t) {
		return g.optional(t, depth)
	}
	return "", false
}

// body makes an expression inside a comprehension.
func (g *generator) body(t *types.Type, depth int, vars ...variable) (text string) {
	g.with(vars, true, func() { text = g.expr(t, depth-1) })
	return text
}

func (g *generator) test(depth int) (string, bool) {
	if g.one(4) {
		return g.has()
	}
	if g.one(8) {
		return g.madeTest(depth)
	}
	s, ok := g.source(depth, anything)
	if !ok {
		return "", false
	}
	if g.one(2) {
		x, name := g.name(), g.of("all", "exists", "exists_one")
		g.use("macro " + name)
		return s.text + "." + name + "(" + x + ", " + g.body(types.BoolType, depth, variable{x, s.single()}) + ")", true
	}
	name := g.of("all", "exists", "existsOne", "exists_one")
	g.use("macro " + name + " of pairs")
	x, y := g.names()
	return s.text + "." + name + "(" + x + ", " + y + ", " + g.body(types.BoolType, depth, variable{x, s.key}, variable{y, s.value}) + ")", true
}

// has tests a field, with what it guards or without.
func (g *generator) has() (string, bool) {
	var list []string
	for _, p := range g.paths() {
		if s := g.isObject(p.t); s != nil {
			for _, f := range s.steps() {
				list = append(list, p.name+"."+f.name)
			}
		}
	}
	if len(list) == 0 {
		return "", false
	}
	g.use("macro has")
	return "has(" + list[g.IntN(len(list))] + ")", true
}

func (g *generator) listed(item *types.Type, depth int) (string, bool) {
	switch g.IntN(7) {
	case 0, 1:
		s, ok := g.source(depth, anything)
		if !ok {
			return "", false
		}
		x := g.name()
		v := variable{x, s.single()}
		if g.one(2) {
			g.use("macro map")
			return s.text + ".map(" + x + ", " + g.body(item, depth, v) + ")", true
		}
		g.use("macro map filtered")
		return s.text + ".map(" + x + ", " + g.body(types.BoolType, depth-1, v) + ", " + g.body(item, depth, v) + ")", true
	case 2, 3:
		s, ok := g.source(depth, func(t *types.Type) bool {
			return same(t.Parameters()[0], item)
		})
		if !ok {
			return "", false
		}
		g.use("macro filter")
		x := g.name()
		return s.text + ".filter(" + x + ", " + g.body(types.BoolType, depth, variable{x, s.single()}) + ")", true
	case 4:
		s, ok := g.source(depth, func(t *types.Type) bool { return t.Kind() == types.ListKind && same(t.Parameters()[0], item) })
		if !ok {
			return "", false
		}
		g.use("macro sortBy")
		x := g.name()
		return s.text + ".sortBy(" + x + ", " + g.body(plainTypes[g.IntN(10)], depth-1, variable{x, s.value}) + ")", true
	}
	s, ok := g.source(depth, anything)
	if !ok {
		return "", false
	}
	x, y := g.names()
	a, b := variable{x, s.key}, variable{y, s.value}
	if g.one(2) {
		g.use("macro transformList")
		return s.text + ".transformList(" + x + ", " + y + ", " + g.body(item, depth, a, b) + ")", true
	}
	g.use("macro transformList filtered")
	return s.text + ".transformList(" + x + ", " + y + ", " + g.body(types.BoolType, depth-1, a, b) + ", " + g.body(item, depth, a, b) + ")", true
}

func (g *generator) mapped(t *types.Type, depth int) (string, bool) {
	key, value := t.Parameters()[0], t.Parameters()[1]
	entry := g.one(2)
	s, ok := g.source(depth, func(t *types.Type) bool {
		return entry || t.Kind() == types.MapKind && same(t.Parameters()[0], key) || t.Kind() == types.ListKind && key == types.IntType
	})
	if !ok {
		return "", false
	}
	x, y := g.names()
	a, b := variable{x, s.key}, variable{y, s.value}
	filter, suffix := "", ""
	if g.one(2) {
		suffix = " filtered"
		filter = g.body(types.BoolType, depth-1, a, b) + ", "
	}
	if entry {
		g.use("macro transformMapEntry" + suffix)
		return s.text + ".transformMapEntry(" + x + ", " + y + ", " + filter + "{" + g.body(key, depth-1, a, b) + ": " + g.body(value, depth, a, b) + "})", true
	}
	g.use("macro transformMap" + suffix)
	return s.text + ".transformMap(" + x + ", " + y + ", " + filter + g.body(value, depth, a, b) + ")", true
}

// madeTest makes a bool about a map or a sorted list that a macro makes: few overloads have an argument of such a type.
func (g *generator) madeTest(depth int) (string, bool) {
	if g.one(3) {
		s, ok := g.source(depth, func(t *types.Type) bool { return t.Kind() == types.ListKind })
		if !ok {
			return "", false
		}
		g.use("macro sortBy")
		g.use("list_size")
		x := g.name()
		return "(" + s.text + ".sortBy(" + x + ", " + g.body(plainTypes[g.IntN(10)], depth, variable{x, s.value}) + ").size() " + g.of("==", "<", ">") + " " + g.of("0", "1", "2") + ")", true
	}
	t := types.NewMapType([]*types.Type{types.StringType, types.IntType}[g.IntN(2)], plainTypes[g.IntN(10)])
	text, ok := g.mapped(t, depth)
	if !ok {
		return "", false
	}
	if g.one(2) {
		g.use("map_size")
		return "(" + text + ".size() " + g.of("==", "<", ">") + " " + g.of("0", "1", "2") + ")", true
	}
	g.use("equals")
	return "(" + text + g.of(" == ", " != ") + g.leaf(t) + ")", true
}

func (g *generator) optional(t *types.Type, depth int) (string, bool) {
	inner := g.free()
	from := g.expr(types.NewOptionalType(inner), depth-1)
	x := g.name()
	var text string
	if g.one(2) {
		g.use("macro optMap")
		g.with([]variable{{x, inner}}, true, func() { text = g.expr(t.Parameters()[0], depth-1) })
		return from + ".optMap(" + x + ", " + text + ")", true
	}
	g.use("macro optFlatMap")
	g.with([]variable{{x, inner}}, true, func() { text = g.expr(t, depth-1) })
	return from + ".optFlatMap(" + x + ", " + text + ")", true
}
