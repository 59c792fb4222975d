package diff

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"

	"github.com/espalier-dev/espalier/finding"
	"github.com/espalier-dev/espalier/internal/syntax"
)

// What is done about rules: beyond these limits they are compared as texts, or
// not proven to be weaker.
const (
	maxParsedRules = 2000
	maxRuleText    = 1 << 14
	maxRulePairs   = 512
	impliesSteps   = 1 << 14
)

const rulesKeyword = "x-kubernetes-validations"

// rule is a rule and its syntax tree, made when it is needed.
type rule struct {
	*syntax.Rule
	index int
	tree  ast.Expr // nil if it does not parse
	tried bool
}

// parser reads expressions without expanding macros: all and exists stay calls.
var parser = sync.OnceValues(func() (*cel.Env, error) {
	return cel.NewCustomEnv(cel.OptionalTypes(), cel.ClearMacros(), cel.EnableIdentifierEscapeSyntax(), cel.ParserRecursionLimit(200))
})

func (c *comparer) tree(r *rule) ast.Expr {
	if r.tried {
		return r.tree
	}
	r.tried = true
	if c.parsed--; c.parsed < 0 || len(r.Rule.Rule) > maxRuleText {
		return nil
	}
	env, err := parser()
	if err != nil {
		return nil
	}
	parsed, issues := env.Parse(r.Rule.Rule)
	if issues.Err() != nil {
		return nil
	}
	r.tree = parsed.NativeRep().Expr()
	return r.tree
}

// rules compares the rules of a place.
func (c *comparer) rules(o, n value, at *place, root bool) {
	was, is := rulesOf(o.frame.s), rulesOf(n.frame.s)
	if len(was)+len(is) == 0 {
		return
	}
	was, is = c.pairEqual(was, is, func(a, b *rule) { c.sameRule(o, n, a, b, at) })
	if len(is) == 0 && len(was) == 0 {
		return
	}
	all := rulesOf(o.frame.s)
	pairs := maxRulePairs
	added := is[:0:0]
	for _, r := range is {
		strong := c.stronger(all, r, &pairs)
		if isTrue(c.tree(r)) {
			continue
		}
		if strong == nil && c.holds(o, n, r, root) {
			x := c.ruleChange("rule-added", o, n, nil, r)
			x.Level, x.Breaks = Safe, Writers
			x.Message = fmt.Sprintf("the CEL rule %s was added: every object that the old CRD stores satisfies it", x.New)
			c.report(at, x)
			continue
		}
		if strong == nil {
			added = append(added, r)
			continue
		}
		x := c.ruleChange("rule-changed", o, n, strong, r)
		x.Level, x.Breaks = Risky, Readers
		x.Message = fmt.Sprintf("the CEL rule %s was relaxed to %s: all valid objects stay valid, but readers may get objects that the old rule rejected", x.Old, x.New)
		c.report(at, x)
		was = slices.DeleteFunc(was, func(a *rule) bool { return a.Rule == strong.Rule })
	}
	for _, r := range added {
		i := slices.IndexFunc(was, func(a *rule) bool {
			return r.Message != "" && a.Message == r.Message || len(was) == 1 && len(added) == 1
		})
		if i < 0 {
			x := c.ruleChange("rule-added", o, n, nil, r)
			x.Level, x.Breaks = Breaking, Writers|Stored
			x.Message = fmt.Sprintf("the CEL rule %s was added: the API server rejects objects that violate it", x.New)
			c.reportOn(subject{at: at, keyword: rulesKeyword, rule: r.Rule, decidable: true}, ratcheted(x, r))
			continue
		}
		x := c.ruleChange("rule-changed", o, n, was[i], r)
		x.Level, x.Breaks = Risky, Writers|Stored
		x.Message = fmt.Sprintf("the CEL rule %s changed to %s: the new rule may reject objects that the old rule accepted", x.Old, x.New)
		if c.stronger([]*rule{r}, was[i], &pairs) != nil {
			x.Level = Breaking
			x.Message = fmt.Sprintf("the CEL rule %s was tightened to %s: the API server may reject objects that satisfied the old rule", x.Old, x.New)
		}
		c.reportOn(subject{at: at, keyword: rulesKeyword, rule: r.Rule, decidable: true}, ratcheted(x, r))
		was = slices.Delete(was, i, i+1)
	}
	for _, r := range was {
		x := c.ruleChange("rule-removed", o, n, r, nil)
		x.Level, x.Breaks = Risky, Readers
		x.Message = fmt.Sprintf("the CEL rule %s was removed: all valid objects stay valid, but readers that rely on the rule may get objects that it rejected", x.Old)
		c.report(at, x)
	}
}

// ratcheted adds what becomes of stored objects.
func ratcheted(x Change, r *rule) Change {
	if mentionsOld(r.Rule.Rule) {
		x.Message += "; the rule reads oldSelf, so it applies to updates, also of stored objects"
	} else {
		x.Message += ratcheting
	}
	return x
}

