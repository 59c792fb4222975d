package cel

import (
	"fmt"
	"strconv"
	"sync"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/checker"
	"github.com/google/cel-go/common/decls"
	"github.com/google/cel-go/common/functions"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/interpreter"

	"k8s.io/apimachinery/pkg/util/version"
	apiservercel "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/apiserver/pkg/cel/library"
)

// The variables of rules.
const (
	selfName    = "self"
	oldSelfName = "oldSelf"
)

// language is the CEL environment that rules are compiled in: the API server's
// for one version, without variables and schemas. There is one per version in a
// process, because making one takes longer than compiling a hundred rules.
type language struct {
	env        *cel.Env
	provider   types.Provider // what env knows of types
	checker    *checker.Env   // the functions of env, declared
	options    []checker.Option
	validators cel.ValidatorConfig
	fast       interpreter.Interpreter // makes programs that do not count cost
	planning   []interpreter.PlannerOption
	quantities interpreter.InterpretableDecoratorV2 // bounds them
	keywords   bool                                 // fields may be called by names that are keywords
	oldSelf    bool                                 // there is a variable oldSelf
}

var languages = struct {
	sync.Mutex
	stored *language
	fresh  map[string]*language
}{fresh: map[string]*language{}}

// storedLanguage returns the language of rules that have been accepted: all
// that any version knows. It does not depend on the compatibility version.
func storedLanguage() (*language, error) {
	languages.Lock()
	defer languages.Unlock()
	if languages.stored == nil {
		set := environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion())
		l, err := newLanguage(set.StoredExpressionsEnv())
		if err != nil {
			return nil, err
		}
		l.keywords, l.oldSelf = true, true
		languages.stored = l
	}
	return languages.stored, nil
}

// maxVersions bounds the languages kept, because callers choose versions.
const maxVersions = 64

// newRulesLanguage returns the language that new rules are checked in.
// compatibility is a version such as "1.36"; empty means the API server's own
// choice.
func newRulesLanguage(compatibility string) (*language, error) {
	v := environment.DefaultCompatibilityVersion()
	if compatibility != "" {
		var err error
		if v, err = version.ParseMajorMinor(compatibility); err != nil {
			return nil, fmt.Errorf("compatibility version %q: %w", compatibility, err)
		}
	}
	key := strconv.FormatUint(uint64(v.Major()), 10) + "." + strconv.FormatUint(uint64(v.Minor()), 10)
	languages.Lock()
	defer languages.Unlock()
	if l := languages.fresh[key]; l != nil {
		return l, nil
	}
	l, err := newLanguage(environment.MustBaseEnvSet(v).NewExpressionsEnv())
	if err != nil {
		return nil, err
	}
	l.keywords = v.AtLeast(version.MajorMinor(1, 31))
	l.oldSelf = v.AtLeast(version.MajorMinor(1, 24))
	if len(languages.fresh) < maxVersions {
		languages.fresh[key] = l
	}
	return l, nil
}

func newLanguage(base *cel.Env) (*language, error) {
	// The API server resolves the names of types through a provider of its own,
	// which also knows simple types by the names that they have in schemas.
	provider, err := apiservercel.NewDeclTypeProvider().WithTypeProvider(base.CELTypeProvider())
	if err != nil {
		return nil, err
	}
	env, err := base.Extend(cel.CustomTypeProvider(provider), cel.CustomTypeAdapter(provider))
	if err != nil {
		return nil, err
	}
	l := &language{env: env, provider: provider}
	if err := l.declare(); err != nil {
		return nil, err
	}
	if err := l.configureValidators(); err != nil {
		return nil, err
	}
	return l, l.prepareFast()
}

// declare makes the type checker's own environment. A cel.Env has one too, but
// does not lend it.
func (l *language) declare() error {
	// A function that compares numbers across types is declared in any case and
	// filtered unless enabled; whether it is, only a check tells.
	l.options = []checker.Option{checker.CrossTypeNumericComparisons(comparesAcrossTypes(l.env))}
	c, err := checker.NewEnv(l.env.Container, l.provider, l.options...)
	if err != nil {
		return err
	}
	if err := c.AddIdents(l.env.Variables()...); err != nil {
		return err
	}
	for _, f := range l.env.Functions() {
		if f.IsDeclarationDisabled() {
			continue
		}
		if err := c.AddFunctions(f); err != nil {
			return err
		}
	}
	l.checker = c
	return nil
}

func comparesAcrossTypes(env *cel.Env) bool {
	_, issues := env.Compile("1 < 1.5")
	return issues.Err() == nil
}

// declaring returns the type checker's environment with the variables self and
// oldSelf, whose types t resolves.
func (l *language) declaring(t *schemaTypes, optionalOld bool) (*checker.Env, error) {
	options := append([]checker.Option{checker.ValidatedDeclarations(l.checker)}, l.options...)
	c, err := checker.NewEnv(l.env.Container, t, options...)
	if err != nil {
		return nil, err
	}
	if err := c.AddIdents(decls.NewVariable(selfName, t.self)); err != nil {
		return nil, err
	}
	if !l.oldSelf {
		return c, nil
	}
	old := t.self
	if optionalOld {
		old = types.NewOptionalType(old)
	}
	return c, c.AddIdents(decls.NewVariable(oldSelfName, old))
}

// settings hold what validators of expressions tell each other.
type settings map[string]any

// GetOrDefault implements cel.ValidatorConfig.
func (s settings) GetOrDefault(name string, value any) any {
	if v, ok := s[name]; ok {
		return v
	}
	return value
}

// Set implements cel.MutableValidatorConfig.
func (s settings) Set(name string, value any) error {
	s[name] = value
	return nil
}

func (l *language) configureValidators() error {
	s := settings{cel.HomogeneousAggregateLiteralExemptFunctions: []string{}}
	for _, v := range l.env.Validators() {
		if c, ok := v.(cel.ASTValidatorConfigurer); ok {
			if err := c.Configure(s); err != nil {
				return err
			}
		}
	}
	l.validators = s
	return nil
}

// prepareFast makes the interpreter whose programs do not count cost. The
// cel.Env cannot: counting is among its options, and options are not taken
// back. Its programs also carry a table of all functions each; these share one.
func (l *language) prepareFast() error {
	var bindings []*functions.Overload
	for _, f := range l.env.Functions() {
		more, err := f.Bindings()
		if err != nil {
			return err
		}
		bindings = append(bindings, more...)
	}
	table := interpreter.NewDispatcher()
	if err := table.Add(bindings...); err != nil {
		return err
	}
	l.quantities = boundQuantities(bindings)
	adapter := l.env.CELTypeAdapter()
	attributes := interpreter.NewAttributeFactory(l.env.Container, adapter, l.provider,
		interpreter.EnableErrorOnBadPresenceTest(false))
	l.fast = interpreter.NewInterpreter(table, l.env.Container, l.provider, adapter, attributes)
	l.planning = []interpreter.PlannerOption{
		interpreter.CustomDecoratorV2(l.quantities),
		interpreter.CustomDecoratorV2(shortCircuitOptionals),
		interpreter.Optimize(),
		interpreter.CompileRegexConstants(library.FindRegexOptimization, library.FindAllRegexOptimization, interpreter.MatchesRegexOptimization),
	}
	return nil
}
