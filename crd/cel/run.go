package cel

import (
	"fmt"
	"math"
	"strings"
	"sync"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/interpreter"

	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"

	"github.com/espalier-dev/espalier/internal/exec"
	"github.com/espalier-dev/espalier/internal/jsondoc"
	"github.com/espalier-dev/espalier/internal/plan"
)

// Run implements exec.Rules.
func (s *set) Run(run *exec.RuleRun) {
	r := runs.Get().(*evaluation)
	defer r.close()
	r.begin(s, run)
	errs, warnings := len(run.Errors), len(run.Warnings)
	if r.attempt(false, celconfig.RuntimeCELCostBudget) {
		return
	}
	// The bounds do not tell that the budget is kept. Start over and count.
	run.Errors, run.Warnings = run.Errors[:errs], run.Warnings[:warnings]
	r.attempt(true, celconfig.RuntimeCELCostBudget)
}

// evaluation is one run of the rules of a set.
type evaluation struct {
	set   *set
	run   *exec.RuleRun
	self  reader
	old   reader
	size  level
	class int // of size

	count     bool  // the cost of everything
	remaining int64 // of the budget for the object; a lower bound unless everything is counted
	uncertain bool  // the budget may be exceeded

	site     *exec.RuleSite
	resource bool // rules see the value as a resource
	programs *programs
	plain    variables // oldSelf is the old value, if there is one
	optional variables // oldSelf is an optional value
}

var runs = sync.Pool{New: func() any { return new(evaluation) }}

func (r *evaluation) begin(s *set, run *exec.RuleRun) {
	r.set, r.run = s, run
	r.self.use(run.Doc, s.views)
	r.old.use(run.Old, s.views)
	r.size = sizeOf(run.Doc, run.Old)
	r.class = r.size.class()
}

func (r *evaluation) close() {
	r.self.close()
	r.old.close()
	*r = evaluation{self: r.self, old: r.old}
	runs.Put(r)
}

// attempt evaluates the rules. It reports false if it cannot tell without
// counting whether the budget is kept.
func (r *evaluation) attempt(count bool, budget int64) bool {
	r.count, r.remaining, r.uncertain = count, budget, false
	r.run.Visit(func(site *exec.RuleSite) bool {
		more := r.visit(site)
		r.self.reset()
		r.old.reset()
		return more
	})
	return !r.uncertain
}

// visit evaluates the rules of one value. It reports false if no more rules are
// to be run.
func (r *evaluation) visit(site *exec.RuleSite) bool {
	r.site = site
	r.resource = site.Resource
	if site.Value == jsondoc.Root {
		r.resource = r.set.resource
	}
	if !exposed(r.set.root) {
		r.hidden()
		return true
	}
	if r.programs = r.set.programs(site.Node, r.resource); r.programs == nil {
		return true
	}
	if r.remaining <= 0 {
		return r.exhausted(outOfBudget)
	}
	r.bind()
	for i := range r.programs.rules {
		if !r.rule(&r.programs.rules[i]) {
			return false
		}
	}
	return true
}

// hidden reports that the rules of a value cannot be compiled, because they are
// within a default of something that rules cannot see. Fields are passed over.
func (r *evaluation) hidden() {
	if at := r.site.Path(); at == "" || at[0] == '[' && !strings.Contains(at, "].") {
		r.fail("rule compiler initialization error: " + undeclared)
	}
}

// bind sets the variables for the site.
func (r *evaluation) bind() {
	r.plain = variables{self: r.self.root(r.site.Value, r.site.Node, r.resource)}
	r.optional = r.plain
	if !r.programs.old {
		return // not even messages see the old value then
	}
	r.optional.old = types.OptionalNone
	if r.site.HasOld {
		r.plain.old = r.old.root(r.site.Old, r.site.Node, r.resource)
		r.optional.old = types.OptionalOf(r.plain.old)
	}
}

const outOfBudget = "validation failed due to running out of cost budget, no further validation rules will be run"