func rulesOf(s *schema) []*rule {
	list := make([]*rule, len(s.Validations))
	for i := range s.Validations {
		list[i] = &rule{Rule: &s.Validations[i], index: i}
	}
	return list
}

func (c *comparer) ruleChange(id finding.ID, o, n value, was, is *rule) Change {
	const keyword = rulesKeyword
	x := Change{Check: id, OldPointer: o.at(keyword), NewPointer: n.at(keyword)}
	if was != nil {
		x.Old = strconv.Quote(shorten(was.Rule.Rule))
		x.OldPointer = o.frame.at.to(keyword, strconv.Itoa(was.index)).String()
	}
	if is != nil {
		x.New = strconv.Quote(shorten(is.Rule.Rule))
		x.NewPointer = n.frame.at.to(keyword, strconv.Itoa(is.index)).String()
	}
	return x
}

// pairEqual calls same for the rules that are equal but for their formatting,
// and returns the others.
func (c *comparer) pairEqual(was, is []*rule, same func(a, b *rule)) (left, right []*rule) {
	for _, key := range []func(*rule) string{
		func(r *rule) string { return r.Rule.Rule + evaluated(r) },
		func(r *rule) string {
			if t := c.tree(r); t != nil {
				return string(appendExpr(nil, t)) + evaluated(r)
			}
			return ""
		},
	} {
		byKey := map[string][]*rule{}
		for _, a := range was {
			byKey[key(a)] = append(byKey[key(a)], a)
		}
		paired := map[*rule]bool{}
		right = nil
		for _, b := range is {
			k := key(b)
			if k == "" || len(byKey[k]) == 0 {
				right = append(right, b)
				continue
			}
			paired[byKey[k][0]] = true
			same(byKey[k][0], b)
			byKey[k] = byKey[k][1:]
		}
		was = slices.DeleteFunc(was, func(a *rule) bool { return paired[a] })
		if is = right; len(was)+len(is) == 0 {
			break
		}
	}
	return was, is
}

// evaluated says when a rule is evaluated, beyond its text.
func evaluated(r *rule) string {
	if r.OptionalOldSelf != nil && *r.OptionalOldSelf {
		return "\noptional"
	}
	return ""
}

// sameRule compares what clients see of a rule that stays.
func (c *comparer) sameRule(o, n value, a, b *rule, at *place) {
	if a.Message == b.Message && a.MessageExpression == b.MessageExpression && a.FieldPath == b.FieldPath && reason(a) == reason(b) {
		return
	}
	x := c.ruleChange("rule-message-changed", o, n, a, b)
	x.Level, x.Breaks = Safe, Writers
	x.Old, x.New = shorten(a.Message), shorten(b.Message)
	x.Message = "the message, reason or fieldPath of a CEL rule changed: the API server rejects the same objects with another error"
	c.report(at, x)
}

func reason(r *rule) string {
	if r.Reason == nil {
		return ""
	}
	return *r.Reason
}

func mentionsOld(text string) bool { return strings.Contains(text, "oldSelf") }

// stronger returns one of the rules that holds only if r does, nil if none is
// found.
func (c *comparer) stronger(rules []*rule, r *rule, pairs *int) *rule {
	b := c.tree(r)
	if b == nil {
		return nil
	}
	for _, a := range rules {
		if *pairs--; *pairs < 0 {
			return nil
		}
		// A rule about the old value says nothing about new objects. With optionalOldSelf,
		// oldSelf means something else.
		if mentionsOld(a.Rule.Rule) && (!mentionsOld(r.Rule.Rule) || evaluated(a) != evaluated(r)) {
			continue
		}
		t := c.tree(a)
		if t == nil {
			continue
		}
		steps := impliesSteps
		if implies(t, b, &steps) {
			return a
		}
	}
	return nil
}

// implies proves, without knowing what names mean, that b is true where a is.
func implies(a, b ast.Expr, steps *int) bool {
	if *steps--; *steps < 0 {
		return false
	}
	if equal(a, b, steps) || isTrue(b) || isFalse(a) {
		return true
	}
	opA, argsA := call(a)
	opB, argsB := call(b)
	switch opB {
	case operators.LogicalAnd:
		return implies(a, argsB[0], steps) && implies(a, argsB[1], steps)
	case operators.LogicalOr:
		if implies(a, argsB[0], steps) || implies(a, argsB[1], steps) {
			return true
		}
	}
	switch opA {
	case operators.LogicalOr:
		return implies(argsA[0], b, steps) && implies(argsA[1], b, steps)
	case operators.LogicalAnd:
		return implies(argsA[0], b, steps) || implies(argsA[1], b, steps)
	case operators.Conditional:
		return opB == opA && equal(argsA[0], argsB[0], steps) && implies(argsA[1], argsB[1], steps) && implies(argsA[2], argsB[2], steps)
	case operators.LogicalNot:
		return opB == opA && implies(argsB[0], argsA[0], steps)
	case "all", "exists":
		return opB == opA && len(argsA) == 3 && len(argsB) == 3 &&
			equal(argsA[0], argsB[0], steps) && equal(argsA[1], argsB[1], steps) && implies(argsA[2], argsB[2], steps)
	}
	return tighter(opA, opB, argsA, argsB, steps)
}

