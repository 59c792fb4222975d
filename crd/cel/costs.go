package cel

import (
	"strings"

	"github.com/google/cel-go/common"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
)

// Cost is what a rule or a messageExpression may cost, as the API server
// estimates it from the schema.
type Cost struct {
	Path    string // the API server's field path of the expression
	Pointer string // RFC 6901 pointer to it
	Offset  int    // of it in the schema document

	Cost  uint64 // of one evaluation, at most
	Times uint64 // evaluations for one object, at most; 1 for a messageExpression, which is how the API server counts it
	Total uint64 // of both; what is held against MaxRuleCost, and added up against MaxSchemaCost

	Parts []Part // of the expression, from the outside in; at most 256
	// Bounds is the smallest set of bounds with which Total is within MaxRuleCost; for a
	// Total from half the limit to the limit, the smallest set that gets it below the
	// half; for smaller ones, one bound that at least halves it. It is empty if there is no
	// such set: values that are real cost more.
	Bounds []Bound
}

// Part is a part of an expression and its share of the cost.
type Part struct {
	What   string // a function, operator, variable or field; "for" for a macro that evaluates something for each element
	Line   int    // in the expression, from 1
	Column int    // from 1, in characters
	Offset int    // in the schema document
	Cost   uint64 // for one evaluation of the whole expression, with the parts of it
}

// Bound is a bound that the schema does not have.
type Bound struct {
	Keyword string // maxItems, maxProperties or maxLength
	Path    string // the API server's field path of the schema that lacks it
	Pointer string // RFC 6901 pointer to that schema
	Offset  int    // of that schema in the schema document
	Value   uint64 // no real value is larger, as far as the schema shows
	Why     string // what shows it
	Total   uint64 // what the estimate is with this bound and those before it
}

// expensiveTotal is the cost from which bounds are looked for: the share of a
// schema's limit from which the API server names a rule.
const expensiveTotal = MaxSchemaCost / 100

// Costs returns what each expression in the rules of a schema may cost. Rules
// that Check has errors for other than about cost are not among them.
func Costs(schema []byte, o CheckOptions) ([]Cost, error) {
	var list []Cost
	effort := maxEffort
	_, err := inspect(schema, o, func(r *inspected) {
		if r.test == nil || r.problem != nil {
			return
		}
		list = append(list, r.costOf(schema, "rule", r.rule.Rule, r.test, r.times, &effort))
		if r.message != nil && r.messageProblem == nil {
			list = append(list, r.costOf(schema, "messageExpression", r.rule.MessageExpression, r.message, 1, &effort))
		}
	}, nil)
	return list, err
}

func (r *inspected) costOf(schema []byte, part, text string, e *expression, times uint64, effort *int) Cost {
	c := Cost{Offset: r.rule.At(part), Cost: r.cost, Times: times}
	if part != "rule" {
		c.Cost = r.messageCost
	}
	c.Total = multiply(c.Cost, times)
	c.Path, c.Pointer = r.path(part)
	c.Parts = e.parts(r.scope)
	for i := range c.Parts {
		p := &c.Parts[i]
		p.Offset = offsetIn(schema, c.Offset, characters(text, p.Line, p.Column-1))
	}
	if c.Total >= expensiveTotal {
		c.Bounds = missingBounds(&estimated{r: r, e: e, times: part == "rule", size: len(text)}, effort)
	}
	return c
}

// maxParts bounds the parts of an expression that are looked at, because each
// takes an estimation.
const maxParts = 256

// parts estimates the parts of the expression, outer ones first.
func (e *expression) parts(s *scope) []Part {
	tree := e.tree()
	holder, issues := e.lang.env.Parse("true") // there is no other way to a cel.Ast
	if issues.Err() != nil {
		return nil
	}
	x := excerpt{whole: tree, part: &expression{ast: holder, lang: e.lang}, scope: s, empty: map[*around]uint64{}}
	queue := []part{{expr: tree.Expr()}}
	var list []Part
	for at := 0; at < len(queue) && len(list) < maxParts; at++ {
		p := queue[at]
		l := tree.SourceInfo().GetStartLocation(p.expr.ID())
		if name := nameOf(p.expr); name != "" && !p.around.made(tree, l) {
			list = append(list, Part{What: name, Line: l.Line(), Column: l.Column() + 1, Cost: x.cost(p)})
		}
		queue = append(queue, p.children()...)
	}
	return list
}

