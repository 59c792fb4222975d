package store

import (
	"cmp"
	"iter"
	"strings"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apiserver/pkg/storage"

	"github.com/espalier-dev/espalier/server/storage/ordered"
)

// An entry is an object as the lister and the cacher have it. It is not changed.
type entry struct {
	key    string
	object runtime.Object
	labels labels.Set
	fields fields.Set
}

func byKey(a, b *entry) int { return strings.Compare(a.key, b.key) }

// contents are the objects of a resource by their keys, and by the declared indexes.
type contents struct {
	tree    *ordered.Tree[*entry]
	indexes []index
}

// An index has the objects with a label, or with a field, by its value and then by their
// keys: what a selector for one value selects is one range of it, in the order of a list. An
// object takes about 40 bytes.
type index struct {
	Index
	tree    *ordered.Tree[indexed]
	compare func(a, b indexed) int
}

// Index names a label or a selectable field. One of them is empty. A field that ends with [] is an array:
// AttrFunc has an ItemField for each of its values.
type Index struct {
	Label, Field string
	Integer      bool // the values of the field are whole numbers, in their order
}

// Array returns the name of the field if that is an array.
func (i Index) Array() (name string, ok bool) { return strings.CutSuffix(i.Field, "[]") }

// ItemField returns the field of objects that have a value in an array. It is ItemValue.
func ItemField(array, value string) string { return array + "[" + value + "]" }

// ItemValue is what objects have in an ItemField. Others lack the field.
const ItemValue = "true"

// itemOf returns the value that an ItemField of an array is about.
func itemOf(array, field string) (value string, ok bool) {
	if len(field) < len(array)+2 || field[:len(array)] != array || field[len(array)] != '[' || field[len(field)-1] != ']' {
		return "", false
	}
	return field[len(array)+1 : len(field)-1], true
}

// String is what metrics call the index, as in k8s.io/apiserver.
func (i Index) String() string {
	if i.Label != "" {
		return storage.LabelIndex(i.Label)
	}
	return storage.FieldIndex(i.Field)
}

// indexed is an object in an index.
type indexed struct {
	value string
	entry *entry
}

func byValue(a, b indexed) int {
	return cmp.Or(strings.Compare(a.value, b.value), strings.Compare(a.entry.key, b.entry.key))
}

func newContents(indexes []Index) *contents {
	c := &contents{tree: ordered.New(byKey)}
	for _, i := range indexes {
		compare := byValue
		if i.Integer {
			compare = byNumber
		}
		c.indexes = append(c.indexes, index{i, ordered.New(compare), compare})
	}
	return c
}

// snapshot returns contents that do not change.
func (c *contents) snapshot() contents {
	s := contents{tree: c.tree.Snapshot()}
	for _, i := range c.indexes {
		s.indexes = append(s.indexes, index{i.Index, i.tree.Snapshot(), i.compare})
	}
	return s
}

// slotBytes and indexSlotBytes are what a value or a child takes in a node of a tree.
const slotBytes, indexSlotBytes = 8, 24

// copied returns how many bytes of the trees have been copied because snapshots share them.
func (c *contents) copied() int64 {
	bytes := slotBytes * c.tree.Copied()
	for _, i := range c.indexes {
		bytes += indexSlotBytes * i.tree.Copied()
	}
	return int64(bytes)
}

// values gives what an index has of an object. To selectors, a field that an object lacks is empty,
// and a label that it lacks is not.
func (i *index) values(e *entry) iter.Seq[string] {
	return func(yield func(string) bool) {
		array, ok := i.Array()
		switch {
		case i.Label != "":
			if value, ok := e.labels[i.Label]; ok {
				yield(value)
			}
		case !ok:
			yield(e.fields[i.Field])
		default:
			for field := range e.fields {
				if value, ok := itemOf(array, field); ok && !yield(value) {
					return
				}
			}
		}
	}
}

// has reports whether a value is one of an object's.
func (i *index) has(e *entry, value string) bool {
	if i.Label != "" {
		is, ok := e.labels[i.Label]
		return ok && is == value
	}
	if array, ok := i.Array(); ok {
		return e.fields[ItemField(array, value)] == ItemValue
	}
	return e.fields[i.Field] == value
}

// wanted returns the one value that a predicate selects, if the index can find that.
func (i *index) wanted(p *storage.SelectionPredicate) (value string, ok bool) {
	if i.Label != "" {
		if p.Label == nil {
			return "", false
		}
		return p.Label.RequiresExactMatch(i.Label)
	}
	if p.Field == nil {
		return "", false
	}
	array, ok := i.Array()
	if !ok {
		return p.Field.RequiresExactMatch(i.Field)
	}
	for _, term := range p.Field.Requirements() {
		if value, ok := itemOf(array, term.Field); ok && term.Value == ItemValue && (term.Operator == selection.Equals || term.Operator == selection.DoubleEquals) {
			return value, true
		}
	}
	return "", false
}

// set adds an object, in place of the one with its key.
func (c *contents) set(e *entry) (before *entry, replaced bool) {
	before, replaced = c.tree.Set(e)
	for n := range c.indexes {
		i := &c.indexes[n]
		if replaced {
			for old := range i.values(before) {
				if !i.has(e, old) {
					i.tree.Delete(indexed{old, before})
				}
			}
		}
		for value := range i.values(e) {
			i.tree.Set(indexed{value, e})
		}
	}
	return before, replaced
}

// delete removes the object with a key.
func (c *contents) delete(like *entry) (before *entry, deleted bool) {
	before, deleted = c.tree.Delete(like)
	if !deleted {
		return nil, false
	}
	for n := range c.indexes {
		i := &c.indexes[n]
		for value := range i.values(before) {
			i.tree.Delete(indexed{value, before})
		}
	}
	return before, true
}

// count returns how many objects have keys from begin to, and without, end.
func (c *contents) count(begin, end string) int {
	return max(0, c.tree.Rank(&entry{key: end})-c.tree.Rank(&entry{key: begin}))
}

// candidates are the objects with keys from begin to, and without, end, that a predicate may
// select: those of the index that has the fewest, or all. name is that of the index.
func (c *contents) candidates(begin, end string, p *storage.SelectionPredicate) (all iter.Seq[*entry], name string) {
	var best *index
	var from, to indexed
	fewest := 0
	for n := range c.indexes {
		i := &c.indexes[n]
		value, ok := i.wanted(p)
		if !ok {
			continue
		}
		first, last := indexed{value, &entry{key: begin}}, indexed{value, &entry{key: end}}
		if found := i.tree.Rank(last) - i.tree.Rank(first); best == nil || found < fewest {
			best, fewest, from, to = i, found, first, last
		}
	}
	if best == nil {
		return takeWhile(c.tree.From(&entry{key: begin}), func(e *entry) (*entry, bool) { return e, e.key < end }), ""
	}
	return takeWhile(best.tree.From(from), func(i indexed) (*entry, bool) { return i.entry, best.compare(i, to) < 0 }), best.String()
}

// takeWhile turns values into entries, until there is one that does not belong to them.
func takeWhile[V any](values iter.Seq[V], of func(V) (*entry, bool)) iter.Seq[*entry] {
	return func(yield func(*entry) bool) {
		for v := range values {
			if e, ok := of(v); !ok || !yield(e) {
				return
			}
		}
	}
}
