package lint

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"

	apiservercel "k8s.io/apiserver/pkg/cel"
)

// unguarded finds rules that read optional fields without having asked whether
// they are there.
//
// An error of a rule refuses the object, as false does. What a rule demands is
// therefore taken as given everywhere in it and in its neighbours: where the
// absence of a field makes a rule false anyway, reading the field is harmless.
func (c *checker) unguarded(n *node, list []parsed) {
	if !c.on["rule-unguarded-optional"] {
		return
	}
	top := &scope{demands: c.demands, vars: map[string]place{
		"self":    {schema: n.schema, key: "self", resource: n.resource()},
		"oldSelf": {schema: n.schema, key: "oldSelf", resource: n.resource()},
	}}
	given := facts{}
	for _, p := range list {
		given.unite(top.holds(p.tree.Expr(), true))
	}
	top = top.with(given)
	maybe := top.bind("oldSelf", place{schema: n.schema, key: "oldSelf", resource: n.resource(), optional: true})
	for _, p := range list {
		in := top
		if o := p.rule.OptionalOldSelf; o != nil && *o {
			in = maybe
		}
		var g guard
		g.visit(p.tree.Expr(), in, demand)
		if len(g.reads) == 0 {
			continue
		}
		verb := "is"
		if len(g.reads) > 1 {
			verb = "are"
		}
		first := g.reads[0]
		detail := fmt.Sprintf("%s %s optional, and the CEL rule does not test for presence: for objects without the field, the rule fails with the error no such key: %s",
			strings.Join(g.reads, ", "), verb, strings.Trim(first[strings.LastIndexAny(first, ".[")+1:], `]"`))
		c.guardRule(n, &p, in, detail, &g)
	}
}

// guardRule reports a rule, with a fix if there is one that is safe.
func (c *checker) guardRule(n *node, p *parsed, in *scope, detail string, g *guard) {
	advice := fmt.Sprintf("Test the field before the rule reads it: !%s || …", presence(g.reads[0]))
	if r := g.reads[0]; !strings.HasPrefix(r, "self.") && !strings.HasPrefix(r, "oldSelf.") {
		advice = fmt.Sprintf("Test the field inside the macro before you read it: !%s || …", presence(r))
	}
	i := c.atRule("rule-unguarded-optional", n, p.index, p.rule.At("rule"), detail, advice)
	if i < 0 {
		return
	}
	info := p.tree.SourceInfo()
	reads := make([]unguardedRead, 0, len(g.found))
	for _, e := range g.found {
		at, ok := info.GetOffsetRange(e.ID())
		if !ok {
			return
		}
		reads = append(reads, unguardedRead{int(at.Start), spell(e)})
	}
	fixed, changes := guarding(p.rule.Rule, reads)
	if fixed == "" || strings.ContainsFunc(fixed, unicode.IsControl) {
		return
	}
	tree, issues := parser().Parse(fixed)
	if issues.Err() != nil {
		return
	}
	var again guard
	if again.visit(tree.NativeRep().Expr(), in, demand); len(again.found) > 0 {
		return
	}
	c.propose(i, changes+"\nrule: "+quote(fixed), replaceString(p.rule.At("rule"), fixed))
}

// presence writes the question whether something is there.
func presence(read string) string {
	if strings.HasSuffix(read, "]") {
		i := strings.LastIndexByte(read, '[')
		return "(" + read[i+1:len(read)-1] + " in " + read[:i] + ")"
	}
	return "has(" + read + ")"
}

// identifier is how a rule calls a property.
func identifier(name string) string {
	if e, ok := apiservercel.Escape(name); ok {
		return e
	}
	return name
}

// property is the name of the property that a rule calls field.
func property(field string) string {
	if name, ok := apiservercel.Unescape(field); ok {
		return name
	}
	return field
}

// guard visits an expression and notes what it reads unasked.
type guard struct {
	reads []string   // the first few, for people
	found []ast.Expr // all of them, up to maxGuarded and one more
}

// maxReads is how many are named.
const maxReads = 5

func (g *guard) read(e ast.Expr, key string, sc *scope) {
	if sc.knows(key) {
		return
	}
	if len(g.found) <= maxGuarded {
		g.found = append(g.found, e)
	}
	if len(g.reads) >= maxReads {
		return
	}
	text := spell(e)
	for _, r := range g.reads {
		if r == text || strings.HasPrefix(text, r+".") || strings.HasPrefix(text, r+"[") {
			return
		}
	}
	g.reads = append(g.reads, text)
}

// spell writes an expression that refers to a value.
func spell(e ast.Expr) string {
	switch e.Kind() {
	case ast.IdentKind:
		return e.AsIdent()
	case ast.SelectKind:
		return spell(e.AsSelect().Operand()) + "." + e.AsSelect().FieldName()
	case ast.LiteralKind:
		if t, ok := text(e); ok {
			return strconv.Quote(t)
		}
		return fmt.Sprint(e.AsLiteral().Value())
	case ast.CallKind:
		if args, ok := call(e, operators.Index); ok && len(args) == 2 {
			return spell(args[0]) + "[" + spell(args[1]) + "]"
		}
		if args, ok := call(e, operators.OptSelect); ok && len(args) == 2 {
			field, _ := text(args[1])
			return spell(args[0]) + ".?" + field
		}
		if x := e.AsCall(); x.IsMemberFunction() && len(x.Args()) == 0 {
			return spell(x.Target()) + "." + x.FunctionName() + "()"
		}
	}
	return "…"
}

