package diff

import (
	"slices"
	"strings"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
)

// truth is what is known about a boolean expression for all objects that the old CRD stores: proven that it is true,
// refuted that it is false. Nothing is known of an expression that may fail.
type truth = answer

// believer proves that a rule of the new CRD holds for every object that the old CRD stores, because the old CRD prunes the
// fields that it is about, or demands as much itself.
type believer struct {
	c     *comparer
	self  value    // in the old CRD
	now   value    // in the new one, which may fill in defaults
	root  bool     // self is the whole object
	given []string // paths of fields that are present, in what is being proven
	steps int
}

const believeSteps = 1 << 12

// holds reports whether a rule is true for every old object.
func (c *comparer) holds(o, n value, r *rule, root bool) bool {
	t := c.tree(r)
	if t == nil {
		return false
	}
	b := &believer{c: c, self: o, now: n, root: root, steps: believeSteps}
	if b.truth(t) != proven {
		return false
	}
	b.steps = believeSteps
	return b.cost(t) < maxEvaluation
}

func negated(t truth) truth {
	return map[truth]truth{proven: refuted, refuted: proven}[t]
}

func (b *believer) truth(e ast.Expr) truth {
	if b.steps--; b.steps < 0 {
		return unknown
	}
	switch {
	case isTrue(e):
		return proven
	case isFalse(e):
		return refuted
	}
	op, args := call(e)
	switch op {
	case operators.LogicalNot:
		return negated(b.truth(args[0]))
	case operators.LogicalOr:
		return negated(b.both(args, refuted))
	case operators.LogicalAnd:
		return b.both(args, proven)
	case operators.Conditional:
		switch b.truth(args[0]) {
		case proven:
			return b.truth(args[1])
		case refuted:
			return b.truth(args[2])
		}
		if !b.total(args[0]) {
			return unknown
		}
		then, otherwise := b.under(args[0], proven, args[1]), b.under(args[0], refuted, args[2])
		if then == otherwise {
			return then
		}
	case "has":
		if len(args) == 1 {
			return b.present(args[0])
		}
	}
	return b.comparison(op, args)
}

// both is && for the answer proven. For refuted it is the negation of ||: whether all are false.
func (b *believer) both(args []ast.Expr, want truth) truth {
	same := func(t truth) truth {
		if want == proven {
			return t
		}
		return negated(t)
	}
	first, second := same(b.truth(args[0])), same(b.truth(args[1]))
	// One that decides does so also if the other fails.
	if first == refuted || second == refuted {
		return refuted
	}
	// Where the first does not decide, the second need only hold beside it; and the other way round.
	if first != proven && b.total(args[0]) && same(b.under(args[0], want, args[1])) == refuted {
		return refuted
	}
	if second != proven && b.total(args[1]) && same(b.under(args[1], want, args[0])) == refuted {
		return refuted
	}
	if first == proven && second == proven {
		return proven
	}
	return unknown
}

// under returns what is known of e where an expression that cannot fail has a value.
func (b *believer) under(cond ast.Expr, is truth, e ast.Expr) truth {
	before := len(b.given)
	b.assume(cond, is)
	t := b.truth(e)
	b.given = b.given[:before]
	return t
}

// assume notes the fields that are present where an expression has a value.
func (b *believer) assume(e ast.Expr, is truth) {
	op, args := call(e)
	switch {
	case op == operators.LogicalNot:
		b.assume(args[0], negated(is))
	case op == operators.LogicalAnd && is == proven, op == operators.LogicalOr && is == refuted:
		b.assume(args[0], is)
		b.assume(args[1], is)
	case op == "has" && len(args) == 1 && is == proven:
		if path, ok := pathOf(args[0]); ok {
			b.given = append(b.given, strings.Join(path, "\x00"))
		}
	}
}

