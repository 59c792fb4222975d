package kinds

import (
	"fmt"
	"regexp"
	"slices"
	"sync"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/ext"
	"github.com/google/cel-go/interpreter"
	"go.yaml.in/yaml/v3"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/cel/library"
)

// language parses the expressions of all files. Expressions are not checked here: the
// files are part of the program, and a test checks the types of every expression.
// Checking takes longer than everything else. The libraries are those of Kubernetes, but
// not its environment: that one counts the cost of every step, for the rules of users,
// which doubles the time of an evaluation.
var language = sync.OnceValue(func() *cel.Env {
	env, err := cel.NewCustomEnv(slices.Concat([]cel.EnvOption{
		cel.StdLib(), cel.DefaultUTCTimeZone(true), cel.CrossTypeNumericComparisons(true), cel.OptionalTypes(),
		ext.Strings(ext.StringsVersion(2)), ext.Sets(), ext.TwoVarComprehensions(), ext.Lists(ext.ListsVersion(3)),
		library.URLs(), library.Regex(), library.Quantity(), library.IP(), library.CIDR(), library.Format(),
		library.SemverLib(library.SemverVersion(1)), library.Lists(library.ListsVersion(1)),
	}, functions(), workloadFunctions())...)
	if err != nil {
		panic(fmt.Sprintf("kinds: making the CEL environment failed: %v", err))
	}
	return env
})

// expr is a CEL expression. It is parsed at its first use.
type expr struct {
	source  string
	once    sync.Once
	program cel.Program
	err     error
}

// UnmarshalYAML implements yaml.Unmarshaler.
func (e *expr) UnmarshalYAML(node *yaml.Node) error {
	if node.Kind != yaml.ScalarNode {
		return fmt.Errorf("line %d: an expression is needed", node.Line)
	}
	e.source = node.Value
	return nil
}

// eval evaluates the expression.
func (e *expr) eval(s *scope) (ref.Val, error) {
	e.once.Do(func() {
		parsed, issues := language().Parse(e.source)
		if e.err = issues.Err(); e.err == nil {
			resolve(parsed.NativeRep())
			e.program, e.err = language().Program(parsed, cel.EvalOptions(cel.OptOptimize))
		}
	})
	if e.err != nil {
		return nil, fmt.Errorf("%s: %w", e.source, e.err)
	}
	value, _, err := e.program.Eval(s)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", e.source, err)
	}
	return value, nil
}

// resolve says what the names of an expression are: variables, unless they are types.
// The checker would do so. Without it, self.spec.replicas is first looked for as a
// variable of this name, then self.spec. It also joins texts that are written in parts:
// a regular expression is compiled once only if it is one text.
func resolve(tree *ast.AST) {
	known, factory := language().CELTypeProvider(), ast.NewExprFactory()
	ast.PostOrderVisit(tree.Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		switch e.Kind() {
		case ast.IdentKind:
			if _, isType := known.FindIdent(e.AsIdent()); !isType {
				tree.SetReference(e.ID(), ast.NewIdentReference(e.AsIdent(), nil))
			}
		case ast.CallKind:
			if call := e.AsCall(); call.FunctionName() == operators.Add && isText(call.Args()[0]) && isText(call.Args()[1]) {
				joined := call.Args()[0].AsLiteral().(types.String).Add(call.Args()[1].AsLiteral())
				e.SetKindCase(factory.NewLiteral(e.ID(), joined))
			}
		}
	}))
}

func isText(e ast.Expr) bool {
	return e.Kind() == ast.LiteralKind && e.AsLiteral().Type() == types.StringType
}

// truth evaluates a condition. None is true.
func (e *expr) truth(s *scope) (bool, error) {
	if e == nil {
		return true, nil
	}
	value, err := e.eval(s)
	if err != nil {
		return false, err
	}
	b, ok := value.(types.Bool)
	if !ok {
		return false, fmt.Errorf("%s: the result is a %s and not a bool", e.source, value.Type().TypeName())
	}
	return bool(b), nil
}

// text evaluates an expression that gives a string.
func (e *expr) text(s *scope) (string, error) {
	value, err := e.eval(s)
	if err != nil {
		return "", err
	}
	t, ok := value.(types.String)
	if !ok {
		return "", fmt.Errorf("%s: the result is a %s and not a string", e.source, value.Type().TypeName())
	}
	return string(t), nil
}

// scope has the variables of an expression.
type scope struct {
	self, parent, root, old, oldRoot ref.Val
	item, outer                      ref.Val
	index                            int
	update                           bool
	kind                             string
	path                             *field.Path
	lets                             []*variable
	failed                           func() ref.Val // may be nil
}

// variable is one of a rule's own. It is computed when it is read: most rules are about
// lists that most objects do not have.
type variable struct {
	name  string
	expr  *expr
	in    *scope
	value ref.Val
}

// read returns the value, or the error as CEL has it.
func (v *variable) read() ref.Val {
	if v.value == nil {
		var err error
		if v.value, err = v.expr.eval(v.in); err != nil {
			v.value = types.WrapErr(err)
		}
	}
	return v.value
}

var _ interpreter.Activation = (*scope)(nil)

// ResolveName implements interpreter.Activation.
func (s *scope) ResolveName(name string) (any, bool) {
	var v ref.Val
	switch name {
	case "self":
		v = s.self
	case "parent":
		v = s.parent
	case "root":
		v = s.root
	case "old":
		v = s.old
	case "oldRoot":
		v = s.oldRoot
	case "item":
		v = s.item
	case "outer":
		v = s.outer
	case "index":
		return types.Int(s.index), true
	case "update":
		return types.Bool(s.update), true
	case "kind":
		return types.String(s.kind), true
	case "path":
		return types.String(pathText(s.path)), true
	case "failed":
		if s.failed != nil {
			v = s.failed()
		}
	default:
		for i := len(s.lets) - 1; i >= 0; i-- {
			if s.lets[i].name == name {
				return s.lets[i].read(), true
			}
		}
		return nil, false
	}
	return v, v != nil
}

// Parent implements interpreter.Activation.
func (*scope) Parent() interpreter.Activation { return nil }

// pattern is a regular expression.
type pattern struct{ *regexp.Regexp }

// UnmarshalYAML implements yaml.Unmarshaler.
func (p *pattern) UnmarshalYAML(node *yaml.Node) (err error) {
	p.Regexp, err = regexp.Compile(node.Value)
	return err
}
