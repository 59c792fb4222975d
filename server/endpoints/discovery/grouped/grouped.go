package grouped

import (
	"cmp"
	"maps"
	"slices"
	"sync"

	"github.com/espalier-dev/espalier/server/catalog"
)

// Item is what was made of one group.
type Item[T any] struct {
	Group string
	Value T
}

// Snapshot is what was made of all groups at one moment, sorted by group.
type Snapshot[T any] struct{ Items []Item[T] }

// Find returns what was made of a group.
func (s *Snapshot[T]) Find(group string) (value T, ok bool) {
	i, ok := slices.BinarySearchFunc(s.Items, group, func(item Item[T], group string) int { return cmp.Compare(item.Group, group) })
	if ok {
		value = s.Items[i].Value
	}
	return value, ok
}

// Make makes something of the CRDs of a group, sorted by name. It
// returns false if there is nothing to be made of them.
type Make[T any] func(group string, entries []*catalog.Entry) (T, bool)

// Index keeps a value for each group that has one. It is safe for concurrent use.
type Index[T any] struct {
	catalog *catalog.Catalog
	build   Make[T]

	building sync.Mutex
	current  *Snapshot[T]

	marking sync.Mutex // never held while something is made: the catalog waits for it
	marked  map[string]struct{}
}

// New returns an index of what build makes of the groups of a catalog.
func New[T any](c *catalog.Catalog, build Make[T]) *Index[T] {
	x := &Index[T]{catalog: c, build: build, current: &Snapshot[T]{}, marked: map[string]struct{}{}}
	c.Subscribe(x.changed)
	return x
}

func (x *Index[T]) changed(old, updated *catalog.Entry) {
	x.marking.Lock()
	defer x.marking.Unlock()
	for _, e := range []*catalog.Entry{old, updated} {
		if e != nil {
			x.marked[e.Group] = struct{}{}
		}
	}
}

// Current returns the values of all groups, as the catalog is now.
func (x *Index[T]) Current() *Snapshot[T] {
	x.building.Lock()
	defer x.building.Unlock()
	x.marking.Lock()
	var groups []string
	if len(x.marked) > 0 {
		groups = slices.Sorted(maps.Keys(x.marked))
		x.marked = map[string]struct{}{}
	}
	x.marking.Unlock()
	if len(groups) > 0 {
		x.current = &Snapshot[T]{x.merge(groups)}
	}
	return x.current
}

// merge replaces the items of some groups, which are sorted.
func (x *Index[T]) merge(groups []string) []Item[T] {
	old := x.current.Items
	items := make([]Item[T], 0, len(old)+len(groups))
	for _, group := range groups {
		for len(old) > 0 && old[0].Group < group {
			items, old = append(items, old[0]), old[1:]
		}
		if len(old) > 0 && old[0].Group == group {
			old = old[1:]
		}
		if value, ok := x.build(group, x.catalog.Group(group)); ok {
			items = append(items, Item[T]{group, value})
		}
	}
	return append(items, old...)
}
