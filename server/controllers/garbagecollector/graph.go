package garbagecollector

import (
	"hash/maphash"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// graph has the objects that have owners, or wait for their dependents. It knows
// of owners what their dependents say, and whether they exist if it has been found
// out. It is safe for concurrent use; what is to be done it says to check and orphan,
// which are called while it is locked and must return at once.
type graph struct {
	check  func(id) // look at the object: it may have to go
	orphan func(id) // its dependents are to forget it
	keyOf  func(ref *metav1.OwnerReference, dependent string) (key string, known bool)
	// near reports whether an object may have another as its owner, by their keys:
	// one without a namespace, or one in its own.
	near func(dependent, owner string) bool

	seed maphash.Seed

	mu       sync.Mutex
	nodes    map[id]*node
	owners   map[id]*owner
	scanning bool
	scan     uint16 // counts the scans
	marks    uint32 // counts the searches for cycles
}

// node is an object of the graph.
type node struct {
	id    id
	key   string // without the backend's prefix
	edges []edge // never moved: owners have lists of them
	state state
	scan  uint16 // the last that has seen it
	mark  uint32 // the last search that has come by
}

// edge is a reference of a node to an owner.
type edge struct {
	from       *node
	to         *owner
	prev, next *edge  // in the owner's list
	want       uint64 // a hash of the key that the owner should have; 0 if its kind is not known
	blocking   bool
}

// owner is the target of references. It exists as long as there is a reference to it.
type owner struct {
	id         id
	dependents *edge  // the first
	at         uint64 // a hash of the key that it exists at; 0 if it is unknown
	gone       bool   // its end has been seen
}

func newGraph(check, orphan func(id), keyOf func(*metav1.OwnerReference, string) (string, bool), near func(string, string) bool) *graph {
	return &graph{
		check: check, orphan: orphan, keyOf: keyOf, near: near, seed: maphash.MakeSeed(),
		nodes: map[id]*node{}, owners: map[id]*owner{},
	}
}

// sum is of a key. It is never 0.
func (g *graph) sum(key string) uint64 { return maphash.String(g.seed, key) | 1 }

// len returns the number of objects.
func (g *graph) len() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.nodes)
}

// put has the graph show an object as it is stored now.
func (g *graph) put(key string, s *seen) {
	g.mu.Lock()
	defer g.mu.Unlock()
	n := g.nodes[s.id]
	if o := g.owners[s.id]; o != nil {
		o.at, o.gone = g.sum(key), false
	}
	if !s.kept() {
		if n != nil {
			g.remove(n)
		}
		return
	}
	if n == nil {
		n = &node{id: s.id, key: key}
		g.nodes[s.id] = n
	}
	before := n.state
	n.state, n.scan = s.state, g.scan
	if edges := g.edges(n, s.owners); !n.refersLike(edges) {
		g.refer(n, edges)
	}
	if !g.scanning { // else end does it
		g.consider(n, before)
	}
}

// consider has a node looked at if an owner may be missing, and those whom the
// beginning of a deletion concerns.
func (g *graph) consider(n *node, before state) {
	if !n.trusted() {
		g.check(n.id)
	}
	switch {
	case n.state.waits(orphaning):
		if !before.waits(orphaning) {
			g.orphan(n.id)
		}
	case n.state.waits(foreground) && !before.waits(foreground):
		g.check(n.id)
		g.checkDependents(g.owners[n.id])
	}
}

// edges are the references of a node, not yet in the lists of their owners.
func (g *graph) edges(n *node, refs []metav1.OwnerReference) []edge {
	edges := make([]edge, len(refs))
	for i := range refs {
		ref := &refs[i]
		to := idOf(ref.UID)
		o := g.owners[to]
		if o == nil {
			o = &owner{id: to}
		}
		edges[i] = edge{from: n, to: o, blocking: ref.BlockOwnerDeletion != nil && *ref.BlockOwnerDeletion}
		if key, ok := g.keyOf(ref, n.key); ok {
			edges[i].want = g.sum(key)
		}
	}
	return edges
}

// refersLike reports whether the references are those that the node has.
func (n *node) refersLike(edges []edge) bool {
	if len(n.edges) != len(edges) {
		return false
	}
	for i := range edges {
		if a, b := &n.edges[i], &edges[i]; a.to.id != b.to.id || a.blocking != b.blocking || a.want != b.want {
			return false
		}
	}
	return true
}

// refer gives a node new references. Owners that it has blocked may go on.
func (g *graph) refer(n *node, edges []edge) {
	old := n.edges
	n.edges = edges
	for i := range edges {
		e := &edges[i]
		if o := g.owners[e.to.id]; o != nil {
			e.to = o // two references may be to the same new one
		} else {
			g.owners[e.to.id] = e.to
		}
		e.to.add(e)
		if w := g.nodes[e.to.id]; w != nil && w.state.waits(foreground) {
			g.check(n.id) // it comes late, and has to go all the same
		}
	}
	g.unlink(old)
}

func (o *owner) add(e *edge) {
	if e.next = o.dependents; e.next != nil {
		e.next.prev = e
	}
	o.dependents = e
}

