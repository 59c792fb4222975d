package cel

import (
	"slices"

	"github.com/google/cel-go/common/functions"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/interpreter"

	"github.com/espalier-dev/espalier/internal/quantities"
)

// quantityOverloads are the functions that read quantities. CEL prices them by the length
// of the text, and a text of ten bytes can take a minute: 9e99999999.
var quantityOverloads = []string{"string_to_quantity", "is_quantity_string"}

// boundQuantities returns a decorator that has quantities refused that take too long to
// compute with. kube-apiserver computes.
func boundQuantities(bindings []*functions.Overload) interpreter.InterpretableDecoratorV2 {
	read := map[string]functions.UnaryOp{}
	for _, b := range bindings {
		if slices.Contains(quantityOverloads, b.Operator) {
			read[b.Operator] = b.Unary
		}
	}
	return func(i interpreter.InterpretableV2) (interpreter.InterpretableV2, error) {
		call, ok := i.(interpreter.InterpretableCall)
		if !ok || read[call.OverloadID()] == nil || len(call.Args()) != 1 {
			return i, nil
		}
		return &boundedQuantity{InterpretableCall: call, text: call.Args()[0], read: read[call.OverloadID()]}, nil
	}
}

// boundedQuantity reads a quantity that does not take too long to compute with.
type boundedQuantity struct {
	interpreter.InterpretableCall
	text interpreter.InterpretableV2
	read functions.UnaryOp
}

// Exec implements interpreter.InterpretableV2.
func (b *boundedQuantity) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	v := b.text.Exec(frame)
	if types.IsUnknownOrError(v) {
		return v
	}
	if text, ok := v.(types.String); ok && quantities.Costly(string(text)) {
		return types.NewErr("a quantity must have at most %d digits, and at most %d in its exponent", quantities.MaxLength, quantities.MaxExponent)
	}
	return b.read(v)
}

// Eval implements interpreter.Interpretable.
func (b *boundedQuantity) Eval(vars interpreter.Activation) ref.Val {
	return b.Exec(interpreter.AsFrame(vars))
}
