package builtin

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	plugincel "k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"
	"k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/environment"

	"github.com/espalier-dev/espalier/crd/cel/celsize"
	"github.com/espalier-dev/espalier/crd/rules/words"
)

// How much CEL one object may have. Compilation cannot be interrupted, so its cost is
// limited, far above what authors write by hand. The cost at run time is limited where
// expressions run.
const (
	maxExpressions     = 1000
	maxExpressionBytes = 128 << 10
	maxMatchConditions = 64
)

// plainCompiler is for expressions that cannot see a policy's variables. It has
// no state. Making it takes milliseconds, so it is made on first use.
var plainCompiler = sync.OnceValue(func() plugincel.Compiler {
	return plugincel.NewCompiler(baseEnvironment())
})

var baseEnvironment = sync.OnceValue(func() *environment.EnvSet {
	return environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion())
})

// expressions compiles the CEL expressions of one object, to validate them.
type expressions struct {
	// stored are those that the object had before. They may use what a server of
	// the previous version, which may run beside this one, does not offer yet to
	// new ones.
	stored sets.Set[string]
	// withVariables knows the variables of a policy; nil if it has none.
	withVariables *plugincel.CompositedCompiler
	types         celsize.Bound
	count, bytes  int
	// compiled keeps what came out. Generators write the same condition into each
	// of many webhooks.
	compiled map[compilation]*cel.Error
}

type compilation struct {
	kind, expression string
	options          plugincel.OptionalVariableDeclarations
	variables        bool
}

func newExpressions(stored ...string) *expressions {
	return &expressions{stored: sets.New(stored...), compiled: map[compilation]*cel.Error{}}
}

// declareVariables prepares for expressions that refer to variables.
func (e *expressions) declareVariables() error {
	compiler, err := plugincel.NewCompositedCompiler(baseEnvironment())
	e.withVariables = compiler
	return err
}

// compile validates an expression that sees no variables.
func (e *expressions) compile(at *field.Path, expression plugincel.ExpressionAccessor, options plugincel.OptionalVariableDeclarations) field.ErrorList {
	return e.compileWith(plainCompiler(), at, expression, options)
}

// compose validates an expression that may see variables.
func (e *expressions) compose(at *field.Path, expression plugincel.ExpressionAccessor, options plugincel.OptionalVariableDeclarations) field.ErrorList {
	if e.withVariables == nil {
		return e.compile(at, expression, options)
	}
	return e.compileWith(e.withVariables, at, expression, options)
}

func (e *expressions) compileWith(compiler plugincel.Compiler, at *field.Path, expression plugincel.ExpressionAccessor, options plugincel.OptionalVariableDeclarations) field.ErrorList {
	key := compilation{
		kind: fmt.Sprintf("%T", expression), expression: expression.GetExpression(),
		options: options, variables: compiler == plugincel.Compiler(e.withVariables),
	}
	problem, known := e.compiled[key]
	if !known {
		if errs := e.refuse(at, key.expression); errs != nil {
			return errs
		}
		problem = compiler.CompileCELExpression(expression, options, e.environment(key.expression)).Error
		e.compiled[key] = problem
	}
	return compileError(at, key.expression, problem)
}

// declare compiles a variable and makes it known to what comes after it.
func (e *expressions) declare(at *field.Path, variable plugincel.NamedExpressionAccessor, options plugincel.OptionalVariableDeclarations) field.ErrorList {
	expression := variable.GetExpression()
	if errs := e.refuse(at, expression); errs != nil {
		return errs
	}
	result := e.withVariables.CompileAndStoreVariable(variable, options, e.environment(expression))
	e.types.Declare(variable.GetName(), result.OutputType)
	return compileError(at, expression, result.Error)
}

// refuse counts an expression. It returns an error if the object has too many
// expressions, or if this one would take too long to compile.
func (e *expressions) refuse(at *field.Path, expression string) field.ErrorList {
	e.count++
	e.bytes += len(expression)
	switch {
	case e.count > maxExpressions:
		return field.ErrorList{field.Forbidden(at, fmt.Sprintf("an object may have at most %d CEL expressions; use several objects", maxExpressions))}
	case e.bytes > maxExpressionBytes:
		return field.ErrorList{field.Forbidden(at, fmt.Sprintf("the CEL expressions of an object may have at most %d bytes together; use several objects", maxExpressionBytes))}
	}
	if why := typesTooLarge(&e.types, expression); why != "" {
		return field.ErrorList{field.Invalid(at, expression, why)}
	}
	return nil
}

// typesTooLarge says so if an expression would make a type that is too large. What
// cannot be parsed is left to the compiler to complain about.
func typesTooLarge(bound *celsize.Bound, expression string) string {
	env, err := baseEnvironment().Env(environment.StoredExpressions)
	if err != nil {
		return ""
	}
	parsed, issues := env.Parse(expression)
	if issues.Err() != nil || !bound.TooLarge(parsed.NativeRep().Expr()) {
		return ""
	}
	return celsize.Reason
}

func (e *expressions) environment(expression string) environment.Type {
	if e.stored.Has(expression) {
		return environment.StoredExpressions
	}
	return environment.NewExpressions
}

func compileError(at *field.Path, expression string, problem *cel.Error) field.ErrorList {
	if problem == nil {
		return nil
	}
	switch problem.Type {
	case cel.ErrorTypeRequired:
		return field.ErrorList{field.Required(at, problem.Detail)}
	case cel.ErrorTypeInvalid:
		return field.ErrorList{field.Invalid(at, expression, problem.Detail)}
	}
	return field.ErrorList{field.InternalError(at, problem)}
}

// matchConditions validates the conditions of a webhook or policy.
// They see the parameters of a policy, and not its variables.
func (e *expressions) matchConditions(at *field.Path, conditions []admissionv1.MatchCondition, hasParams bool) field.ErrorList {
	if len(conditions) > maxMatchConditions {
		return field.ErrorList{field.TooMany(at, len(conditions), maxMatchConditions)}
	}
	var errs field.ErrorList
	names := words.Unique{}
	for i := range conditions {
		here, name := at.Index(i), conditions[i].Name
		if expression := strings.TrimSpace(conditions[i].Expression); expression == "" {
			errs = append(errs, field.Required(here.Child("expression"), ""))
		} else {
			errs = append(errs, e.compile(here.Child("expression"), &matchconditions.MatchCondition{Expression: expression},
				plugincel.OptionalVariableDeclarations{HasParams: hasParams, HasAuthorizer: true})...)
		}
		if name == "" {
			errs = append(errs, field.Required(here.Child("name"), ""))
			continue
		}
		errs = append(errs, qualified(here.Child("name"), name)...)
		errs = append(errs, names.Add(here.Child("name"), name)...)
	}
	return errs
}

// conditionExpressions are the expressions of conditions as they are compiled.
func conditionExpressions(conditions []admissionv1.MatchCondition) []string {
	var all []string
	for i := range conditions {
		all = append(all, strings.TrimSpace(conditions[i].Expression))
	}
	return all
}

func qualified(at *field.Path, name string) field.ErrorList {
	return words.Named(at, name, func(name string, _ bool) []string { return validation.IsQualifiedName(name) })
}

// celReserved are the words that CEL keeps for itself.
var celReserved = strings.Fields("true false null in as break const continue else for function if import let loop package namespace return var void while")

// isIdentifier reports whether a policy can refer to a variable by this name.
func isIdentifier(name string) bool {
	for i, c := range []byte(name) {
		letter := c == '_' || 'a' <= c|0x20 && c|0x20 <= 'z'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return name != "" && !slices.Contains(celReserved, name)
}