// call returns the function of a call and its arguments, the target first.
func call(e ast.Expr) (string, []ast.Expr) {
	if e.Kind() != ast.CallKind {
		return "", nil
	}
	k := e.AsCall()
	if k.IsMemberFunction() {
		return k.FunctionName(), append([]ast.Expr{k.Target()}, k.Args()...)
	}
	return k.FunctionName(), k.Args()
}

// tighter compares two comparisons of the same expression with constants. Equal ones
// are none of its business.
func tighter(opA, opB string, a, b []ast.Expr, steps *int) bool {
	if len(a) != 2 || len(b) != 2 || !equal(a[0], b[0], steps) {
		return false
	}
	if opB == operators.In {
		if opA == operators.Equals {
			return lists(b[1], []ast.Expr{a[1]}, steps)
		}
		return opA == operators.In && a[1].Kind() == ast.ListKind && len(a[1].AsList().OptionalIndices()) == 0 &&
			lists(b[1], a[1].AsList().Elements(), steps)
	}
	x, okX := a[1].AsLiteral().(types.Int) // nil if it is no literal
	y, okY := b[1].AsLiteral().(types.Int)
	if !okX || !okY {
		return false
	}
	less := opA == operators.Less || opA == operators.LessEquals
	more := opA == operators.Greater || opA == operators.GreaterEquals
	switch opB {
	case operators.LessEquals:
		return (less || opA == operators.Equals) && x <= y
	case operators.Less:
		return (less || opA == operators.Equals) && x < y
	case operators.GreaterEquals:
		return (more || opA == operators.Equals) && x >= y
	case operators.Greater:
		return (more || opA == operators.Equals) && x > y
	case operators.NotEquals:
		return opA == operators.Equals && x != y
	}
	return false
}

// lists reports whether a list has all of some members, and beside them only what cannot fail.
func lists(e ast.Expr, members []ast.Expr, steps *int) bool {
	if len(e.AsList().OptionalIndices()) > 0 {
		return false
	}
	within := func(x ast.Expr, list []ast.Expr) bool {
		return slices.ContainsFunc(list, func(y ast.Expr) bool { return equal(x, y, steps) })
	}
	list := e.AsList().Elements() // none if it is no list
	return !slices.ContainsFunc(members, func(x ast.Expr) bool { return !within(x, list) }) &&
		!slices.ContainsFunc(list, func(x ast.Expr) bool { return x.Kind() != ast.LiteralKind && !within(x, members) })
}

func isTrue(e ast.Expr) bool {
	return e != nil && e.AsLiteral() == types.True
}

func isFalse(e ast.Expr) bool {
	return e.AsLiteral() == types.False
}

func equal(a, b ast.Expr, steps *int) bool {
	x, y := appendExpr(nil, a), appendExpr(nil, b)
	*steps -= (len(x) + len(y)) / 64
	return string(x) == string(y)
}

// appendExpr writes an expression in a form that only depends on its tree.
func appendExpr(b []byte, e ast.Expr) []byte {
	list := func(name string, parts ...ast.Expr) []byte {
		b = append(append(b, '('), name...)
		for _, p := range parts {
			b = appendExpr(append(b, ' '), p)
		}
		return append(b, ')')
	}
	switch e.Kind() {
	case ast.LiteralKind:
		v := e.AsLiteral()
		return fmt.Appendf(b, "%s:%q", v.Type().TypeName(), fmt.Sprint(v.Value()))
	case ast.IdentKind:
		return append(b, e.AsIdent()...)
	case ast.SelectKind:
		s := e.AsSelect()
		return list(fmt.Sprintf("select %q %t", s.FieldName(), s.IsTestOnly()), s.Operand())
	case ast.CallKind:
		name, args := call(e)
		return list(fmt.Sprintf("call %q %t", name, e.AsCall().IsMemberFunction()), args...)
	case ast.ListKind:
		return list(fmt.Sprintf("list %v", e.AsList().OptionalIndices()), e.AsList().Elements()...)
	case ast.MapKind:
		b = append(b, "(map"...)
		for _, entry := range e.AsMap().Entries() {
			m := entry.AsMapEntry()
			b = appendExpr(fmt.Appendf(b, " %t ", m.IsOptional()), m.Key())
			b = appendExpr(append(b, ' '), m.Value())
		}
		return append(b, ')')
	case ast.StructKind:
		b = append(append(b, "(struct "...), e.AsStruct().TypeName()...)
		for _, entry := range e.AsStruct().Fields() {
			f := entry.AsStructField()
			b = appendExpr(fmt.Appendf(b, " %q %t ", f.Name(), f.IsOptional()), f.Value())
		}
		return append(b, ')')
	}
	return fmt.Appendf(b, "(%p)", e) // an expanded macro: there is none, and none is equal to another
}
