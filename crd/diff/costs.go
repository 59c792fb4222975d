package diff

import (
	"math"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
)

// What API servers allow: a larger request is refused, and so is an object if one evaluation of a rule costs more.
// See MaxRequestSizeBytes and PerCallLimit in k8s.io/apiserver/pkg/apis/cel.
const (
	maxRequest    = 3 << 20
	maxEvaluation = 1_000_000
)

// cost returns a bound of what evaluating an expression costs for old objects, infinite if there is none. What is
// skipped because of what comes before it costs nothing.
func (b *believer) cost(e ast.Expr) float64 {
	op, args := call(e)
	switch op {
	case operators.LogicalOr, operators.LogicalAnd:
		if skips := map[string]truth{operators.LogicalOr: proven, operators.LogicalAnd: refuted}[op]; b.truth(args[0]) == skips {
			return b.cost(args[0])
		}
	case operators.Conditional:
		switch b.truth(args[0]) {
		case proven:
			args = args[:2]
		case refuted:
			args = []ast.Expr{args[0], args[2]}
		}
	case "matches":
		if len(args) == 2 {
			return b.costOfMatch(args)
		}
	}
	sum := ownCost(e, op, args)
	for _, x := range args {
		sum += b.cost(x)
	}
	return sum
}

// ownCost returns a bound of what an expression costs beside its arguments.
func ownCost(e ast.Expr, op string, args []ast.Expr) float64 {
	switch e.Kind() {
	case ast.LiteralKind, ast.IdentKind:
		return 1
	case ast.SelectKind:
		return 1 + ownCost(e.AsSelect().Operand(), "", nil)
	case ast.CallKind:
		switch op {
		case operators.LogicalNot, operators.LogicalOr, operators.LogicalAnd, operators.Conditional, "has", "size":
			return 1
		case operators.Equals, operators.NotEquals, operators.Less, operators.LessEquals, operators.Greater, operators.GreaterEquals, operators.In:
			// As much of a value is compared as the constant has.
			return min(lengthOf(args[0]), lengthOf(args[1]))
		}
	case ast.ListKind:
		return lengthOf(e)
	}
	return math.Inf(1)
}

// lengthOf returns a bound of the cost of comparing with a constant, infinite if it is none.
func lengthOf(e ast.Expr) float64 {
	switch e.Kind() {
	case ast.LiteralKind:
		if text, ok := e.AsLiteral().(types.String); ok {
			return 1 + float64(len(text))
		}
		return 1
	case ast.ListKind:
		sum := 10.0
		for _, x := range e.AsList().Elements() {
			sum += lengthOf(x)
		}
		return sum
	}
	return math.Inf(1)
}

// costOfMatch returns a bound of what comparing a field with a pattern costs: every character of the string with every
// character of the pattern.
func (b *believer) costOfMatch(args []ast.Expr) float64 {
	path, ok := pathOf(args[0])
	expr, literal := args[1].AsLiteral().(types.String)
	if !ok || !literal {
		return math.Inf(1)
	}
	longest := int64(maxRequest)
	if f, ok := b.find(path); ok && f.how == specified {
		if most, limited := f.longest(); limited {
			longest = min(longest, most)
		}
		if _, most, bounded := f.lengths(); bounded {
			longest = min(longest, most)
		}
	}
	return float64(len(path)) + math.Ceil(float64(1+longest)/10)*math.Ceil(float64(len(expr))/4)
}
