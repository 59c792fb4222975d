package exec

import (
	"bytes"
	"slices"

	"github.com/espalier-dev/espalier/internal/jsondoc"
	"github.com/espalier-dev/espalier/internal/plan"
)

// AppendFields appends the fields of an object in the form of FieldsV1, the
// value of managedFields: those that its creator owns, which are all but what
// a server fills in, and the members at the root that are named in except. d
// is a whole resource in canonical form.
//
// It reports false, and what it has appended is void, if that is not to be
// said without comparing values: for sets of other things than scalars, items
// of a list map without a key, and lists with duplicates.
//
// Which parts of an object have owners of their own is the decision of
// structured-merge-diff: fields of objects and entries of maps do, unless they
// are atomic; items of sets and list maps do, those of other lists do not.
func AppendFields(dst []byte, n *plan.Node, d *jsondoc.Doc, except ...string) ([]byte, bool) {
	w := fieldsWriter{d: d, out: append(dst, '{'), ok: true}
	first := true
	for m := range d.Members(jsondoc.Root) {
		key := d.Key(m.Key)
		switch {
		case string(key) == "apiVersion" || string(key) == "kind" || named(except, key):
			continue
		case string(key) == "metadata":
			first = w.metadata(m, first)
			continue
		}
		w.field(m.Key, &first)
		w.value(m.Value, child(n, key))
	}
	return append(w.out, '}'), w.ok
}

func named(names []string, key []byte) bool {
	for _, name := range names {
		if name == string(key) {
			return true
		}
	}
	return false
}

type fieldsWriter struct {
	d     *jsondoc.Doc
	out   []byte
	names []byte // scratch: the names of items of the lists that are being written
	ok    bool
}

const empty = "{}"

// child is what a schema says of a member of an object; nil if it leaves that
// open.
func child(n *plan.Node, key []byte) *plan.Node {
	if n == nil {
		return nil
	}
	if rank := n.Props.Lookup(key); rank >= 0 {
		return n.Props.At(rank).Node
	}
	return n.Additional
}

// field writes what comes before the fields of a member. Its key is written canonically, as
// everything in the document.
func (w *fieldsWriter) field(key jsondoc.Value, first *bool) {
	w.comma(first)
	w.out = append(w.out, `"f:`...)
	w.out = append(w.out, w.d.Raw(key)[1:]...)
	w.out = append(w.out, ':')
}

func (w *fieldsWriter) comma(first *bool) {
	if !*first {
		w.out = append(w.out, ',')
	}
	*first = false
}

// value writes the fields of one part.
func (w *fieldsWriter) value(v jsondoc.Value, n *plan.Node) {
	switch w.d.Kind(v) {
	case jsondoc.Object:
		w.object(v, n)
	case jsondoc.Array:
		w.list(v, n)
	default:
		w.out = append(w.out, empty...)
	}
}

func (w *fieldsWriter) object(v jsondoc.Value, n *plan.Node) {
	if w.d.Len(v) == 0 || n != nil && n.Flags&plan.MapAtomic != 0 {
		w.out = append(w.out, empty...)
		return
	}
	w.out = append(w.out, `{".":{}`...)
	first := false
	for m := range w.d.Members(v) {
		key := w.d.Key(m.Key)
		w.field(m.Key, &first)
		if n != nil && n.Flags&plan.Embedded != 0 && string(key) == "metadata" {
			w.ok = false // typed by ObjectMeta, whatever the schema says
		}
		w.value(m.Value, child(n, key))
	}
	w.out = append(w.out, '}')
}

func (w *fieldsWriter) list(v jsondoc.Value, n *plan.Node) {
	if w.d.Len(v) == 0 || n == nil || n.Flags&(plan.ListSet|plan.ListMap) == 0 {
		w.out = append(w.out, empty...)
		return
	}
	type item struct {
		from, to int // of its name
		value    jsondoc.Value
	}
	mark, keys := len(w.names), sortedKeys(n)
	items := make([]item, 0, w.d.Len(v))
	for _, c := range w.d.Items(v) {
		from := len(w.names)
		w.itemName(c, n, keys)
		items = append(items, item{from, len(w.names), c})
	}
	slices.SortFunc(items, func(a, b item) int { return bytes.Compare(w.names[a.from:a.to], w.names[b.from:b.to]) })
	w.out = append(w.out, `{".":{}`...)
	first := false
	for i, c := range items {
		name := w.names[c.from:c.to]
		if i > 0 && bytes.Equal(w.names[items[i-1].from:items[i-1].to], name) {
			w.ok = false
		}
		w.comma(&first)
		w.out = append(jsondoc.AppendString(w.out, name), ':')
		w.value(c.value, n.Items)
	}
	w.out = append(w.out, '}')
	w.names = w.names[:mark]
}

// sortedKeys returns the keys of a list map; none of another list.
func sortedKeys(n *plan.Node) []string {
	if n.Flags&plan.ListSet != 0 {
		return nil
	}
	if keys := mapKeys(n); len(keys) < 2 {
		return keys
	}
	return slices.Sorted(slices.Values(mapKeys(n)))
}

