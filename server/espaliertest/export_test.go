package espaliertest

import (
	"sync"
	"testing"

	"k8s.io/client-go/rest"
)

// Repeat runs a test under the schedule of one seed several times, and returns what
// was on the wire each time.
func Repeat(t *testing.T, seed, times int, test func(*testing.T, *rest.Config), options ...Option) []string {
	t.Helper()
	var mu sync.Mutex
	var orders []string
	e := newExplorer(test, options)
	e.seen = func(order string) {
		mu.Lock()
		defer mu.Unlock()
		orders = append(orders, order)
	}
	seeds := make([]int, times)
	for i := range seeds {
		seeds[i] = seed
	}
	e.explore(t, seeds)
	return orders
}
