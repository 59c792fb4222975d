package catalog

import (
	"cmp"
	"iter"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
)

// Space is a set of names that must be unique among the CRDs of a group.
type Space uint8

// The spaces of names.
const (
	Resources Space = iota // plural, singular and short names
	Kinds                  // kind and listKind
	spaces
)

// All ranges over the names in one space. The same name may come twice.
func (n *Names) All(s Space) iter.Seq[string] {
	return func(yield func(string) bool) {
		if s == Kinds {
			_ = yield(n.Kind) && yield(n.ListKind)
			return
		}
		if !yield(n.Plural) || !yield(n.Singular) {
			return
		}
		for _, name := range n.ShortNames {
			if !yield(name) {
				return
			}
		}
	}
}

// Claims returns the CRDs that have or request a name in a group. It is valid only
// within the function that View calls.
type Claims struct{ g *group }

// On returns the CRDs whose names, asked for or accepted, include name.
// The slice must not be changed nor kept.
func (c Claims) On(s Space, name string) []*Entry {
	if c.g == nil {
		return nil
	}
	return c.g.claims[s][name]
}

// group is the CRDs of one group. Its sorted list is made on demand, because many
// changes come at once.
type group struct {
	mu      sync.RWMutex
	entries map[string]*Entry
	sorted  []*Entry // nil if out of date
	claims  [spaces]map[string][]*Entry
}

func newGroup() *group {
	g := &group{entries: map[string]*Entry{}}
	for s := range g.claims {
		g.claims[s] = map[string][]*Entry{}
	}
	return g
}

// list returns the entries by name. The slice is shared.
func (g *group) list() []*Entry {
	g.mu.RLock()
	sorted := g.sorted
	g.mu.RUnlock()
	if sorted != nil {
		return sorted
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.sorted == nil {
		g.sorted = slices.SortedFunc(maps.Values(g.entries), func(a, b *Entry) int { return cmp.Compare(a.Name, b.Name) })
	}
	return g.sorted
}

// replace puts updated in the place of old; either may be nil.
func (g *group) replace(old, updated *Entry) (empty bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.sorted = nil
	if old != nil {
		delete(g.entries, old.Name)
		g.unclaim(old)
	}
	if updated != nil {
		g.entries[updated.Name] = updated
		g.claim(updated)
	}
	return len(g.entries) == 0
}

func (g *group) claim(e *Entry) {
	for s := range spaces {
		for name := range e.claims(s) {
			if list := g.claims[s][name]; !slices.Contains(list, e) {
				g.claims[s][name] = append(list, e)
			}
		}
	}
}

func (g *group) unclaim(e *Entry) {
	for s := range spaces {
		for name := range e.claims(s) {
			list := g.claims[s][name]
			i := slices.Index(list, e)
			switch {
			case i < 0: // the name came before
			case len(list) == 1:
				delete(g.claims[s], name)
			default:
				g.claims[s][name] = slices.Delete(list, i, i+1)
			}
		}
	}
}

// claims ranges over all names of the CRD, asked for and accepted.
func (e *Entry) claims(s Space) iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, names := range []*Names{&e.Names, &e.Accepted} {
			for name := range names.All(s) {
				if name != "" && !yield(name) {
					return
				}
			}
		}
	}
}

// index finds entries by name and by group. One goroutine at a time changes
// it, any number read.
type index struct {
	entries sync.Map // string → *Entry
	count   atomic.Int64

	mu     sync.RWMutex
	groups map[string]*group
	names  []string // of the groups, sorted; nil if out of date
}

func (x *index) get(name string) *Entry {
	if e, ok := x.entries.Load(name); ok {
		return e.(*Entry)
	}
	return nil
}

func (x *index) group(name string) *group {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.groups[name]
}

func (x *index) groupNames() []string {
	x.mu.RLock()
	names := x.names
	x.mu.RUnlock()
	if names != nil {
		return names
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.names == nil {
		x.names = slices.Sorted(maps.Keys(x.groups))
	}
	return x.names
}

// replace puts updated, which has the same name, in the place of old; either
// may be nil. The group of a CRD never changes, unless a client has written into etcd.
func (x *index) replace(old, updated *Entry) {
	switch {
	case updated == nil:
		x.entries.Delete(old.Name)
		x.count.Add(-1)
		x.regroup(old.Group, old, nil)
	case old == nil:
		x.entries.Store(updated.Name, updated)
		x.count.Add(1)
		x.regroup(updated.Group, nil, updated)
	case old.Group == updated.Group:
		x.entries.Store(updated.Name, updated)
		x.regroup(old.Group, old, updated)
	default:
		x.entries.Store(updated.Name, updated)
		x.regroup(old.Group, old, nil)
		x.regroup(updated.Group, nil, updated)
	}
}

func (x *index) regroup(name string, old, updated *Entry) {
	g := x.group(name)
	if g == nil {
		g = newGroup()
		x.mu.Lock()
		x.groups[name], x.names = g, nil
		x.mu.Unlock()
	}
	if g.replace(old, updated) {
		x.mu.Lock()
		delete(x.groups, name)
		x.names = nil
		x.mu.Unlock()
	}
}
