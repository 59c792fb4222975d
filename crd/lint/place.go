package lint

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"

	"github.com/espalier-dev/espalier/internal/syntax"
)

// place is what an expression refers to: a value with a schema. The zero place
// is anything else.
type place struct {
	schema   *syntax.Schema
	key      string // the same for the same value; also how it is written
	resource bool
	metadata bool  // of a resource: what is in it is not for the schema to say
	optional bool  // an optional value: access to an absent value gives optional.none()
	each     facts // of a list: what is known about its elements
	element  string
}

// child returns the place of a field of p.
func (p place) child(field string) place {
	s := p.schema
	if s == nil {
		return place{}
	}
	key := p.key + "." + field
	switch f := s.Property(property(field)); {
	case f != nil:
		return place{schema: f, key: key, resource: f.EmbeddedResource, metadata: p.resource && field == "metadata", optional: p.optional}
	case s.AdditionalProperties != nil && len(s.Properties) == 0:
		return p.entry(field)
	}
	return place{key: key, optional: p.optional}
}

// entry returns the place of an entry of a map.
func (p place) entry(key string) place {
	e := place{key: p.key + "[" + strconv.Quote(key) + "]", optional: p.optional}
	if a := p.schema.AdditionalProperties; a != nil && a.Schema != nil {
		e.schema, e.resource = a.Schema, a.Schema.EmbeddedResource
	}
	return e
}

// isMap reports whether values of p have keys rather than fields.
func (p place) isMap() bool {
	return p.schema != nil && p.schema.Type == "object" && p.schema.AdditionalProperties != nil && len(p.schema.Properties) == 0
}

// lacks reports whether a field of p may be absent as far as the schema goes.
func (p place) lacks(field string, sc *scope) bool {
	s := p.schema
	if s == nil || s.Type != "object" || p.optional {
		return false
	}
	name := property(field)
	f := s.Property(name)
	if p.resource && typeMeta(name) || p.metadata {
		return false
	}
	if f == nil || f.Default != nil || sc.demands.of(s)[name] {
		return false
	}
	if s.MinProperties != nil && *s.MinProperties >= int64(len(s.Properties)) {
		return false
	}
	absent := func(other string) bool { return sc.knows("!" + p.key + "." + identifier(other)) }
	return !sc.demands.offer(s.OneOf, name, absent) && !sc.demands.offer(s.AnyOf, name, absent)
}

// demands caches what schemas require, themselves or in allOf.
type demands map[*syntax.Schema]map[string]bool

func (d demands) of(s *syntax.Schema) map[string]bool {
	names, known := d[s]
	if !known {
		names = make(map[string]bool, len(s.Required))
		collect(names, s)
		d[s] = names
	}
	return names
}

func collect(names map[string]bool, s *syntax.Schema) {
	for _, name := range s.Required {
		names[name] = true
	}
	for _, x := range s.AllOf {
		collect(names, x)
	}
}

// maxOffers is how many alternatives are compared. Of more it is assumed that
// they say what the author of a rule relies on.
const maxOffers = 64

// offer reports whether all branches require a property, but for those that
// require something absent.
func (d demands) offer(branches []*syntax.Schema, name string, absent func(string) bool) bool {
	if len(branches) > maxOffers {
		return true
	}
	return len(branches) > 0 && !slices.ContainsFunc(branches, func(x *syntax.Schema) bool {
		return !d.of(x)[name] && len(x.Required) <= maxOffers && !slices.ContainsFunc(x.Required, absent)
	})
}

// place returns what an expression refers to.
func (s *scope) place(e ast.Expr) place {
	switch e.Kind() {
	case ast.IdentKind:
		return s.variable(e.AsIdent())
	case ast.SelectKind:
		if x := e.AsSelect(); !x.IsTestOnly() {
			return s.place(x.Operand()).child(x.FieldName())
		}
	case ast.CallKind:
		return s.called(e.AsCall())
	case ast.ComprehensionKind:
		return s.made(e)
	}
	return place{}
}