// total reports whether an expression cannot fail.
func (b *believer) total(e ast.Expr) bool {
	if b.steps--; b.steps < 0 {
		return false
	}
	if e.AsLiteral() == types.True || e.AsLiteral() == types.False {
		return true
	}
	op, args := call(e)
	switch op {
	case operators.LogicalNot:
		return b.total(args[0])
	case operators.LogicalAnd:
		if !b.total(args[0]) {
			return false
		}
		return b.totalUnder(args[0], proven, args[1])
	case operators.LogicalOr:
		if !b.total(args[0]) {
			return false
		}
		return b.totalUnder(args[0], refuted, args[1])
	case "has":
		if len(args) != 1 { // it does not compile
			return false
		}
		path, ok := pathOf(args[0])
		return ok && len(path) > 0 && b.reachable(path[:len(path)-1])
	}
	return false
}

func (b *believer) totalUnder(cond ast.Expr, is truth, e ast.Expr) bool {
	before := len(b.given)
	b.assume(cond, is)
	ok := b.total(e)
	b.given = b.given[:before]
	return ok
}

// pathOf returns the fields that an expression selects, from self on.
func pathOf(e ast.Expr) (path []string, ok bool) {
	for e.Kind() == ast.SelectKind {
		name := e.AsSelect().FieldName()
		if strings.Contains(name, "__") { // may be escaped
			return nil, false
		}
		path = append(path, name)
		e = e.AsSelect().Operand()
	}
	slices.Reverse(path)
	return path, e.Kind() == ast.IdentKind && e.AsIdent() == "self"
}

// field is what becomes of a field of old objects.
type field struct {
	value
	how    treatment
	always bool // present in every object
	filled bool // the new CRD may fill it in, or something above it
	typed  bool // rules of the new CRD do not see a string
}

// find follows a path.
func (b *believer) find(path []string) (field, bool) {
	f := field{value: b.self, how: specified, always: true}
	now := b.now
	for i, name := range path {
		if b.steps--; b.steps < 0 || f.how == preserved || f.how == emptied || f.value.frame == nil || now.frame == nil ||
			f.kinds(true)&^null != objectKind || f.nulls(false) {
			return f, false
		}
		root := b.root && i == 0
		if root && isMeta(name) || f.meta {
			return f, false
		}
		named := slices.Contains(required(&f.value), name)
		child, how := b.c.property(&f.value, name, root)
		next, after := b.c.property(&now, name, root)
		if after != specified {
			return f, false
		}
		f.filled = f.filled || next.frame.s.Default != nil
		f.always = f.always && named || slices.Contains(b.given, strings.Join(path[:i+1], "\x00"))
		f.how = how
		if how == dropped {
			f.always = false
			return f, true
		}
		f.value, now = child, next
	}
	f.typed = typedFormat(now.frame.s) != ""
	return f, true
}

// present says whether a field is present.
func (b *believer) present(e ast.Expr) truth {
	path, ok := pathOf(e)
	if !ok || len(path) == 0 {
		return unknown
	}
	f, ok := b.find(path)
	switch {
	case !ok:
	case f.how == dropped && !f.filled && b.reachable(path[:len(path)-1]):
		return refuted
	case f.how == specified && f.always && !f.nulls(false):
		return proven
	}
	return unknown
}

// reachable reports whether selecting a path cannot fail.
func (b *believer) reachable(path []string) bool {
	if len(path) == 0 {
		return true
	}
	f, ok := b.find(path)
	return ok && f.how == specified && f.always && !f.nulls(false)
}

// comparison decides what the demands of the old CRD imply.
func (b *believer) comparison(op string, args []ast.Expr) truth {
	if len(args) != 2 {
		return unknown
	}
	if op == "matches" {
		return b.matches(args)
	}
	v, sized, ok := b.operand(args[0])
	if !ok {
		return unknown
	}
	if op == operators.In && !sized {
		return b.in(v, args[1])
	}
	if text, ok := args[1].AsLiteral().(types.String); ok && !sized {
		switch op {
		case operators.NotEquals:
			if v.kinds(true)&^null == stringKind && !v.admits(string(text)) {
				return proven
			}
		case operators.Equals:
			return b.in(v, args[1])
		}
		return unknown
	}
	limit, ok := args[1].AsLiteral().(types.Int)
	if !ok || limit > 1<<52 || limit < -(1<<52) {
		return unknown
	}
	least, most, okLeast, okMost := extent(v, sized)
	x := float64(limit)
	switch {
	case op == operators.LessEquals && okMost && most <= x, op == operators.Less && okMost && most < x,
		op == operators.GreaterEquals && okLeast && least >= x, op == operators.Greater && okLeast && least > x,
		op == operators.NotEquals && (okMost && most < x || okLeast && least > x):
		return proven
	}
	return unknown
}

