package ordered

import (
	"iter"
	"slices"
)

// width is how many values or children a node has at most. Small nodes cost less to
// copy when a snapshot shares them, large nodes need less memory for each value.
const width = 64

// Tree keeps values in the order of a comparison. Two values that compare equal are
// the same value. The zero Tree is not usable; use New.
type Tree[V any] struct {
	compare func(a, b V) int
	root    *node[V]
	owner   *owner
	copied  int
}

// owner marks the nodes that a tree may change: those that no snapshot shares. It has
// a size, because all pointers to values without one may be equal.
type owner struct{ _ byte }

// A node is a leaf, with values, or has children. For each child it has the child's
// first value.
type node[V any] struct {
	owner    *owner
	values   []V
	children []*node[V]
	count    int // of all values below
}

// New returns an empty tree.
func New[V any](compare func(a, b V) int) *Tree[V] {
	own := &owner{}
	return &Tree[V]{compare: compare, root: &node[V]{owner: own}, owner: own}
}

// Snapshot returns a tree with the same values. Changing one does not change the other.
func (t *Tree[V]) Snapshot() *Tree[V] {
	t.owner = &owner{}
	return &Tree[V]{compare: t.compare, root: t.root, owner: &owner{}}
}

// Copied returns how many values and children were in the nodes that have been copied, because
// a snapshot shared them: what all snapshots together keep alive beside the tree is no more.
func (t *Tree[V]) Copied() int { return t.copied }

// Len returns how many values there are.
func (t *Tree[V]) Len() int { return t.root.count }

// Get returns the value that compares equal.
func (t *Tree[V]) Get(like V) (found V, ok bool) {
	n := t.root
	for n.children != nil {
		n = n.children[t.child(n, like)]
	}
	if at, ok := slices.BinarySearchFunc(n.values, like, t.compare); ok {
		return n.values[at], true
	}
	return found, false
}

// Set adds a value, in place of the one that compares equal.
func (t *Tree[V]) Set(v V) (before V, replaced bool) {
	t.root = t.owned(t.root)
	before, replaced, right := t.set(t.root, v)
	if right != nil {
		left := t.root
		t.root = &node[V]{
			owner: t.owner, values: []V{left.values[0], right.values[0]},
			children: []*node[V]{left, right}, count: left.count + right.count,
		}
	}
	return before, replaced
}

// Delete removes the value that compares equal.
func (t *Tree[V]) Delete(like V) (before V, deleted bool) {
	if _, ok := t.Get(like); !ok {
		return before, false // nothing is copied
	}
	t.root = t.owned(t.root)
	before = t.delete(t.root, like)
	for len(t.root.children) == 1 {
		t.root = t.root.children[0]
	}
	return before, true
}

// Rank returns how many values are less.
func (t *Tree[V]) Rank(than V) int {
	less := 0
	n := t.root
	for n.children != nil {
		at := t.child(n, than)
		for _, c := range n.children[:at] {
			less += c.count
		}
		n = n.children[at]
	}
	at, _ := slices.BinarySearchFunc(n.values, than, t.compare)
	return less + at
}

// From goes through the values that are not less than one, in their order.
func (t *Tree[V]) From(first V) iter.Seq[V] {
	return func(yield func(V) bool) { t.up(t.root, first, yield) }
}

// Before goes through the values that are less than one, the last one first.
func (t *Tree[V]) Before(end V) iter.Seq[V] {
	return func(yield func(V) bool) { t.down(t.root, end, yield) }
}

// Back goes through all values, the last one first.
func (t *Tree[V]) Back() iter.Seq[V] {
	return func(yield func(V) bool) { t.root.allBack(yield) }
}

// child returns which child has a value, if one has it.
func (t *Tree[V]) child(n *node[V], v V) int {
	at, found := slices.BinarySearchFunc(n.values, v, t.compare)
	if !found && at > 0 {
		at--
	}
	return at
}

// owned returns the node as one that this tree may change.
func (t *Tree[V]) owned(n *node[V]) *node[V] {
	if n.owner == t.owner {
		return n
	}
	t.copied += len(n.values) + len(n.children)
	return &node[V]{owner: t.owner, values: slices.Clone(n.values), children: slices.Clone(n.children), count: n.count}
}

