package lint

import (
	"slices"
	"strings"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
)

// facts are the keys of places that are known to be there, and with an
// exclamation mark those that are known not to be.
type facts map[string]bool

// everything follows from what is false. It has no members of its own.
var everything = facts{"": true}

func (f facts) all() bool { return f[""] }

func (f facts) unite(g facts) {
	for k := range g {
		f[k] = true
	}
}

func united(a, b facts) facts {
	switch {
	case a.all() || len(b) == 0:
		return a
	case b.all() || len(a) == 0:
		return b
	}
	u := make(facts, len(a)+len(b))
	u.unite(a)
	u.unite(b)
	return u
}

func common(a, b facts) facts {
	switch {
	case a.all():
		return b
	case b.all():
		return a
	}
	u := facts{}
	for k := range a {
		if b[k] {
			u[k] = true
		}
	}
	return u
}

// relation is the fact that of two places both are there or neither, or that
// just one is.
const relation = "\x00"

func related(a, b string, same bool) facts {
	if a == "" || b == "" {
		return nil
	}
	if !same {
		b = "!" + b
	}
	return facts{relation + a + relation + b: true}
}

// scope is what is known at a place of an expression.
type scope struct {
	parent  *scope
	demands demands // of all schemas
	known   facts
	pairs   map[string][]string // a place is there if one of these is so, which may begin with an exclamation mark
	vars    map[string]place
}

// maxPairs is how many relations of one place are considered.
const maxPairs = 16

func (s *scope) with(f facts) *scope {
	if len(f) == 0 {
		return s
	}
	in := &scope{parent: s, demands: s.demands, known: f}
	for k := range f {
		if pair := strings.Split(k, relation); len(pair) == 3 {
			a, b := pair[1], pair[2]
			in.relate(a, b)
			if c, negated := strings.CutPrefix(b, "!"); negated {
				in.relate(c, "!"+a)
			} else {
				in.relate(b, a)
			}
		}
	}
	return in
}

// relate notes that a is there if b is so.
func (s *scope) relate(a, b string) {
	if s.pairs == nil {
		s.pairs = map[string][]string{}
	}
	if len(s.pairs[a]) < maxPairs {
		s.pairs[a] = append(s.pairs[a], b)
	}
}

func (s *scope) bind(name string, p place) *scope {
	return &scope{parent: s, demands: s.demands, vars: map[string]place{name: p}}
}

func (s *scope) knows(key string) bool {
	if s.told(key) {
		return true
	}
	for at := s; at != nil; at = at.parent {
		if slices.ContainsFunc(at.pairs[key], s.told) {
			return true
		}
	}
	return false
}

// told reports whether key is among the facts themselves.
func (s *scope) told(key string) bool {
	for ; s != nil; s = s.parent {
		if s.known[key] || s.known.all() {
			return true
		}
	}
	return false
}

func (s *scope) variable(name string) place {
	for ; s != nil; s = s.parent {
		if p, ok := s.vars[name]; ok {
			return p
		}
	}
	return place{}
}

// holds returns what is known if e evaluates to value, without an error.
func (s *scope) holds(e ast.Expr, value bool) facts {
	switch e.Kind() {
	case ast.LiteralKind:
		if b, ok := literal[bool](e); ok && b != value {
			return everything
		}
	case ast.SelectKind:
		if e.AsSelect().IsTestOnly() {
			return s.presence(s.place(e.AsSelect().Operand()), e, value)
		}
	case ast.CallKind:
		if x, _ := presupposes(e, demand); x != nil && value {
			f := s.upTo(facts{}, x)
			if f = united(f, s.calls(e.AsCall(), value)); len(f) > 0 {
				return f
			}
		}
		return s.calls(e.AsCall(), value)
	}
	return nil
}

// presence returns what has() says.
func (s *scope) presence(operand place, e ast.Expr, value bool) facts {
	key := operand.child(e.AsSelect().FieldName()).key
	if key == "" {
		return nil
	}
	if !value {
		return facts{"!" + key: true}
	}
	return s.upTo(facts{key: true}, e.AsSelect().Operand())
}