// called returns what the result of a function refers to.
func (s *scope) called(x ast.CallExpr) place {
	args := x.Args()
	switch name := x.FunctionName(); {
	case name == operators.OptSelect && len(args) == 2:
		p := s.place(args[0])
		p.optional = true
		if field, ok := text(args[1]); ok {
			return p.child(field)
		}
	case (name == operators.Index || name == operators.OptIndex) && len(args) == 2:
		p := s.place(args[0])
		p.optional = p.optional || name == operators.OptIndex
		if key, ok := text(args[1]); ok && p.isMap() {
			return p.entry(key)
		}
		q := p.elements(subscript(args[1]))
		q.optional = p.optional
		return q
	case name == "value" && x.IsMemberFunction() && len(args) == 0:
		p := s.place(x.Target())
		p.optional = false
		return p
	}
	return place{}
}

// subscript writes an index such that the same is written alike.
func subscript(e ast.Expr) string {
	switch e.Kind() {
	case ast.LiteralKind:
		return fmt.Sprintf("[%v]", e.AsLiteral().Value())
	case ast.IdentKind:
		return "[" + e.AsIdent() + "]"
	}
	return "[" + strconv.FormatInt(e.ID(), 10) + "#]"
}

// literal returns the value of e if it is a literal of the type.
func literal[T any](e ast.Expr) (value T, ok bool) {
	if e.Kind() == ast.LiteralKind {
		value, ok = e.AsLiteral().Value().(T)
	}
	return value, ok
}

func text(e ast.Expr) (string, bool) { return literal[string](e) }

// elements returns the place of an element of a list or map.
func (p place) elements(suffix string) place {
	if p.schema == nil {
		return place{}
	}
	e := place{key: p.key + suffix}
	if p.element != "" {
		e.key = p.element
	}
	switch a := p.schema.AdditionalProperties; {
	case p.schema.ItemSchema() != nil:
		e.schema = p.schema.ItemSchema()
	case a != nil && a.Schema != nil:
		e.schema = a.Schema
	default:
		return place{}
	}
	e.resource = e.schema.EmbeddedResource
	return e
}

// made returns what the result of a macro refers to: filter keeps the elements
// of a list, and what they were kept for is known about them.
func (s *scope) made(e ast.Expr) place {
	x := e.AsComprehension()
	if x.AccuInit().Kind() != ast.ListKind || x.HasIterVar2() {
		return place{}
	}
	step, ok := call(x.LoopStep(), operators.Conditional)
	if !ok || len(step) != 3 {
		return place{}
	}
	_, added, ok := binary(step[1], operators.Add)
	if !ok || added.Kind() != ast.ListKind || len(added.AsList().Elements()) != 1 || !isIdent(added.AsList().Elements()[0], x.IterVar()) {
		return place{}
	}
	p := s.place(x.IterRange())
	if p.schema == nil || p.schema.ItemSchema() == nil {
		return place{}
	}
	in := s.enter(e)
	p.element = in.variable(x.IterVar()).key
	p.each = united(p.each, in.holds(step[0], true))
	return p
}

// enter returns the scope of a macro's step.
func (s *scope) enter(e ast.Expr) *scope {
	x := e.AsComprehension()
	list := s.place(x.IterRange())
	element := list.elements("[" + strconv.FormatInt(e.ID(), 10) + "]")
	// The element is written by the name that the expression gives it. What
	// makes it unique is the macro.
	variable := x.IterVar()
	if x.HasIterVar2() {
		variable = x.IterVar2()
	} else if list.isMap() {
		element = place{}
	}
	if list.element == "" && element.schema != nil {
		element.key = variable + "#" + strconv.FormatInt(e.ID(), 10)
	}
	in := &scope{parent: s, demands: s.demands, known: list.each, vars: map[string]place{x.IterVar(): {}, x.AccuVar(): s.place(x.AccuInit())}}
	if x.HasIterVar2() {
		in.vars[x.IterVar2()] = place{}
	}
	in.vars[variable] = element
	return in
}
