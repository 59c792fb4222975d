package tenants

import (
	"cmp"
	"slices"

	"github.com/espalier-dev/espalier/server/storage/meter"
)

// Figures are what a tenant in use does on this replica.
type Figures struct {
	Name     string
	Requests int64 // since it came into use
	Usage    meter.Usage
}

// Top returns the tenants in use with the most requests, and those with the most bytes in
// etcd. There may be thousands in use, and monitoring keeps each name for weeks.
func (s *Set) Top(n int) (busiest, largest []Figures) {
	var all []Figures
	s.mu.Lock()
	for _, e := range s.active {
		if e.finished && e.err == nil {
			all = append(all, Figures{e.name, e.requests.Load(), e.plane.Usage()})
		}
	}
	s.mu.Unlock()
	top := func(by func(Figures) int64) []Figures {
		slices.SortFunc(all, func(a, b Figures) int {
			return cmp.Or(cmp.Compare(by(b), by(a)), cmp.Compare(a.Name, b.Name))
		})
		return slices.Clone(all[:min(n, len(all))])
	}
	return top(func(f Figures) int64 { return f.Requests }), top(func(f Figures) int64 { return f.Usage.Bytes })
}
