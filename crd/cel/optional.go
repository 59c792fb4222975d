package cel

import (
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/interpreter"
)

// shortCircuitOptionals makes or and orValue of optional values evaluate their
// argument only if it is needed. CEL's optional library does this as part of
// planning, in a way that only its own programs can use.
func shortCircuitOptionals(i interpreter.InterpretableV2) (interpreter.InterpretableV2, error) {
	call, ok := i.(interpreter.InterpretableCall)
	if !ok || len(call.Args()) != 2 {
		return i, nil
	}
	unwrap := call.Function() == "orValue"
	overload := "optional_or_optional"
	if unwrap {
		overload = "optional_orValue_value"
	} else if call.Function() != "or" {
		return i, nil
	}
	if id := call.OverloadID(); id != "" && id != overload {
		return i, nil
	}
	return &alternative{id: call.ID(), first: call.Args()[0], second: call.Args()[1], unwrap: unwrap}, nil
}

// alternative is an optional value, or something else in case it has none.
type alternative struct {
	id            int64
	first, second interpreter.InterpretableV2
	unwrap        bool // the result is the value rather than the optional
}

// ID implements interpreter.InterpretableV2.
func (a *alternative) ID() int64 { return a.id }

// Exec implements interpreter.InterpretableV2.
func (a *alternative) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	first := a.first.Exec(frame)
	if types.IsUnknownOrError(first) {
		return first
	}
	o, ok := first.(*types.Optional)
	switch {
	case !ok:
		return types.NoSuchOverloadErr()
	case !o.HasValue():
		return a.second.Exec(frame)
	case a.unwrap:
		return o.GetValue()
	}
	return first
}

// Eval implements interpreter.Interpretable.
func (a *alternative) Eval(vars interpreter.Activation) ref.Val {
	return a.Exec(interpreter.AsFrame(vars))
}