// itemName appends how an item of a set or list map is called to the names.
func (w *fieldsWriter) itemName(v jsondoc.Value, n *plan.Node, keys []string) {
	kind := w.d.Kind(v)
	if n.Flags&plan.ListSet != 0 {
		if kind == jsondoc.Object || kind == jsondoc.Array || kind == jsondoc.Null {
			w.ok = false
		}
		w.names = append(append(w.names, "v:"...), w.d.Raw(v)...)
		return
	}
	if kind != jsondoc.Object {
		w.ok = false
		return
	}
	mark := len(w.names)
	w.names = append(w.names, "k:{"...)
	for i, key := range keys {
		field, ok := w.d.Get(v, key)
		if !ok {
			w.ok = false
			w.names = w.names[:mark]
			return
		}
		if i > 0 {
			w.names = append(w.names, ',')
		}
		w.names = append(jsondoc.AppendString(w.names, key), ':')
		w.names = append(w.names, w.d.Raw(field)...)
	}
	w.names = append(w.names, '}')
}

// metadata writes the fields of ObjectMeta that belong to clients.
func (w *fieldsWriter) metadata(of jsondoc.Member, first bool) bool {
	if w.d.Kind(of.Value) != jsondoc.Object {
		return first
	}
	mark, outer, inner := len(w.out), first, true
	w.field(of.Key, &outer)
	w.out = append(w.out, '{')
	for m := range w.d.Members(of.Value) {
		key := w.d.Key(m.Key)
		if serverOwned(key) {
			continue
		}
		w.field(m.Key, &inner)
		w.value(m.Value, metadataNodes[string(key)])
	}
	if inner {
		w.out = w.out[:mark]
		return first
	}
	w.out = append(w.out, '}')
	return false
}

// serverOwned reports whether a field of metadata has no manager.
func serverOwned(key []byte) bool {
	switch string(key) {
	case "name", "namespace", "creationTimestamp", "selfLink", "uid", "clusterName", "generation", "managedFields", "resourceVersion":
		return true
	}
	return false
}

// metadataNodes is what the schema of ObjectMeta says about its lists.
var metadataNodes = map[string]*plan.Node{
	"finalizers": {Flags: plan.ListSet},
	"ownerReferences": {
		Flags: plan.ListMap,
		Rare:  &plan.Rare{ListMapKeys: []string{"uid"}},
		Items: &plan.Node{Flags: plan.MapAtomic},
	},
}

// FieldsKept reports whether a change of an object, from old to now, sets no
// field: whatever now has, old had, with the same value. What a server fills in
// and the members named in except do not count. Both are in canonical form.
func FieldsKept(n *plan.Node, old, now *jsondoc.Doc, except ...string) bool {
	k := keeper{old: old, now: now}
	for m := range now.Members(jsondoc.Root) {
		key := now.Key(m.Key)
		if string(key) == "apiVersion" || string(key) == "kind" || named(except, key) {
			continue
		}
		was, ok := old.Get(jsondoc.Root, string(key))
		switch {
		case !ok:
			return false
		case string(key) == "metadata":
			if !k.metadata(was, m.Value) {
				return false
			}
		case !k.value(was, m.Value, child(n, key)):
			return false
		}
	}
	return true
}

// keeper compares two documents.
type keeper struct{ old, now *jsondoc.Doc }

func (k *keeper) value(was, is jsondoc.Value, n *plan.Node) bool {
	kind := k.now.Kind(is)
	switch {
	case bytes.Equal(k.old.Raw(was), k.now.Raw(is)):
		return true
	case kind != k.old.Kind(was):
		return false
	case kind == jsondoc.Object && (n == nil || n.Flags&plan.MapAtomic == 0):
		return k.object(was, is, n)
	case kind == jsondoc.Array && n != nil && n.Flags&(plan.ListSet|plan.ListMap) != 0:
		return k.list(was, is, n)
	}
	return false
}

func (k *keeper) object(was, is jsondoc.Value, n *plan.Node) bool {
	for m := range k.now.Members(is) {
		key := k.now.Key(m.Key)
		old, ok := k.old.Get(was, string(key))
		if !ok || !k.value(old, m.Value, child(n, key)) {
			return false
		}
	}
	return true
}

func (k *keeper) list(was, is jsondoc.Value, n *plan.Node) bool {
	before, after := fieldsWriter{d: k.old, ok: true}, fieldsWriter{d: k.now, ok: true}
	items, keys := make(map[string]jsondoc.Value, k.old.Len(was)), sortedKeys(n)
	for _, v := range k.old.Items(was) {
		before.names = before.names[:0]
		before.itemName(v, n, keys)
		items[string(before.names)] = v
	}
	for _, v := range k.now.Items(is) {
		after.names = after.names[:0]
		after.itemName(v, n, keys)
		old, ok := items[string(after.names)]
		if !ok || !k.value(old, v, n.Items) {
			return false
		}
	}
	return true
}

func (k *keeper) metadata(was, is jsondoc.Value) bool {
	for m := range k.now.Members(is) {
		key := k.now.Key(m.Key)
		if serverOwned(key) {
			continue
		}
		old, ok := k.old.Get(was, string(key))
		if !ok || !k.value(old, m.Value, metadataNodes[string(key)]) {
			return false
		}
	}
	return true
}
