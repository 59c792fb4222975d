package engine

import (
	"slices"
	"strings"

	"github.com/espalier-dev/espalier"
	"github.com/espalier-dev/espalier/conformance/oracle"
	"github.com/espalier-dev/espalier/crd/cel"
)

// compileRules returns the rules of the schema. They are compiled when they are first needed.
func (s *Schema) compileRules() (*espalier.Rules, error) {
	s.once.Do(func() { s.rules, s.rulesErr = cel.Compile(s.s) })
	if s.rulesErr != nil || s.rules == nil {
		return nil, s.rulesErr
	}
	return s.rules, nil
}

// Costs returns what the expressions of a schema's rules may cost.
func Costs(schema []byte) ([]oracle.Cost, error) {
	costs, err := cel.Costs(schema, cel.CheckOptions{})
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
