package store

import (
	"cmp"
	"iter"
	"strings"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
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
	tree *ordered.Tree[indexed]
}

// Index names a label or a selectable field. One of them is empty.
type Index struct{ Label, Field string }

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
		c.indexes = append(c.indexes, index{i, ordered.New(byValue)})
	}
	return c
}

// snapshot returns contents that do not change.
func (c *contents) snapshot() contents {
	s := contents{tree: c.tree.Snapshot()}
	for _, i := range c.indexes {
		s.indexes = append(s.indexes, index{i.Index, i.tree.Snapshot()})
	}
	return s
}

// value returns what an index has of an object.
func (i *index) value(e *entry) (value string, has bool) {
	if i.Label != "" {
		value, has = e.labels[i.Label]
	} else {
		value, has = e.fields[i.Field]
	}
	return value, has
}

// wanted returns the one value that a predicate selects, if the index can find that.
func (i *index) wanted(p *storage.SelectionPredicate) (value string, ok bool) {
	switch {
	case i.Label != "" && p.Label != nil:
		return p.Label.RequiresExactMatch(i.Label)
	case i.Field != "" && p.Field != nil:
		return p.Field.RequiresExactMatch(i.Field)
	}
	return "", false
}

// set adds an object, in place of the one with its key.
func (c *contents) set(e *entry) (before *entry, replaced bool) {
	before, replaced = c.tree.Set(e)
	for n := range c.indexes {
		i := &c.indexes[n]
		value, has := i.value(e)
		if replaced {
			if old, had := i.value(before); had && (!has || old != value) {
				i.tree.Delete(indexed{old, before})
			}
		}
		if has {
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
		if value, has := i.value(before); has {
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
	return takeWhile(best.tree.From(from), func(i indexed) (*entry, bool) { return i.entry, byValue(i, to) < 0 }), best.String()
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
