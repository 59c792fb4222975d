package engine

import (
	"slices"
	"strings"

	"github.com/espalier-dev/espalier/conformance/oracle"
	"github.com/espalier-dev/espalier/crd/cel"
)

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