// unlink removes references from the lists of their owners, and has those looked at
// that may have waited for it.
func (g *graph) unlink(edges []edge) {
	for i := range edges {
		e := &edges[i]
		if e.prev != nil {
			e.prev.next = e.next
		} else {
			e.to.dependents = e.next
		}
		if e.next != nil {
			e.next.prev = e.prev
		}
		if e.to.dependents == nil {
			delete(g.owners, e.to.id)
		}
		if w := g.nodes[e.to.id]; w != nil && w.state.waits(foreground) && e.blocking {
			g.check(w.id)
		}
	}
}

// trusted reports whether all owners are known to exist where the references say.
func (n *node) trusted() bool {
	for i := range n.edges {
		if e := &n.edges[i]; e.to.gone || e.to.at == 0 || e.to.at != e.want {
			return false
		}
	}
	return true
}

func (g *graph) checkDependents(o *owner) {
	if o == nil {
		return
	}
	for e := o.dependents; e != nil; e = e.next {
		g.check(e.from.id)
	}
}

// delete has the graph forget an object that is not stored any more. Its
// dependents are looked at.
func (g *graph) delete(i id) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if n := g.nodes[i]; n != nil {
		g.remove(n)
	}
	g.lose(g.owners[i])
}

func (g *graph) remove(n *node) {
	delete(g.nodes, n.id)
	g.unlink(n.edges)
	n.edges = nil
}

func (g *graph) lose(o *owner) {
	if o != nil {
		o.gone, o.at = true, 0
		g.checkDependents(o)
	}
}

// begin starts a scan, in which objects come in any order: no object is checked before
// its end.
func (g *graph) begin() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.scan++
	g.scanning = true
}

// end ends a scan that has seen the objects in all, with hashes of their keys. A node that
// it has not seen is gone. An owner that it has not seen may be unreadable, so the collector
// has to ask the server for it. Every object that may need work is checked.
func (g *graph) end(all map[id]uint64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.scanning = false
	for _, n := range g.nodes {
		if n.scan != g.scan {
			g.remove(n)
		}
	}
	for i, o := range g.owners {
		o.at = all[i]
		o.gone = o.gone && o.at == 0
	}
	for _, n := range g.nodes {
		g.consider(n, 0)
	}
}

// found remembers that an owner exists, so that other dependents of it need not
// be looked at.
func (g *graph) found(i id, key string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if o := g.owners[i]; o != nil && !o.gone {
		o.at = g.sum(key)
	}
}

// view is what a worker needs to know of a node.
type view struct {
	key        string
	state      state
	dependents bool // there are some
}

func (g *graph) view(i id) (v view, ok bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	n := g.nodes[i]
	if n == nil {
		return v, false
	}
	return view{key: n.key, state: n.state, dependents: g.owners[i] != nil}, true
}

// gone reports whether an owner is known not to exist any more.
func (g *graph) gone(i id) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	o := g.owners[i]
	return o != nil && o.gone
}

// elsewhere reports whether an owner is known to exist, but not at the key that
// is given.
func (g *graph) elsewhere(i id, key string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	o := g.owners[i]
	return o != nil && o.at != 0 && o.at != g.sum(key)
}

// leadsTo reports whether a reference with the UID of an object refers to it. One from
// another namespace, or with another name, does not: any user who knows the UID can write
// it, and must not decide about the object.
func (g *graph) leadsTo(e *edge, n *node) bool {
	switch {
	case n == nil:
		return true
	case e.want == 0: // no such kind was known when the reference was read
		return g.near(e.from.key, n.key)
	}
	return e.want == g.sum(n.key)
}

// dependentsOf returns the keys of all dependents of an owner, by their ids.
func (g *graph) dependentsOf(i id) map[id]string {
	g.mu.Lock()
	defer g.mu.Unlock()
	all := map[id]string{}
	if o := g.owners[i]; o != nil {
		for e := o.dependents; e != nil; e = e.next {
			if g.leadsTo(e, g.nodes[i]) {
				all[e.from.id] = e.from.key
			}
		}
	}
	return all
}

// blockers looks at the dependents that keep an object which waits. Those that are
// not being deleted in the foreground themselves are handed to check. cycle says that
// the object waits for itself, and would for ever.
func (g *graph) blockers(i id) (blocked, cycle bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	o := g.owners[i]
	if o == nil {
		return false, false
	}
	allWait := true
	for e := o.dependents; e != nil; e = e.next {
		if !e.blocking || !g.leadsTo(e, g.nodes[i]) {
			continue
		}
		blocked = true
		if !e.from.state.waits(foreground) {
			allWait = false
			g.check(e.from.id)
		}
	}
	return blocked, blocked && allWait && g.inCycle(i)
}

// inCycle reports whether an object that waits is among those it waits for.
func (g *graph) inCycle(start id) bool {
	g.marks++
	stack := []id{start}
	for len(stack) > 0 {
		i := stack[len(stack)-1]
		o := g.owners[i]
		stack = stack[:len(stack)-1]
		if o == nil {
			continue
		}
		for e := o.dependents; e != nil; e = e.next {
			n := e.from
			if !e.blocking || n.mark == g.marks || !n.state.waits(foreground) || !g.leadsTo(e, g.nodes[i]) {
				continue
			}
			if n.id == start {
				return true
			}
			n.mark = g.marks
			stack = append(stack, n.id)
		}
	}
	return false
}
