package exec

import (
	"github.com/espalier-dev/espalier/internal/jsondoc"
	"github.com/espalier-dev/espalier/internal/plan"
)

// value writes what becomes of v, which n describes; n is nil where the schema
// says nothing. keep is set for items of an array whose unknown fields are
// preserved: upstream passes that on to items, and to nothing else.
func (w *walker) value(v jsondoc.Value, n *plan.Node, keep bool) error {
	if n == nil {
		w.unspecified(v, keep || w.steps&Prune == 0)
		return nil
	}
	kind := w.d.Kind(v)
	if kind < jsondoc.Array {
		w.scalar(v, kind, n)
		return nil
	}
	if !n.Accepts.Has(kind) {
		w.mismatch(v, n)
	}
	keep = keep || n.Flags&plan.PreserveUnknown != 0 || w.steps&Prune == 0
	if kind == jsondoc.Array {
		return w.array(v, n, keep)
	}
	is := noResource
	if n.Flags&plan.Embedded != 0 && w.steps&Coerce != 0 {
		is = embeddedResource
	}
	return w.object(v, n, keep, is)
}

// scalar writes a value that is neither object nor array.
func (w *walker) scalar(v jsondoc.Value, kind jsondoc.Kind, n *plan.Node) {
	if n != nil && (!n.Accepts.Has(kind) || kind == jsondoc.Number && n.Flags&plan.Whole != 0 && !integral(w.d, v, n)) {
		w.mismatch(v, n)
	}
	w.out.Scalar(v)
}

// unspecified writes a value that no schema describes: objects lose all their
// fields, unless they are to be kept.
func (w *walker) unspecified(v jsondoc.Value, keep bool) {
	kind := w.d.Kind(v)
	if keep || kind < jsondoc.Array {
		w.verbatim(v)
		return
	}
	end := w.d.Next(v)
	if kind == jsondoc.Object {
		w.out.Byte('{')
		w.out.Byte('}')
		if w.rec == nil {
			if end > v+1 {
				w.changes |= Pruned
			}
			c := w.cursor(v) // knows of duplicates
			c.abandon()
			return
		}
		for c := w.cursor(v); c.next(); {
			w.notePruned(c.key, nil)
		}
		return
	}
	w.out.Byte('[')
	i := 0
	for c := v + 1; c < end; c = w.d.Next(c) {
		if i > 0 {
			w.out.Byte(',')
		}
		w.push(step{kind: indexStep, index: i})
		w.unspecified(c, false)
		w.pop()
		i++
	}
	w.out.Byte(']')
}

// verbatim writes v as it is, in canonical form. Only duplicates can be lost.
func (w *walker) verbatim(v jsondoc.Value) {
	before := w.out.Duplicates
	w.out.Value(v)
	if w.out.Duplicates > before {
		w.changes |= Duplicated
		if w.rec != nil {
			w.noteDuplicates(v)
		}
	}
}

// noteDuplicates reports the duplicate keys within a value written verbatim.
func (w *walker) noteDuplicates(v jsondoc.Value) {
	switch w.d.Kind(v) {
	case jsondoc.Object:
		for c := w.cursor(v); c.next(); {
			if w.d.Kind(c.val) >= jsondoc.Array && !w.d.IsCanonical(c.val) {
				w.push(step{key: w.d.Key(c.key)})
				w.noteDuplicates(c.val)
				w.pop()
			}
		}
	case jsondoc.Array:
		for i, c := range w.d.Items(v) {
			w.push(step{kind: indexStep, index: i})
			w.noteDuplicates(c)
			w.pop()
		}
	}
}

// cursor ranges over the effective members of an object, sorted by key.
type cursor struct {
	w        *walker
	key, val jsondoc.Value
	at, end  jsondoc.Value
	keys     jsondoc.Keys
	i        int
	unsorted bool
}

func (w *walker) cursor(v jsondoc.Value) cursor {
	if w.d.Sorted(v) {
		return cursor{w: w, at: v + 1, end: w.d.Next(v)}
	}
	c := cursor{w: w, keys: w.d.SortedKeys(v), unsorted: true}
	if c.keys.Duplicates > 0 {
		w.changes |= Duplicated
	}
	return c
}

func (c *cursor) next() bool {
	if !c.unsorted {
		if c.at >= c.end {
			return false
		}
		c.key, c.val = c.at, c.at+1
		c.at = c.w.d.Next(c.val)
		return true
	}
	return c.nextSorted()
}

func (c *cursor) nextSorted() bool {
	if c.i == c.keys.Len() {
		c.keys.Release()
		return false
	}
	var duplicate bool
	c.key, duplicate = c.keys.At(c.i)
	c.val = c.key + 1
	c.i++
	if duplicate {
		c.w.note(Duplicated, c.key, c.w.d.Key(c.key), "the key appears more than once; the last value counts")
	}
	return true
}

