package cel

import (
	"fmt"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/checker"
	"github.com/google/cel-go/common"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/interpreter"

	apiservercel "k8s.io/apiserver/pkg/cel"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/espalier-dev/espalier/crd/cel/celsize"
	"github.com/espalier-dev/espalier/internal/compile"
	"github.com/espalier-dev/espalier/internal/plan"
)

// problem is why an expression cannot be used.
type problem struct {
	detail string // as the API server says it
	line   int    // in the expression, from 1; 0 if the problem is nowhere in particular
	column int    // from 0, in characters
	first  string // what the compiler says of that place; "" if there is none
}

// expression is a checked expression.
type expression struct {
	ast  *cel.Ast
	lang *language
}

// scope compiles the expressions of the rules of one node.
type scope struct {
	lang     *language
	node     *plan.Node
	resource bool
	types    *schemaTypes
	sizes    *sizes
	checkers [2]*checker.Env // with oldSelf, and with an optional one
}

func newScope(l *language, n *plan.Node, resource bool, z *sizes) *scope {
	return &scope{lang: l, node: n, resource: resource, types: newSchemaTypes(l, n, resource, z.views), sizes: z}
}

func (s *scope) checker(optionalOld bool) (*checker.Env, error) {
	i := 0
	if optionalOld {
		i = 1
	}
	if s.checkers[i] == nil {
		c, err := s.lang.declaring(s.types, optionalOld)
		if err != nil {
			return nil, err
		}
		s.checkers[i] = c
	}
	return s.checkers[i], nil
}

// parse parses and checks an expression. prefix begins the text of a problem.
func (s *scope) parse(text string, optionalOld bool, want *types.Type, prefix, wantText string) (*expression, *problem) {
	parsed, issues := s.lang.env.Parse(text)
	if issues.Err() != nil {
		return nil, issueProblem(prefix, issues)
	}
	c, err := s.checker(optionalOld)
	if err != nil {
		return nil, &problem{detail: prefix + err.Error()}
	}
	tree := parsed.NativeRep()
	if new(celsize.Bound).TooLarge(tree.Expr()) {
		return nil, &problem{detail: prefix + celsize.Reason}
	}
	checked, errs := checker.Check(tree, parsed.Source(), c)
	if len(errs.GetErrors()) > 0 {
		return nil, issueProblem(prefix, cel.NewIssuesWithSourceInfo(errs, tree.SourceInfo()))
	}
	issues = cel.NewIssuesWithSourceInfo(errs, checked.SourceInfo())
	for _, v := range s.lang.env.Validators() {
		v.Validate(s.lang.env, s.lang.validators, checked, issues)
	}
	if issues.Err() != nil {
		return nil, issueProblem(prefix, issues)
	}
	// A cel.Ast is made by a cel.Env only. This is how one gets a tree that was
	// checked elsewhere.
	*tree = *checked
	if parsed.OutputType() != want {
		return nil, &problem{detail: wantText}
	}
	return &expression{ast: parsed, lang: s.lang}, nil
}

// issueProblem describes the errors of the compiler, and is at the first that has a place.
func issueProblem(prefix string, issues *cel.Issues) *problem {
	p := &problem{detail: prefix + plainTypes(issues.String())}
	for _, e := range issues.Errors() {
		if e.Location != nil && e.Location != common.NoLocation {
			p.line, p.column, p.first = e.Location.Line(), e.Location.Column(), plainTypes(e.Message)
			if others := len(issues.Errors()) - 1; others > 0 {
				p.first += fmt.Sprintf(" (and %d more in this expression)", others)
			}
			break
		}
	}
	return p
}

// usesOldSelf reports whether the expression refers to the old value.
func (e *expression) usesOldSelf() bool {
	for _, r := range e.tree().ReferenceMap() {
		if r.Name == oldSelfName {
			return true
		}
	}
	return false
}

func (e *expression) tree() *ast.AST { return e.ast.NativeRep() }

// fast returns a program that does not count cost. CEL evaluates literals while
// it plans, and panics on some: maps whose keys are bytes, for example.
func (e *expression) fast() (program interpreter.InterpretableV2, err error) {
	defer recoverEval(&err)
	return e.lang.fast.NewInterpretable(e.tree(), e.lang.planning...)
}

// fieldPath returns a rule's fieldPath as it is shown in errors, "" if it does
// not lead to a field of n.
func fieldPath(n *plan.Node, text string) string {
	var at *field.Path
	err := compile.EachName(text, true, func(name string) bool {
		switch {
		case n != nil && n.Props != nil:
			at, n = at.Child(name), n.Property(name)
			return n != nil
		case n != nil && n.Flags&plan.Additional != 0:
			at, n = at.Key(name), n.Additional
			return true
		}
		return false
	})
	if err != nil || at == nil {
		return ""
	}
	return at.String()
}

// maxCardinality returns how often values of a node of the given size fit a
// request.
func maxCardinality(size int64) uint64 {
	return uint64(apiservercel.DefaultMaxRequestSizeBytes / (size + 1))
}
