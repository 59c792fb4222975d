package cel

import (
	"slices"
	"strings"

	"github.com/google/cel-go/common"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"

	"github.com/espalier-dev/espalier/internal/plan"
	"github.com/espalier-dev/espalier/internal/syntax"
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

	Parts  []Part  // of the expression, from the outside in; at most 256
	Bounds []Bound // what would make the expression cheaper, if it is expensive
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
	Value   uint64 // with this value the estimate is within MaxRuleCost; or still above, if the next bound is needed too
	Total   uint64 // what the estimate is then
}

// expensiveTotal is the cost from which bounds are looked for: the share of a
// schema's limit from which the API server names a rule.
const expensiveTotal = MaxSchemaCost / 100

// Costs returns what each expression in the rules of a schema may cost. Rules
// that Check has errors for other than about cost are not among them.
func Costs(schema []byte, o CheckOptions) ([]Cost, error) {
	var list []Cost
	_, err := inspect(schema, o, func(r *inspected) {
		if r.test == nil || r.problem != nil {
			return
		}
		list = append(list, r.costOf(schema, "rule", r.rule.Rule, r.test, r.times))
		if r.message != nil && r.messageProblem == nil {
			list = append(list, r.costOf(schema, "messageExpression", r.rule.MessageExpression, r.message, 1))
		}
	})
	return list, err
}

