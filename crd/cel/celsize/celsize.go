package celsize

import (
	"fmt"
	"slices"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
)

// Max is how many names the type of an expression may be made of:
// map(string, list(int)) has four. What people write stays below ten.
const Max = 128

// Reason says what is wrong with an expression that is too large.
var Reason = fmt.Sprintf("the types of its parts are too large: maps and lists may be nested in each other until a type has %d names", Max)

// Bound knows the sizes of variables that expressions refer to as variables.name. Its
// zero value knows none.
type Bound struct {
	variables map[string]int
	bound     map[string]int // by comprehensions around
	largest   int
}

// TooLarge reports whether a part of an expression has a type of more names than Max.
func (t *Bound) TooLarge(e ast.Expr) bool {
	t.bound, t.largest = map[string]int{}, 0
	t.size(e)
	return t.largest > Max
}

// Declare remembers a variable by the size of its type, which is not too large.
func (t *Bound) Declare(name string, output *types.Type) {
	if t.variables == nil {
		t.variables = map[string]int{}
	}
	t.variables[name] = sizeOf(output)
}

// sizeOf counts the names in a type. It is called for types that are not too
// large.
func sizeOf(output *types.Type) int {
	if output == nil {
		return 1
	}
	size := 1
	for _, parameter := range output.Parameters() {
		size += sizeOf(parameter)
	}
	return size
}

// size returns the most that the type of e can have.
func (t *Bound) size(e ast.Expr) int {
	if t.largest > Max {
		return t.largest // no need to look any further
	}
	size := 1
	switch e.Kind() {
	case ast.IdentKind:
		size = max(1, t.bound[e.AsIdent()])
	case ast.SelectKind:
		size = t.selected(e.AsSelect())
	case ast.CallKind:
		size = t.call(e.AsCall())
	case ast.ListKind:
		size = 1 + t.most(e.AsList().Elements())
	case ast.MapKind:
		size = t.mapLiteral(e.AsMap())
	case ast.StructKind:
		for _, f := range e.AsStruct().Fields() {
			t.size(f.AsStructField().Value())
		}
	case ast.ComprehensionKind:
		size = t.comprehension(e.AsComprehension())
	}
	t.largest = max(t.largest, size)
	return size
}

func (t *Bound) most(all []ast.Expr) int {
	most := 1
	for _, e := range all {
		most = max(most, t.size(e))
	}
	return most
}

func (t *Bound) selected(s ast.SelectExpr) int {
	operand := s.Operand()
	if operand.AsIdent() == "variables" && t.bound["variables"] == 0 {
		return max(1, t.variables[s.FieldName()])
	}
	return t.size(operand)
}

func (t *Bound) mapLiteral(m ast.MapExpr) int {
	keys, values := 1, 1
	for _, entry := range m.Entries() {
		keys = max(keys, t.size(entry.AsMapEntry().Key()))
		values = max(values, t.size(entry.AsMapEntry().Value()))
	}
	return 1 + keys + values
}

// call is about operators, which return something like one of their operands, and
// functions: what they return may be made of all that they are given, as the map
// is that transformMap gathers.
func (t *Bound) call(c ast.CallExpr) int {
	given := c.Args()
	if c.IsMemberFunction() {
		given = append(slices.Clip(given), c.Target())
	}
	if _, operator := operators.FindReverse(c.FunctionName()); operator {
		return t.most(given)
	}
	size := 2
	for _, e := range given {
		if part := t.size(e); part > 1 {
			size += part
		}
	}
	return size
}

func (t *Bound) comprehension(c ast.ComprehensionExpr) int {
	over := t.size(c.IterRange())
	gathered := t.size(c.AccuInit())
	defer t.bind(c.IterVar(), over)()
	if c.HasIterVar2() {
		defer t.bind(c.IterVar2(), over)()
	}
	defer t.bind(c.AccuVar(), gathered)()
	t.size(c.LoopCondition())
	gathered = max(gathered, t.size(c.LoopStep()))
	t.bound[c.AccuVar()] = gathered
	return t.size(c.Result())
}

// bind gives a name a size, and returns what gives it back the one it had.
func (t *Bound) bind(name string, size int) func() {
	before := t.bound[name]
	t.bound[name] = size
	return func() { t.bound[name] = before }
}