// upTo adds everything on the way to e, which has been read.
func (s *scope) upTo(f facts, e ast.Expr) facts {
	for {
		if p := s.place(e); p.key != "" {
			f[p.key] = true
		}
		switch {
		case e.Kind() == ast.SelectKind:
			e = e.AsSelect().Operand()
		case e.Kind() == ast.CallKind && len(e.AsCall().Args()) == 2 && (e.AsCall().FunctionName() == operators.OptSelect || e.AsCall().FunctionName() == operators.Index):
			e = e.AsCall().Args()[0]
		default:
			return f
		}
	}
}

// calls returns what is known if a function returns value.
func (s *scope) calls(x ast.CallExpr, value bool) facts {
	args := x.Args()
	switch name := x.FunctionName(); {
	case name == operators.LogicalNot && len(args) == 1:
		return s.holds(args[0], !value)
	case (name == operators.LogicalAnd || name == operators.LogicalOr) && len(args) == 2:
		a, b := s.holds(args[0], value), s.holds(args[1], value)
		if (name == operators.LogicalAnd) == value {
			return united(a, b)
		}
		return common(a, b)
	case name == operators.Conditional && len(args) == 3:
		return common(
			united(s.holds(args[0], true), s.holds(args[1], value)),
			united(s.holds(args[0], false), s.holds(args[2], value)))
	case name == operators.In && len(args) == 2 && value:
		if key, ok := text(args[0]); ok {
			if p := s.place(args[1]); p.isMap() {
				return s.upTo(facts{p.entry(key).key: true}, args[1])
			}
		}
	case name == "hasValue" && x.IsMemberFunction():
		if p := s.place(x.Target()); value && p.key != "" {
			return s.upTo(facts{p.key: true}, x.Target())
		}
	case name == "orValue" && x.IsMemberFunction() && len(args) == 1:
		return s.instead(x, func(d any) bool { return d == any(!value) })
	case (name == operators.Equals || name == operators.NotEquals) && len(args) == 2:
		same := (name == operators.Equals) == value
		if a, b := s.question(args[0]), s.question(args[1]); a != "" && b != "" {
			return related(a, b, same)
		}
		if f := s.sized(args, same); f != nil {
			return f
		}
		for _, side := range [][2]ast.Expr{{args[0], args[1]}, {args[1], args[0]}} {
			if side[0].Kind() == ast.CallKind && side[0].AsCall().FunctionName() == "orValue" && side[1].Kind() == ast.LiteralKind {
				return s.instead(side[0].AsCall(), func(d any) bool { return (d == side[1].AsLiteral().Value()) != same })
			}
		}
	case value && len(args) == 2 && (name == operators.Less || name == operators.LessEquals || name == operators.Greater || name == operators.GreaterEquals):
		return s.sized(args, false)
	}
	return nil
}

// question returns the key of what has() asks for.
func (s *scope) question(e ast.Expr) string {
	if e.Kind() != ast.SelectKind || !e.AsSelect().IsTestOnly() {
		return ""
	}
	return s.place(e.AsSelect().Operand()).child(e.AsSelect().FieldName()).key
}

// sized returns what follows from a comparison with the size of x.orValue(), or
// with its value. That it is compared with what orValue gives is not considered:
// rules do not compare the size of an absent value.
func (s *scope) sized(args []ast.Expr, same bool) facts {
	if same {
		return nil
	}
	for _, a := range args {
		inner, measured := call(a, "size")
		if measured && len(inner) == 1 {
			a = inner[0]
		}
		if a.Kind() != ast.CallKind || a.AsCall().FunctionName() != "orValue" || !a.AsCall().IsMemberFunction() {
			continue
		}
		if literal := args[0].Kind() == ast.LiteralKind || args[1].Kind() == ast.LiteralKind; literal && (measured || a.AsCall().Args()[0].Kind() != ast.LiteralKind) {
			return s.upTo(facts{}, a.AsCall().Target())
		}
	}
	return nil
}

// instead returns what is known if orValue has not returned its argument; told
// says whether that follows.
func (s *scope) instead(x ast.CallExpr, told func(any) bool) facts {
	if !x.IsMemberFunction() || len(x.Args()) != 1 || x.Args()[0].Kind() != ast.LiteralKind || !told(x.Args()[0].AsLiteral().Value()) {
		return nil
	}
	return s.upTo(facts{}, x.Target())
}
