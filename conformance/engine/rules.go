package engine

import (
	"slices"
	"strings"

	"github.com/espalier-dev/espalier/conformance/oracle"
	"github.com/espalier-dev/espalier/crd/cel"
)

// Costs returns what the expressions of a schema's rules may cost.
func Costs(schema []byte) ([]oracle.Cost, error) { return costs(schema, cel.CheckOptions{}) }

// CostsAt is Costs for another compatibility version, with the errors of expressions that do not compile there, sorted.
func CostsAt(schema []byte, compatibility string) ([]oracle.Cost, []string, error) {
	o := cel.CheckOptions{CompatibilityVersion: compatibility}
	list, err := costs(schema, o)
	if err != nil {
		return nil, nil, err
	}
	findings, err := cel.Check(schema, o)
	if err != nil {
		return nil, nil, err
	}
	var errors []string
	for _, f := range findings {
		if f.Check == cel.RuleExpression || f.Check == cel.RuleMessageExpression {
			errors = append(errors, f.Path+": "+f.Detail)
		}
	}
	slices.Sort(errors)
	return list, errors, nil
}

func costs(schema []byte, o cel.CheckOptions) ([]oracle.Cost, error) {
	costs, err := cel.Costs(schema, o)
	if err != nil {
		return nil, err
	}
	list := make([]oracle.Cost, len(costs))
	for i, c := range costs {
		list[i] = oracle.Cost{Path: c.Path, Cost: c.Cost, Times: c.Times, Total: c.Total}
	}
	slices.SortFunc(list, func(a, b oracle.Cost) int { return strings.Compare(a.Path, b.Path) })
	return list, nil
}