// member writes the comma and the key before a member's value.
func (w *walker) member(k jsondoc.Value, first *bool) {
	w.out.Member(k, *first)
	*first = false
}

// role is what an object is besides an object.
type role uint8

const (
	noResource role = iota
	rootResource
	embeddedResource
)

// object writes an object described by n.
func (w *walker) object(v jsondoc.Value, n *plan.Node, keep bool, is role) error {
	fill := filler{props: n.Props}
	if w.steps&Default != 0 && n.Props != nil {
		fill.ranks = n.Props.Defaults
	}
	sorted := w.d.Sorted(v)
	if !sorted && is == noResource && w.rec == nil {
		if from, ok := w.rank(v, n); ok {
			return w.ranked(v, n, from, &fill)
		}
	}
	w.out.Byte('{')
	first := true
	if sorted {
		end := w.d.Next(v)
		for k := v + 1; k < end; k = w.d.Next(k + 1) {
			if err := w.memberOf(v, k, n, keep, is, &fill, &first); err != nil {
				return err
			}
		}
	} else {
		for c := w.cursor(v); c.next(); {
			if err := w.memberOf(v, c.key, n, keep, is, &fill, &first); err != nil {
				return err
			}
		}
	}
	w.fillRest(&fill, v, &first)
	w.out.Byte('}')
	return nil
}

// memberOf writes the member k of the object v, which n describes, and the
// defaults that come before it.
func (w *walker) memberOf(v, k jsondoc.Value, n *plan.Node, keep bool, is role, fill *filler, first *bool) error {
	key := w.d.Key(k)
	rank := n.Props.Lookup(key)
	if len(fill.ranks) > 0 {
		w.fillBefore(fill, rank, key, v, first)
	}
	if is != noResource && isMetaField(key) {
		if is == rootResource {
			return w.rootMember(k, key, first)
		}
		var child *plan.Node
		if rank >= 0 {
			child = n.Props.At(rank).Node
		}
		return w.metaMember(k, key, child, first)
	}
	return w.field(k, key, rank, n, keep, first)
}

// rankedKey is a member of an object and the rank of its property.
type rankedKey struct {
	rank uint32
	key  jsondoc.Value
}

// maxRanked is how many members insertion sort is good for.
const maxRanked = 48

// rank sorts the members of an object all of whose keys are properties: by
// their ranks, which compare faster than names. It reports false, and the
// caller sorts by name, if there are other keys or too many.
func (w *walker) rank(v jsondoc.Value, n *plan.Node) (from int, ok bool) {
	from = len(w.ranks)
	end := w.d.Next(v)
	for k := v + 1; k < end; k = w.d.Next(k + 1) {
		r := n.Props.Lookup(w.d.Key(k))
		if r < 0 || len(w.ranks)-from == maxRanked {
			w.ranks = w.ranks[:from]
			return 0, false
		}
		w.ranks = append(w.ranks, rankedKey{uint32(r), k})
		list := w.ranks[from:]
		i := len(list) - 1
		for ; i > 0 && list[i-1].rank > uint32(r); i-- {
			list[i] = list[i-1]
		}
		list[i] = rankedKey{uint32(r), k}
	}
	return from, true
}

// ranked writes the object whose members rank has sorted.
func (w *walker) ranked(v jsondoc.Value, n *plan.Node, from int, fill *filler) error {
	w.out.Byte('{')
	first := true
	end := len(w.ranks)
	for i := from; i < end; i++ {
		r := w.ranks[i]
		if i+1 < end && w.ranks[i+1].rank == r.rank {
			w.changes |= Duplicated
			continue // a later one counts
		}
		if len(fill.ranks) > 0 {
			w.fillBefore(fill, int(r.rank), nil, v, &first)
		}
		if err := w.field(r.key, w.d.Key(r.key), int(r.rank), n, false, &first); err != nil {
			return err
		}
	}
	w.ranks = w.ranks[:from]
	w.fillRest(fill, v, &first)
	w.out.Byte('}')
	return nil
}

// field writes the member k of an object described by n. rank is that of the
// property of its name, or negative.
func (w *walker) field(k jsondoc.Value, key []byte, rank int, n *plan.Node, keep bool, first *bool) error {
	v := k + 1
	at := step{key: key}
	var child *plan.Node
	switch {
	case rank >= 0:
		child = n.Props.At(rank).Node
	case n.Flags&plan.Additional != 0:
		child = n.Additional
		at.kind = keyStep
	case keep:
		w.member(k, first)
		w.push(at)
		w.verbatim(v)
		w.pop()
		return nil
	default:
		w.notePruned(k, n)
		return nil
	}
	kind := w.d.Kind(v)
	if kind == jsondoc.Null && child != nil && child.Flags&plan.Nullable == 0 && w.null(k, child, first) {
		return nil
	}
	w.member(k, first)
	if kind < jsondoc.Array && !w.track {
		w.scalar(v, kind, child)
		return nil
	}
	w.push(at)
	err := w.value(v, child, false)
	w.pop()
	return err
}

