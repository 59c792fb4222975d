package conversion

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"github.com/google/cel-go/interpreter"
)

// ordered is a map whose keys CEL visits in their order. Maps of CEL are visited in another order each time: a list made of
// one would differ from read to read.
type ordered struct{ traits.Mapper }

// Iterator implements traits.Iterable.
func (m ordered) Iterator() traits.Iterator {
	var keys []ref.Val
	for it := m.Mapper.Iterator(); it.HasNext() == types.True; {
		keys = append(keys, it.Next())
	}
	slices.SortFunc(keys, func(a, b ref.Val) int {
		if x, ok := a.(types.String); ok {
			if y, ok := b.(types.String); ok {
				return cmp.Compare(x, y)
			}
		}
		return cmp.Or(cmp.Compare(a.Type().TypeName(), b.Type().TypeName()), cmp.Compare(fmt.Sprint(a.Value()), fmt.Sprint(b.Value())))
	})
	return types.NewRefValList(types.DefaultTypeAdapter, keys).Iterator()
}

func order(v ref.Val) ref.Val {
	if m, ok := v.(traits.Mapper); ok {
		if _, is := v.(ordered); !is {
			return ordered{m}
		}
	}
	return v
}

// ordering makes all maps of objects ordered.
type ordering struct{ types.Adapter }

// NativeToValue implements types.Adapter.
func (a ordering) NativeToValue(value any) ref.Val {
	switch v := value.(type) {
	case map[string]any:
		return ordered{types.NewStringInterfaceMap(a, v)}
	case []any:
		return types.NewDynamicList(a, v)
	}
	return a.Adapter.NativeToValue(value)
}

// orderedResult makes maps ordered that a macro makes.
type orderedResult struct{ interpreter.InterpretableV2 }

// Exec implements interpreter.InterpretableV2.
func (o orderedResult) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	return order(o.InterpretableV2.Exec(frame))
}

// Eval implements interpreter.Interpretable.
func (o orderedResult) Eval(vars interpreter.Activation) ref.Val {
	return order(o.InterpretableV2.Eval(vars))
}

// orderedLiteral makes maps ordered that are written in the expression.
type orderedLiteral struct {
	interpreter.InterpretableConstructor
}

// Exec implements interpreter.InterpretableV2.
func (o orderedLiteral) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	return order(o.InterpretableConstructor.Exec(frame))
}

// Eval implements interpreter.Interpretable.
func (o orderedLiteral) Eval(vars interpreter.Activation) ref.Val {
	return order(o.InterpretableConstructor.Eval(vars))
}

// orderResults is a decorator of programs. Values of the object are ordered by the adapter; calls have no maps of their own.
func orderResults(i interpreter.InterpretableV2) (interpreter.InterpretableV2, error) {
	switch i := i.(type) {
	case interpreter.InterpretableAttribute, interpreter.InterpretableConst, interpreter.InterpretableCall:
		return i, nil
	case interpreter.InterpretableConstructor:
		return orderedLiteral{i}, nil
	}
	return orderedResult{i}, nil
}
