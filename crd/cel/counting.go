package cel

import (
	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/interpreter"

	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/library"
)

// CEL counts cost with a stack of the values that steps of an expression have
// had. Each step looks on it for the values of its arguments, from the top, and
// takes off what is above them. A loop leaves values of every iteration on the
// stack until it is over, and steps whose arguments are not on the stack search
// all of them: counting a loop takes time quadratic in its length, minutes for
// an expression that is within the limits.
//
// So the loops of an expression that is counted are given one more step, at the
// end of each iteration, which costs nothing and takes from the stack what the
// iteration has left there. It does so by naming as its argument itself: what is
// above its own value of the iteration before.

// endOfIteration is the function that is put around the step of a loop.
const endOfIteration = "@end_of_iteration"

// countingProgram returns a program that counts the cost of e as the API server
// does, in linear time. It takes e over.
func (e *expression) countingProgram() (p cel.Program, err error) {
	defer recoverEval(&err)
	markIterations(e.tree())
	return e.plainCountingProgram(cel.CustomDecoratorV2(clearIterations))
}

// plainCountingProgram counts as CEL does by itself.
func (e *expression) plainCountingProgram(more ...cel.ProgramOption) (cel.Program, error) {
	return e.lang.env.PlanProgram(e.tree(), append(more, cel.CustomDecoratorV2(e.lang.quantities), cel.CostLimit(celconfig.PerCallLimit), cel.CostTracking(iterationsAreFree{&library.CostEstimator{}}))...)
}

// markIterations puts a call around the steps of all loops.
func markIterations(tree *ast.AST) {
	id := ast.MaxID(tree)
	f := ast.NewExprFactory()
	ast.PostOrderVisit(tree.Expr(), ast.NewExprVisitor(func(x ast.Expr) {
		if x.Kind() != ast.ComprehensionKind {
			return
		}
		c := x.AsComprehension()
		id++
		step := f.NewCall(id, endOfIteration, c.LoopStep())
		x.SetKindCase(f.NewComprehensionTwoVar(x.ID(), c.IterRange(), c.IterVar(), c.IterVar2(), c.AccuVar(), c.AccuInit(), c.LoopCondition(), step, c.Result()))
	}))
}

// clearIterations makes steps of the calls that markIterations has made.
func clearIterations(i interpreter.InterpretableV2) (interpreter.InterpretableV2, error) {
	call, ok := i.(interpreter.InterpretableCall)
	if !ok || call.Function() != endOfIteration {
		return i, nil
	}
	return &iteration{InterpretableCall: call, step: call.Args()[0]}, nil
}

// iteration is the last step of an iteration.
type iteration struct {
	interpreter.InterpretableCall
	step interpreter.InterpretableV2
}

// Args implements interpreter.InterpretableCall.
func (i *iteration) Args() []interpreter.InterpretableV2 { return []interpreter.InterpretableV2{i} }

// Exec implements interpreter.InterpretableV2.
func (i *iteration) Exec(frame *interpreter.ExecutionFrame) ref.Val { return i.step.Exec(frame) }

// Eval implements interpreter.Interpretable.
func (i *iteration) Eval(vars interpreter.Activation) ref.Val {
	return i.Exec(interpreter.AsFrame(vars))
}

// iterationsAreFree prices calls as the API server does.
type iterationsAreFree struct{ *library.CostEstimator }

// CallCost implements interpreter.ActualCostEstimator.
func (p iterationsAreFree) CallCost(function, overload string, args []ref.Val, result ref.Val) *uint64 {
	if function == endOfIteration {
		return new(uint64)
	}
	return p.CostEstimator.CallCost(function, overload, args, result)
}
