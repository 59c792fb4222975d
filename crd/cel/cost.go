package cel

import (
	"strings"

	"github.com/google/cel-go/checker"

	"k8s.io/apiserver/pkg/cel/library"
)

// The limits of the API server on static estimates.
const (
	// MaxRuleCost is the limit for a rule, times the number of values that it
	// can apply to.
	MaxRuleCost = 10_000_000
	// MaxSchemaCost is the limit for all rules of a schema.
	MaxSchemaCost = 100_000_000
)

// estimator tells the estimation of costs how large values can be, in the
// numbers of the API server.
type estimator struct {
	scope *scope
	*trial
}

// trial is an estimation for a schema with other bounds than it has.
type trial struct {
	bounds map[string]int64            // most elements, by path
	asked  func(path string, at place) // what the estimation depends on
}

// EstimateSize implements checker.CostEstimator.
func (e *estimator) EstimateSize(element checker.AstNode) *checker.SizeEstimate {
	path := element.Path()
	if len(path) == 0 {
		return nil
	}
	at, ok := e.scope.sizes.follow(e.scope.node, e.scope.resource, path)
	if !ok {
		return nil
	}
	most := e.scope.sizes.maxAt(at)
	if e.trial != nil && !at.key {
		key := strings.Join(path[1:], "\x00")
		if e.asked != nil {
			e.asked(key, at)
		}
		if b, ok := e.bounds[key]; ok {
			most = min(most, b)
		}
	}
	return &checker.SizeEstimate{Max: uint64(most)}
}

// EstimateCallCost implements checker.CostEstimator.
func (e *estimator) EstimateCallCost(string, string, *checker.AstNode, []checker.AstNode) *checker.CallEstimate {
	return nil
}

// cost returns the API server's estimate of what the expression costs at most,
// or what it would be for t.
func (e *expression) cost(s *scope, t *trial) (uint64, error) {
	c, err := e.lang.env.EstimateCost(e.ast, &library.CostEstimator{SizeEstimator: &estimator{s, t}})
	return c.Max, err
}