// position is where an expression stands.
type position uint8

const (
	inside      position = iota // of something else: an error is not the same as false
	demand                      // an error refuses the object, as false would
	alternative                 // the same, and something else may hold instead
)

func (g *guard) visit(e ast.Expr, sc *scope, at position) {
	if at != inside {
		if value, rest := presupposes(e, at); value != nil {
			if rest != nil {
				g.visit(rest, sc, inside)
			}
			return
		}
	}
	switch e.Kind() {
	case ast.SelectKind:
		x := e.AsSelect()
		g.visit(x.Operand(), sc, inside)
		if p := sc.place(x.Operand()); !x.IsTestOnly() && p.lacks(x.FieldName(), sc) {
			g.read(e, p.child(x.FieldName()).key, sc)
		}
	case ast.CallKind:
		g.call(e, sc, at)
	case ast.ListKind:
		for _, x := range e.AsList().Elements() {
			g.visit(x, sc, inside)
		}
	case ast.MapKind:
		for _, x := range e.AsMap().Entries() {
			g.visit(x.AsMapEntry().Key(), sc, inside)
			g.visit(x.AsMapEntry().Value(), sc, inside)
		}
	case ast.ComprehensionKind:
		g.comprehension(e, sc, at)
	}
}

func (g *guard) comprehension(e ast.Expr, sc *scope, at position) {
	x := e.AsComprehension()
	// all and exists are a long && and a long ||.
	start, isBool := literal[bool](x.AccuInit())
	exists := isBool && !start
	if at == inside || !exists || !isPath(x.IterRange()) {
		g.visit(x.IterRange(), sc, inside)
	}
	g.visit(x.AccuInit(), sc, inside)
	in := sc.enter(e)
	g.visit(x.LoopCondition(), in, inside)
	switch {
	case !isBool:
		at = inside
	case exists && at == demand:
		at = alternative
	case !exists && at == alternative:
		at = demand // of each element, whatever the whole is an alternative to
	}
	g.visit(x.LoopStep(), in, at)
	g.visit(x.Result(), in, inside)
}

// presupposes recognises conditions that are false if a value is absent:
// has(x.y) without x, size(x) > 0, k in x, x != ""; among alternatives also a
// comparison of x with a literal. It returns x, and what else there is to visit.
func presupposes(e ast.Expr, at position) (value, rest ast.Expr) {
	if e.Kind() == ast.SelectKind && e.AsSelect().IsTestOnly() {
		return e.AsSelect().Operand(), nil
	}
	if e.Kind() != ast.CallKind || e.AsCall().IsMemberFunction() || len(e.AsCall().Args()) != 2 {
		return nil, nil
	}
	a, b := e.AsCall().Args()[0], e.AsCall().Args()[1]
	name := e.AsCall().FunctionName()
	if inner, ok := call(a, "size"); ok && len(inner) == 1 && isPath(inner[0]) {
		switch name {
		case operators.Greater:
			return inner[0], b
		case operators.GreaterEquals, operators.Equals:
			if !isInt(b, 0) {
				return inner[0], b
			}
		case operators.NotEquals:
			if isInt(b, 0) {
				return inner[0], nil
			}
		}
	}
	switch name {
	case operators.In:
		if isPath(b) {
			return b, a
		}
	case operators.NotEquals:
		if t, ok := text(b); ok && t == "" && isPath(a) {
			return a, nil
		}
	}
	if at == alternative && (name == operators.Equals || name == operators.In) && isPath(a) && constant(b) {
		return a, nil
	}
	return nil, nil
}

// constant reports whether e is a literal or a list of them.
func constant(e ast.Expr) bool {
	return e.Kind() == ast.LiteralKind ||
		e.Kind() == ast.ListKind && !slices.ContainsFunc(e.AsList().Elements(), func(x ast.Expr) bool { return x.Kind() != ast.LiteralKind })
}

// isPath reports whether e is a variable and fields of it.
func isPath(e ast.Expr) bool {
	for e.Kind() == ast.SelectKind && !e.AsSelect().IsTestOnly() {
		e = e.AsSelect().Operand()
	}
	return e.Kind() == ast.IdentKind
}

func (g *guard) call(e ast.Expr, sc *scope, at position) {
	x := e.AsCall()
	args := x.Args()
	switch name := x.FunctionName(); {
	case (name == operators.LogicalAnd || name == operators.LogicalOr) && len(args) == 2:
		// Either side decides alone, even if the other is an error.
		decides := name == operators.LogicalAnd
		if !decides && at == demand {
			at = alternative
		}
		g.visit(args[0], sc.with(sc.holds(args[1], decides)), at)
		g.visit(args[1], sc.with(sc.holds(args[0], decides)), at)
		return
	case name == operators.Conditional && len(args) == 3:
		g.visit(args[0], sc, inside)
		g.visit(args[1], sc.with(sc.holds(args[0], true)), at)
		g.visit(args[2], sc.with(sc.holds(args[0], false)), at)
		return
	case name == operators.Index && len(args) == 2:
		if key, ok := text(args[1]); ok {
			if p := sc.place(args[0]); p.isMap() && !p.optional && !p.metadata && !sc.demands.of(p.schema)[key] {
				g.read(e, p.entry(key).key, sc)
			}
		}
	}
	if x.IsMemberFunction() {
		g.visit(x.Target(), sc, inside)
	}
	for _, a := range args {
		g.visit(a, sc, inside)
	}
}