// set adds a value below a node that the tree owns. A node that was full is divided: the
// second half comes back.
func (t *Tree[V]) set(n *node[V], v V) (before V, replaced bool, right *node[V]) {
	if n.children == nil {
		at, found := slices.BinarySearchFunc(n.values, v, t.compare)
		if found {
			before, n.values[at] = n.values[at], v
			return before, true, nil
		}
		n.values = slices.Insert(n.values, at, v)
		n.count++
		return before, false, t.divide(n, at)
	}
	at := t.child(n, v)
	c := t.owned(n.children[at])
	n.children[at] = c
	before, replaced, added := t.set(c, v)
	n.values[at] = c.values[0]
	if !replaced {
		n.count++
	}
	if added == nil {
		return before, replaced, nil
	}
	n.values = slices.Insert(n.values, at+1, added.values[0])
	n.children = slices.Insert(n.children, at+1, added)
	return before, replaced, t.divide(n, at+1)
}

// divide divides a node that has too many values; added is the place of the newest. Values
// that come in their order, as those of a list do, fill the nodes.
func (t *Tree[V]) divide(n *node[V], added int) *node[V] {
	if len(n.values) <= width {
		return nil
	}
	at := len(n.values) / 2
	if added == len(n.values)-1 {
		at = added
	}
	right := &node[V]{owner: t.owner, values: slices.Clone(n.values[at:])}
	n.values = slices.Clone(n.values[:at]) // it has grown to twice the capacity
	if n.children != nil {
		right.children = slices.Clone(n.children[at:])
		n.children = slices.Clone(n.children[:at])
	}
	right.recount()
	n.count -= right.count
	return right
}

func (n *node[V]) recount() {
	if n.count = len(n.values); n.children != nil {
		n.count = 0
		for _, c := range n.children {
			n.count += c.count
		}
	}
}

// delete removes a value that is below a node that the tree owns.
func (t *Tree[V]) delete(n *node[V], like V) (before V) {
	n.count--
	if n.children == nil {
		at, _ := slices.BinarySearchFunc(n.values, like, t.compare)
		before = n.values[at]
		n.values = slices.Delete(n.values, at, at+1)
		return before
	}
	at := t.child(n, like)
	c := t.owned(n.children[at])
	n.children[at] = c
	before = t.delete(c, like)
	if c.count == 0 {
		n.values, n.children = slices.Delete(n.values, at, at+1), slices.Delete(n.children, at, at+1)
		return before
	}
	n.values[at] = c.values[0]
	t.join(n, max(at-1, 0))
	return before
}

// join makes one node of a child and the next, if they have few values.
func (t *Tree[V]) join(n *node[V], at int) {
	if at+1 >= len(n.children) || len(n.children[at].values)+len(n.children[at+1].values) > width/2 {
		return
	}
	left, right := t.owned(n.children[at]), n.children[at+1]
	left.values = append(left.values, right.values...)
	left.children = append(left.children, right.children...)
	left.count += right.count
	n.children[at] = left
	n.values, n.children = slices.Delete(n.values, at+1, at+2), slices.Delete(n.children, at+1, at+2)
}

func (t *Tree[V]) up(n *node[V], first V, yield func(V) bool) bool {
	if n.children == nil {
		at, _ := slices.BinarySearchFunc(n.values, first, t.compare)
		return each(n.values[at:], yield)
	}
	at := t.child(n, first)
	if !t.up(n.children[at], first, yield) {
		return false
	}
	for _, c := range n.children[at+1:] {
		if !c.all(yield) {
			return false
		}
	}
	return true
}

// all goes through all values below a node.
func (n *node[V]) all(yield func(V) bool) bool {
	if n.children == nil {
		return each(n.values, yield)
	}
	for _, c := range n.children {
		if !c.all(yield) {
			return false
		}
	}
	return true
}

func each[V any](values []V, yield func(V) bool) bool {
	for _, v := range values {
		if !yield(v) {
			return false
		}
	}
	return true
}

func (t *Tree[V]) down(n *node[V], end V, yield func(V) bool) bool {
	if n.children == nil {
		at, _ := slices.BinarySearchFunc(n.values, end, t.compare)
		return back(n.values[:at], yield)
	}
	at := t.child(n, end)
	if !t.down(n.children[at], end, yield) {
		return false
	}
	for _, c := range slices.Backward(n.children[:at]) {
		if !c.allBack(yield) {
			return false
		}
	}
	return true
}

// allBack goes through all values below a node, the last one first.
func (n *node[V]) allBack(yield func(V) bool) bool {
	if n.children == nil {
		return back(n.values, yield)
	}
	for _, c := range slices.Backward(n.children) {
		if !c.allBack(yield) {
			return false
		}
	}
	return true
}

func back[V any](values []V, yield func(V) bool) bool {
	for _, v := range slices.Backward(values) {
		if !yield(v) {
			return false
		}
	}
	return true
}