// limitExceeded begins the error of an evaluation that exceeds the limit for one.
const limitExceeded = "operation cancelled: actual cost limit exceeded"

// rule evaluates one rule. It reports false if no more are to be run.
func (r *evaluation) rule(p *program) bool {
	switch {
	case p.empty:
		return true
	case p.problem != "":
		r.fail("rule compile error: " + p.problem)
		return true
	case p.old && !r.site.HasOld && !p.optionalOld():
		return true // a transition rule, and there is no old value
	}
	vars := &r.plain
	if p.optionalOld() {
		vars = &r.optional
	}
	result, cost, err := r.eval(&p.test, vars, p, (*scope).parseRule)
	if r.uncertain {
		return false
	}
	if cost > math.MaxInt64 || int64(cost) > r.remaining {
		return r.exhausted(outOfBudget)
	}
	r.remaining -= int64(cost)
	if err != nil {
		return r.failed(p, err)
	}
	if result == types.True {
		return true
	}
	return r.violated(p)
}

// eval evaluates an expression of p. The cost is that of the evaluation, or a
// bound of it.
func (r *evaluation) eval(e *evaluator, vars *variables, p *program, parse func(*scope, *plan.Rule) (*expression, *problem)) (ref.Val, uint64, error) {
	expression := func() *expression {
		s := newScope(r.set.lang, r.programs.key.declared, r.resource, newSizes(r.set.views))
		x, _ := parse(s, p.rule) // it has been parsed before
		return x
	}
	if !r.count {
		if bound := e.bound(r.size, r.class, expression); bound <= celconfig.PerCallLimit {
			if int64(bound) > r.remaining {
				r.uncertain = true
				return nil, 0, nil
			}
			out, err := e.eval(vars)
			return out, bound, err
		}
	}
	out, cost, err := e.count(vars, expression)
	if !r.count && int64(min(cost, math.MaxInt64)) > r.remaining {
		r.uncertain = true
	}
	return out, cost, err
}

// exhausted reports that a budget is used up.
func (r *evaluation) exhausted(detail string) bool {
	if !r.count {
		r.uncertain = true
		return false
	}
	r.fail(detail)
	r.remaining = -1
	return false
}

// failed reports that a rule could not be evaluated.
func (r *evaluation) failed(p *program, err error) bool {
	text := goTypes(err.Error())
	switch {
	case strings.HasPrefix(text, "no such overload"):
		r.fail(fmt.Sprintf("'%s': call arguments did not match a supported operator, function or macro signature for rule: %s", text, p.text()))
	case strings.HasPrefix(text, limitExceeded):
		r.fail(fmt.Sprintf("'%s': no further validation rules will be run due to call cost exceeds limit for rule: %s", text, p.text()))
		r.remaining = -1
		return false
	default:
		r.fail(fmt.Sprintf("%s evaluating rule: %s", text, p.text()))
	}
	return true
}

// apiServerTypes are the API server's names for the Go types of values.
var apiServerTypes = map[string]string{
	"*cel.object": "*common.unstructuredMap", "*cel.list": "*common.unstructuredList", "*cel.setList": "*common.unstructuredSetList",
	"*cel.mapList": "*common.unstructuredMapList", "*cel.sumSet": "*common.refValSetList", "*cel.sumMap": "*common.refValMapList",
}

// goTypes replaces the Go type that CEL names if a value cannot be a key.
func goTypes(text string) string {
	const prefix = "invalid qualifier type: "
	if name, ok := strings.CutPrefix(text, prefix); ok && apiServerTypes[name] != "" {
		return prefix + apiServerTypes[name]
	}
	return text
}