// null deals with a member whose value is null and may not be: its default
// takes its place, or it is dropped. It reports whether the member is done.
func (w *walker) null(k jsondoc.Value, child *plan.Node, first *bool) bool {
	if child.Flags&plan.HasDefault != 0 {
		if w.steps&Default == 0 {
			return false
		}
		w.member(k, first)
		w.out.Insert(child.Rare.Default)
		w.note(Defaulted, k, w.d.Key(k), "null is not allowed here; the default takes its place")
		return true
	}
	if w.steps&DropNulls == 0 {
		return false
	}
	w.note(NullDropped, k, w.d.Key(k), "null is not allowed here and there is no default")
	return true
}

// array writes an array described by n.
func (w *walker) array(v jsondoc.Value, n *plan.Node, keep bool) error {
	w.out.Byte('[')
	items, end := n.Items, w.d.Next(v)
	i := 0
	for c := v + 1; c < end; c = w.d.Next(c) {
		if i > 0 {
			w.out.Byte(',')
		}
		i++
		if kind := w.d.Kind(c); !w.track && jsondoc.Null < kind && kind < jsondoc.Array {
			w.scalar(c, kind, items)
			continue
		}
		w.push(step{kind: indexStep, index: i - 1})
		if items != nil && items.Flags&(plan.HasDefault|plan.Nullable) == plan.HasDefault && w.d.Kind(c) == jsondoc.Null && w.steps&Default != 0 {
			w.out.Insert(items.Rare.Default)
			w.note(Defaulted, c, nil, "null is not allowed here; the default takes its place")
		} else if err := w.value(c, items, keep); err != nil {
			return err
		}
		w.pop()
	}
	w.out.Byte(']')
	return nil
}

// filler is the defaults of an object that are still to come.
type filler struct {
	props *plan.Props
	ranks []uint32
}

// fillBefore inserts the defaults that sort before a member, and takes the
// member's own from the list. A rank decides the order without comparing
// names; members that are not properties have none.
func (w *walker) fillBefore(f *filler, rank int, key []byte, v jsondoc.Value, first *bool) {
	for len(f.ranks) > 0 {
		next := int(f.ranks[0])
		switch {
		case rank >= 0 && next > rank, rank < 0 && f.props.At(next).Name >= string(key):
			return
		case next == rank:
			f.ranks = f.ranks[1:]
			return
		}
		w.insert(f.props.At(next), v, first)
		f.ranks = f.ranks[1:]
	}
}

func (w *walker) fillRest(f *filler, v jsondoc.Value, first *bool) {
	for _, rank := range f.ranks {
		w.insert(f.props.At(int(rank)), v, first)
	}
}

// insert writes a property that is missing, with its default.
func (w *walker) insert(p *plan.Prop, v jsondoc.Value, first *bool) {
	if !*first {
		w.out.Byte(',')
	}
	*first = false
	w.out.Text(p.Name)
	w.out.Byte(':')
	w.out.Insert(p.Node.Rare.Default)
	w.changes |= Defaulted
	if w.rec != nil {
		w.note(Defaulted, v, []byte(p.Name), "the field is missing; its default is filled in")
	}
}

// mismatch notes that a value is not of the type that its schema demands.
func (w *walker) mismatch(v jsondoc.Value, n *plan.Node) {
	if w.steps&CheckTypes == 0 {
		return
	}
	w.changes |= Mismatched
	if w.rec != nil {
		w.note(Mismatched, v, nil, "must be of type "+typeNames(n)+", but is "+valueType(w.d, v))
	}
}

func valueType(d *jsondoc.Doc, v jsondoc.Value) string {
	if d.Kind(v) == jsondoc.Number {
		if _, ok := d.Int64(v); ok {
			return "integer"
		}
	}
	return d.Kind(v).String()
}

// typeNames lists the types that n admits, as they are called in a schema.
func typeNames(n *plan.Node) string {
	names := ""
	for k := jsondoc.False; k <= jsondoc.Object; k++ {
		if !n.Accepts.Has(k) || k == jsondoc.True {
			continue
		}
		name := k.String()
		if k == jsondoc.Number && n.Flags&plan.Whole != 0 {
			name = "integer"
		}
		if names != "" {
			names += " or "
		}
		names += name
	}
	return names
}

// integral reports whether a number passes for an integer.
func integral(d *jsondoc.Doc, v jsondoc.Value, n *plan.Node) bool {
	if _, ok := wholeNumber(d, v); ok {
		return true
	}
	return n.Flags&plan.IntOrString != 0 && nearlyWhole(d.Float64(v))
}

// isMetaField reports whether key is one of the three fields that every
// resource has.
func isMetaField(key []byte) bool {
	switch len(key) {
	case 4:
		return string(key) == "kind"
	case 8:
		return string(key) == "metadata"
	case 10:
		return string(key) == "apiVersion"
	}
	return false
}