// operand returns the value that an expression selects, or whose size it is. It must be present and not null.
func (b *believer) operand(e ast.Expr) (v value, sized, ok bool) {
	if op, args := call(e); op == "size" && len(args) == 1 {
		sized, e = true, args[0]
	}
	path, ok := pathOf(e)
	if !ok {
		return v, sized, false
	}
	f, ok := b.find(path)
	if !ok || f.how != specified || !f.always || f.filled || f.typed || f.nulls(false) || f.intOrString() {
		return v, sized, false
	}
	return f.value, sized, true
}

// extent returns the least and the greatest number, or size.
func extent(v value, sized bool) (least, most float64, okLeast, okMost bool) {
	if !sized {
		if v.kinds(true)&^null != numberKind || !v.whole() {
			return 0, 0, false, false
		}
		high, _, okHigh := sides[0].upper(&v)
		low, _, okLow := sides[1].upper(&v)
		return -low.at, high.at, okLow, okHigh
	}
	return sizes(v)
}

// sizes returns the bounds of the length of strings or the number of items or members.
func sizes(v value) (least, most float64, okLeast, okMost bool) {
	okLeast = true // nothing is smaller than empty
	take := func(low, high *int64) {
		if low != nil {
			least = max(least, float64(*low))
		}
		if high != nil && (!okMost || float64(*high) < most) {
			most, okMost = float64(*high), true
		}
	}
	for i := range v.parts {
		s := v.parts[i].s
		switch v.kinds(true) &^ null {
		case stringKind:
			if formatOf(s) != 0 { // CEL may see it as a timestamp, a duration or bytes
				return 0, 0, false, false
			}
			take(s.MinLength, s.MaxLength)
		case arrayKind:
			take(s.MinItems, s.MaxItems)
		case objectKind:
			take(s.MinProperties, s.MaxProperties)
		default:
			return 0, 0, false, false
		}
	}
	return least, most, okLeast, okMost
}

// in reports whether all values that an enum leaves are among literals.
func (b *believer) in(v value, e ast.Expr) truth {
	list := []ast.Expr{e}
	if e.Kind() == ast.ListKind {
		list = e.AsList().Elements()
	}
	wanted := map[string]bool{}
	for _, x := range list {
		text, ok := x.AsLiteral().(types.String)
		if !ok {
			return unknown
		}
		wanted[string(text)] = true
	}
	listed, finite := v.texts()
	if !finite || v.kinds(true)&^null != stringKind || len(listed) == 0 {
		return unknown
	}
	for i := range v.parts {
		if formatOf(v.parts[i].s) != 0 {
			return unknown
		}
	}
	if slices.ContainsFunc(listed, func(t string) bool { return !wanted[t] && v.admits(t) }) {
		return unknown
	}
	return proven
}

// matches compares a pattern with those of the schema.
func (b *believer) matches(args []ast.Expr) truth {
	v, sized, ok := b.operand(args[0])
	expr, literal := args[1].AsLiteral().(types.String)
	if !ok || sized || !literal || v.kinds(true)&^null != stringKind {
		return unknown
	}
	for i := range v.parts {
		s := v.parts[i].s
		if formatOf(s) != 0 {
			return unknown
		}
		if s.Pattern == "" {
			continue
		}
		if subset, _ := b.c.contains(s.Pattern, string(expr)); subset == proven {
			return proven
		}
	}
	if listed, finite := v.texts(); finite && len(listed) > 0 && !slices.ContainsFunc(listed, func(t string) bool { return !matches(string(expr), t) }) {
		return proven
	}
	return unknown
}