// violated reports that a rule says no. It reports false if the message cannot
// be had within the budget, and no more rules are to be run.
func (r *evaluation) violated(p *program) bool {
	detail := ""
	if p.message.fast != nil {
		text, fatal := r.message(p)
		switch {
		case r.uncertain:
			return false
		case fatal != "":
			r.add(p, r.violation(p.path, field.ErrorTypeInvalid, r.typeName(), fatal))
			r.remaining = -1
			return false
		}
		detail = text
	}
	if detail == "" {
		if detail = p.text(); p.rule.Message == "" {
			detail = "failed rule: " + detail
		}
	}
	var value any = field.OmitValueType{}
	if t := r.site.Node.Type; t != plan.Object && t != plan.Array {
		value = r.run.Doc.Any(r.site.Value)
	}
	switch p.rule.Reason {
	case "FieldValueForbidden":
		r.add(p, r.violation(p.path, field.ErrorTypeForbidden, "", detail))
	case "FieldValueRequired":
		r.add(p, r.violation(p.path, field.ErrorTypeRequired, "", detail))
	case "FieldValueDuplicate":
		r.add(p, r.violation(p.path, field.ErrorTypeDuplicate, value, ""))
	default:
		r.add(p, r.violation(p.path, field.ErrorTypeInvalid, value, detail))
	}
	return true
}

// message evaluates a messageExpression. It returns nothing if the result cannot
// be used, and why not if that ends validation. The expression sees the old
// value itself even if the rule sees an optional.
func (r *evaluation) message(p *program) (text, fatal string) {
	out, cost, err := r.eval(&p.message, &r.plain, p, (*scope).parseMessage)
	if r.uncertain {
		return "", ""
	}
	if cost > math.MaxInt64 || int64(cost) > r.remaining {
		if !r.count {
			r.uncertain = true
		}
		return "", "messageExpression evaluation failed due to running out of cost budget, no further validation rules will be run"
	}
	if err != nil && strings.HasPrefix(err.Error(), limitExceeded) {
		return "", fmt.Sprintf("no further validation rules will be run due to call cost exceeds limit for messageExpression: %q", p.rule.MessageExpression)
	}
	r.remaining -= int64(cost)
	if err != nil {
		return "", ""
	}
	text, _ = out.Value().(string)
	text = strings.TrimSpace(text)
	if len(text) > celconfig.MaxEvaluatedMessageExpressionSizeBytes || strings.Contains(text, "\n") {
		return "", ""
	}
	return strings.Clone(text), ""
}

// fail adds an error that is not a violation of a rule.
func (r *evaluation) fail(detail string) {
	r.run.Errors = append(r.run.Errors, r.violation("", field.ErrorTypeInvalid, r.typeName(), detail))
}

// typeName is the bad value of errors about rules themselves.
func (r *evaluation) typeName() string { return r.site.Node.Type.String() }

// add adds a violation, as a warning if ratcheting applies.
func (r *evaluation) add(p *program, v exec.Violation) {
	if !p.old && r.site.Unchanged() {
		r.run.Warnings = append(r.run.Warnings, v)
		return
	}
	r.run.Errors = append(r.run.Errors, v)
}

// violation makes a violation at the site, or at fieldPath below it.
func (r *evaluation) violation(fieldPath string, t field.ErrorType, bad any, detail string) exec.Violation {
	at := r.site.Path()
	path := at
	switch {
	case fieldPath == "" && at == "":
		path = "<nil>"
	case fieldPath != "" && at == "":
		path = fieldPath
	case fieldPath != "":
		path += "." + fieldPath
	}
	return exec.Violation{
		Type: t, Path: path, BadValue: bad, Detail: detail,
		Keyword: "x-kubernetes-validations", At: at, Offset: r.run.Doc.Offset(r.site.Value),
	}
}

// variables are what rules can name.
type variables struct {
	self, old ref.Val
}

var _ interpreter.Activation = (*variables)(nil)

// ResolveName implements interpreter.Activation.
func (v *variables) ResolveName(name string) (any, bool) {
	switch name {
	case selfName:
		return v.self, true
	case oldSelfName:
		return v.old, v.old != nil
	}
	return nil, false
}

// Parent implements interpreter.Activation.
func (v *variables) Parent() interpreter.Activation { return nil }