func (r *inspected) costOf(schema []byte, part, text string, e *expression, times uint64) Cost {
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
		c.Bounds = r.missingBounds(e, part == "rule")
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

// candidate is a schema without a bound that a cost depends on.
type candidate struct {
	Bound
	key  string // of what the expression looks at; empty for a loop around the rule
	loop *loop
}

// maxBounds is how many bounds are proposed.
const maxBounds = 4

// missingBounds finds the bounds that would reduce the cost of e, the most
// effective one first, until the cost is within the limit.
func (r *inspected) missingBounds(e *expression, times bool) []Bound {
	search := boundSearch{r: r, e: e, times: times, trial: trial{bounds: map[string]int64{}}, loops: map[*loop]uint64{}}
	candidates := search.candidates()
	var list []Bound
	for len(list) < maxBounds && len(candidates) > 0 && search.total() > MaxRuleCost {
		i := search.best(candidates)
		c := candidates[i]
		candidates = slices.Delete(candidates, i, i+1)
		if search.settle(&c) {
			list = append(list, c.Bound)
		}
	}
	if len(list) > 0 || len(candidates) == 0 {
		return list
	}
	// It is within the limit. Say what it depends on most.
	c := candidates[search.best(candidates)]
	if search.settle(&c) {
		list = append(list, c.Bound)
	}
	return list
}

// boundSearch estimates the cost of an expression for other bounds.
type boundSearch struct {
	r     *inspected
	e     *expression
	times bool // the number of evaluations counts
	trial trial
	loops map[*loop]uint64
}

// candidates returns what has no bound and matters: the lists and maps around
// the rule, and what its expression looks at.
func (s *boundSearch) candidates() []candidate {
	var list []candidate
	if s.times && !s.r.bounded {
		for l := s.r.loops; l != nil; l = l.parent {
			if keyword := lacking(l.schema); keyword != "" {
				list = append(list, candidate{Bound: Bound{Keyword: keyword, Path: l.field, Pointer: l.pointer}, loop: l})
			}
		}
	}
	seen := map[string]bool{}
	s.trial.asked = func(key string, at place) {
		if seen[key] {
			return
		}
		seen[key] = true
		if keyword := unboundedBy(at.node); keyword != "" {
			field, pointer := s.r.locate(key)
			list = append(list, candidate{Bound: Bound{Keyword: keyword, Path: field, Pointer: pointer}, key: key})
		}
	}
	_, _ = s.e.cost(s.r.scope, &s.trial) // it has been estimated before
	s.trial.asked = nil
	return list
}

// lacking returns the keyword that would bound the elements of a list or map.
func lacking(s *syntax.Schema) string {
	switch {
	case s.Type == "array" && s.MaxItems == nil:
		return "maxItems"
	case s.Type == "object" && s.AdditionalProperties != nil && s.MaxProperties == nil:
		return "maxProperties"
	}
	return ""
}

// unboundedBy returns the keyword that would bound what is in values of n, ""
// if there is a bound or nothing in them.
func unboundedBy(n *plan.Node) string {
	keyword, op := "", plan.MaxLength
	switch {
	case n.Flags&plan.IntOrString != 0:
		keyword = "maxLength"
	case n.Type == plan.Array:
		keyword, op = "maxItems", plan.MaxItems
	case n.Type == plan.Object && n.Additional != nil:
		keyword, op = "maxProperties", plan.MaxProperties
	case n.Type == plan.String && maxString(n) == maxText:
		keyword = "maxLength"
	}
	if keyword == "" || assertion(n, op) != nil {
		return ""
	}
	return keyword
}

// locate returns the field path and the pointer of what an expression of r looks
// at.
func (r *inspected) locate(key string) (field, pointer string) {
	f, p := []byte(r.field), []byte(r.pointer)
	n := r.scope.sizes.seen(r.declared, r.resource)
	for _, part := range strings.Split(key, "\x00") {
		if key == "" {
			break
		}
		if len(f) > 0 {
			f = append(f, '.')
		}
		keyword, name := "properties", ""
		switch {
		case part == "@items" || part == "@values":
			keyword = "items"
			if n.Type == plan.Object {
				keyword = "additionalProperties"
			}
			n = elements(n)
		default:
			name, _ = unescape(part)
			n = fieldCalled(n, part)
		}
		f, p = append(f, keyword...), syntax.AppendToken(p, keyword)
		if name != "" {
			f, p = append(append(append(f, '['), name...), ']'), syntax.AppendToken(p, name)
		}
		if n == nil {
			break
		}
		n = r.scope.sizes.seen(n, isEmbedded(n))
	}
	return string(f), string(p)
}

// total estimates with the bounds that have been set.
func (s *boundSearch) total() uint64 {
	cost, err := s.e.cost(s.r.scope, &s.trial)
	if err != nil {
		return 0
	}
	if !s.times {
		return cost
	}
	return multiply(cost, s.evaluations())
}

// evaluations returns how often the rule is evaluated, with the bounds that have
// been set.
func (s *boundSearch) evaluations() uint64 {
	n := uint64(1)
	for l := s.r.loops; l != nil; l = l.parent {
		most, ok := occurrences(l.schema)
		if set, has := s.loops[l]; has {
			most, ok = set, true
		}
		if !ok {
			return s.r.times // by size, as without the bound
		}
		n = multiply(n, most)
	}
	return n
}

// try returns the total with a bound.
func (s *boundSearch) try(c *candidate, value uint64) uint64 {
	if c.loop != nil {
		s.loops[c.loop] = value
		defer delete(s.loops, c.loop)
	} else {
		s.trial.bounds[c.key] = c.elements(value)
		defer delete(s.trial.bounds, c.key)
	}
	return s.total()
}

// elements returns the estimation's idea of a bound: strings count in bytes.
func (c *candidate) elements(value uint64) int64 {
	if c.Keyword == "maxLength" {
		return int64(value) * 4
	}
	return int64(value)
}

// best returns the candidate that reduces the total most.
func (s *boundSearch) best(list []candidate) int {
	best, least := 0, ^uint64(0)
	for i := range list {
		if t := s.try(&list[i], 1); t < least {
			best, least = i, t
		}
	}
	return best
}

// usual is a bound that is proposed when it alone cannot do.
const usual = 64

// settle chooses the value of a bound: the largest that keeps the limit, or one
// that is usual. It reports false if the bound makes no difference.
func (s *boundSearch) settle(c *candidate) bool {
	before := s.total()
	lo, hi := uint64(0), uint64(maxText)
	for lo < hi {
		mid := (lo + hi + 1) / 2
		if s.try(c, mid) <= MaxRuleCost {
			lo = mid
		} else {
			hi = mid - 1
		}
	}
	if c.Value = lo; lo == 0 || before <= MaxRuleCost {
		c.Value = usual
	}
	c.Total = s.try(c, c.Value)
	if c.loop != nil {
		s.loops[c.loop] = c.Value
	} else {
		s.trial.bounds[c.key] = c.elements(c.Value)
	}
	return c.Total < before
}