// part is a part of an expression and the loops around it.
type part struct {
	expr   ast.Expr
	around *around
}

// around is a comprehension around a part: a loop whose step the part is in, or
// the use of a value that was given a name.
type around struct {
	parent *around
	fold   ast.ComprehensionExpr
	id     int64
	result bool
}

// made reports whether what is at a location was made by the macro that made a:
// that is where everything is that was not written.
func (a *around) made(tree *ast.AST, l common.Location) bool {
	if a == nil {
		return false
	}
	macro := tree.SourceInfo().GetStartLocation(a.id)
	return macro.Line() == l.Line() && macro.Column() == l.Column()
}

// children returns the parts that p is made of.
func (p part) children() []part {
	e := p.expr
	var list []part
	add := func(x ast.Expr, a *around) { list = append(list, part{x, a}) }
	switch e.Kind() {
	case ast.CallKind:
		call := e.AsCall()
		if call.IsMemberFunction() {
			add(call.Target(), p.around)
		}
		for _, a := range call.Args() {
			add(a, p.around)
		}
	case ast.SelectKind:
		add(e.AsSelect().Operand(), p.around)
	case ast.ListKind:
		for _, x := range e.AsList().Elements() {
			add(x, p.around)
		}
	case ast.MapKind:
		for _, x := range e.AsMap().Entries() {
			add(x.AsMapEntry().Key(), p.around)
			add(x.AsMapEntry().Value(), p.around)
		}
	case ast.ComprehensionKind:
		fold := e.AsComprehension()
		add(fold.IterRange(), p.around)
		add(fold.AccuInit(), p.around)
		add(fold.LoopStep(), &around{p.around, fold, e.ID(), false})
		add(fold.Result(), &around{p.around, fold, e.ID(), true})
	}
	return list
}

// nameOf names a part, "" for literals and what macros have added.
func nameOf(e ast.Expr) string {
	switch e.Kind() {
	case ast.CallKind:
		name := e.AsCall().FunctionName()
		if strings.Contains(name, "@") && name != operators.In {
			return ""
		}
		if symbol, ok := operators.FindReverse(name); ok && symbol != "" {
			return symbol
		}
		return name
	case ast.IdentKind:
		if name := e.AsIdent(); !strings.HasPrefix(name, "@") && name != "__result__" {
			return name
		}
	case ast.SelectKind:
		return e.AsSelect().FieldName()
	case ast.ListKind, ast.MapKind:
		return "literal"
	case ast.ComprehensionKind:
		return "for"
	}
	return ""
}

// excerpt estimates parts of an expression.
type excerpt struct {
	whole *ast.AST
	part  *expression // holds the part being estimated
	scope *scope
	empty map[*around]uint64 // the cost of loops by themselves
}

// cost estimates a part where it stands: the loops around it, with it as their
// step, less the same loops with nothing as their step.
func (x *excerpt) cost(p part) uint64 {
	without, known := x.empty[p.around]
	if !known {
		without = x.estimate(p.around.wrap(ast.NewExprFactory().NewLiteral(0, types.True)))
		x.empty[p.around] = without
	}
	with := x.estimate(p.around.wrap(p.expr))
	return with - min(with, without)
}

func (x *excerpt) estimate(e ast.Expr) uint64 {
	*x.part.tree() = *ast.NewCheckedAST(ast.NewAST(e, x.whole.SourceInfo()), x.whole.TypeMap(), x.whole.ReferenceMap())
	cost, err := x.part.cost(x.scope, nil)
	if err != nil {
		return 0 // the whole has been estimated without
	}
	return cost
}

// wrap puts an expression into the loops of a.
func (a *around) wrap(e ast.Expr) ast.Expr {
	f := ast.NewExprFactory()
	for ; a != nil; a = a.parent {
		c := a.fold
		yes := f.NewLiteral(0, types.True)
		if a.result {
			e = f.NewComprehensionTwoVar(a.id, c.IterRange(), c.IterVar(), c.IterVar2(), c.AccuVar(), c.AccuInit(), c.LoopCondition(), c.LoopStep(), e)
		} else {
			e = f.NewComprehensionTwoVar(a.id, c.IterRange(), c.IterVar(), c.IterVar2(), c.AccuVar(), c.AccuInit(), yes, e, yes)
		}
	}
	return e
}
