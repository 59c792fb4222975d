package oracle

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apimachinery/pkg/util/version"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	apiservercel "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/environment"
)

// A Cost is what one expression of x-kubernetes-validations may cost.
type Cost struct {
	Path  string // of the expression: properties[spec].x-kubernetes-validations[0].rule
	Cost  uint64 // of one evaluation, at worst
	Times uint64 // how often it can be evaluated for one object; 1 for a messageExpression
	Total uint64 // Cost times Times
}

// String renders a cost for a reproducer.
func (c Cost) String() string {
	return fmt.Sprintf("%s: cost %d, times %d, total %d", c.Path, c.Cost, c.Times, c.Total)
}

// ErrCrashed is the error of Costs if the reference crashed.
var ErrCrashed = errors.New("the reference crashed")

// Costs compiles the rules of a schema as the reference does when a CRD is created, and returns what those that compile
// may cost, in the order of their paths, and how many rules there are. It is meant for schemas that have no structural
// errors.
func Costs(schemaJSON []byte) (costs []Cost, rules int, err error) {
	c, err := compileRules(schemaJSON, environment.DefaultCompatibilityVersion())
	if err != nil {
		return nil, 0, err
	}
	return c.costs, c.rules, nil
}

// CostsAt is Costs for another compatibility version, such as "1.30", with the errors of expressions that do not compile
// there, sorted.
func CostsAt(schemaJSON []byte, compatibility string) (costs []Cost, errors []string, err error) {
	v, err := version.ParseMajorMinor(compatibility)
	if err != nil {
		return nil, nil, err
	}
	c, err := compileRules(schemaJSON, v)
	if err != nil {
		return nil, nil, err
	}
	slices.Sort(c.errors)
	return c.costs, c.errors, nil
}

func compileRules(schemaJSON []byte, v *version.Version) (c *compiler, err error) {
	defer func() {
		if p := recover(); p != nil {
			c, err = nil, fmt.Errorf("%w: %v", ErrCrashed, crashed(p))
		}
	}()
	internal, err := Internal(schemaJSON)
	if err != nil {
		return nil, err
	}
	c = &compiler{base: environment.MustBaseEnvSet(v)}
	c.schema(internal, nil, validation.RootCELContext(internal))
	slices.SortFunc(c.costs, func(a, b Cost) int { return strings.Compare(a.Path, b.Path) })
	return c, nil
}

type compiler struct {
	base   *environment.EnvSet
	costs  []Cost
	errors []string
	rules  int
}

// fail notes that an expression does not compile.
func (c *compiler) fail(path *field.Path, err *apiservercel.Error) {
	if err != nil {
		c.errors = append(c.errors, selfType.ReplaceAllString(path.String()+": "+err.Detail, "selfType"))
	}
}

// schema compiles the rules of a schema and of those below it that rules can be about.
func (c *compiler) schema(s *apiextensions.JSONSchemaProps, path *field.Path, at *validation.CELSchemaContext) {
	if s == nil {
		return
	}
	if s.AdditionalProperties != nil {
		c.schema(s.AdditionalProperties.Schema, path.Child("additionalProperties"), at.ChildAdditionalPropertiesContext(s.AdditionalProperties.Schema))
	}
	for name, prop := range s.Properties {
		c.schema(&prop, path.Child("properties").Key(name), at.ChildPropertyContext(&prop, name))
	}
	if s.Items != nil {
		c.schema(s.Items.Schema, path.Child("items"), at.ChildItemsContext(s.Items.Schema))
	}
	if len(s.XValidations) == 0 {
		return
	}
	path = path.Child("x-kubernetes-validations")
	info, err := at.TypeInfo()
	if err != nil || info == nil {
		return
	}
	results, err := cel.Compile(info.Schema, info.DeclType, celconfig.PerCallLimit, c.base, cel.NewExpressionsEnvLoader())
	if err != nil {
		return
	}
	c.rules += len(results)
	for i, r := range results {
		c.fail(path.Index(i).Child("rule"), r.Error)
		c.fail(path.Index(i).Child("messageExpression"), r.MessageExpressionError)
		if r.Program == nil {
			continue
		}
		times := r.MaxCardinality
		if at.MaxCardinality != nil {
			times = *at.MaxCardinality
		}
		c.costs = append(c.costs, Cost{path.Index(i).Child("rule").String(), r.MaxCost, times, product(r.MaxCost, times)})
		if r.MessageExpression != nil {
			c.costs = append(c.costs, Cost{path.Index(i).Child("messageExpression").String(), r.MessageExpressionMaxCost, 1, r.MessageExpressionMaxCost})
		}
	}
}

// product multiplies, with the largest number in place of an overflow.
func product(a, b uint64) uint64 {
	if a != 0 && math.MaxUint64/a < b {
		return math.MaxUint64
	}
	return a * b
}
