package bug

const (
	execPackage = "github.com/espalier-dev/espalier/internal/exec"
	planPackage = "github.com/espalier-dev/espalier/internal/plan"
	celPackage  = "github.com/espalier-dev/espalier/crd/cel"
)

// Engine are bugs of the engine: wrong answers about schemas, rules and objects.
var Engine = []Bug{
	{
		Name: "bound-2-63", What: "a bound of 2^63 is taken for one that an int64 holds",
		Edits: []Edit{{execPackage, "number.go", "if bound >= 1<<63 || bound < -1<<63 ||", "if bound > 1<<63 || bound < -1<<63 ||"}},
	},
	{
		Name: "cel-set-duplicates", What: "a sum of sets keeps what the second one has twice",
		Edits: []Edit{{celPackage, "value_sets.go", "if _, dup := seen[k]; !dup {\n\t\t\tseen[k] = struct{}{}\n\t\t\tvalues", "if _, dup := seen[k]; !dup {\n\t\t\tvalues"}},
	},
	{
		Name: "cel-cost-old", What: "the bound of a rule's cost ignores the old object",
		Edits: []Edit{{celPackage, "run.go", "sizeOf(run.Doc, run.Old)", "sizeOf(run.Doc)"}},
	},
	{
		Name: "cel-field-path", What: "nodes whose rules differ in fieldPath only are shared",
		Edits: []Edit{{planPackage, "intern.go", "x.MessageExpression, x.Reason, x.FieldPath}", "x.MessageExpression, x.Reason}"}},
	},
	{
		Name: "cel-exists-one", What: "exists_one stops at the second item, and so hides errors of later ones",
		Edits: []Edit{{celPackage, "expression.go", "return e.lang.fast.NewInterpretable(e.tree(), e.lang.planning...)", existsOneStops}},
	},
}

const existsOneStops = `tree := ast.Copy(e.tree())
	id, f := ast.MaxID(tree), ast.NewExprFactory()
	ast.PostOrderVisit(tree.Expr(), ast.NewExprVisitor(func(x ast.Expr) {
		if x.Kind() != ast.ComprehensionKind {
			return
		}
		c := x.AsComprehension()
		if c.Result().Kind() != ast.CallKind || c.Result().AsCall().FunctionName() != "_==_" {
			return
		}
		id += 3
		condition := f.NewCall(id, "_<_", f.NewAccuIdent(id-1), f.NewLiteral(id-2, types.Int(2)))
		tree.SetReference(id, ast.NewFunctionReference("less_int64"))
		x.SetKindCase(f.NewComprehensionTwoVar(x.ID(), c.IterRange(), c.IterVar(), c.IterVar2(), c.AccuVar(), c.AccuInit(), condition, c.LoopStep(), c.Result()))
	}))
	return e.lang.fast.NewInterpretable(tree, e.lang.planning...)`
