package exec

import (
	"bytes"
	"slices"
	"strings"

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
		key := string(d.Key(m.Key))
		switch {
		case key == "apiVersion" || key == "kind" || slices.Contains(except, key):
			continue
		case key == "metadata":
			first = w.metadata(m.Value, first)
			continue
		}
		w.field(key, &first)
		w.value(m.Value, child(n, key))
	}
	return append(w.out, '}'), w.ok
}

type fieldsWriter struct {
	d   *jsondoc.Doc
	out []byte
	ok  bool
}

const empty = "{}"

// child is what a schema says of a member of an object; nil if it leaves that
// open.
func child(n *plan.Node, key string) *plan.Node {
	if n == nil {
		return nil
	}
	if p := n.Property(key); p != nil {
		return p
	}
	return n.Additional
}

func (w *fieldsWriter) field(key string, first *bool) {
	w.element("f:"+key, first)
}

// element writes what comes before the fields of a part.
func (w *fieldsWriter) element(name string, first *bool) {
	if !*first {
		w.out = append(w.out, ',')
	}
	*first = false
	w.out = jsondoc.AppendString(w.out, name)
	w.out = append(w.out, ':')
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
		key := string(w.d.Key(m.Key))
		w.field(key, &first)
		if key == "metadata" && n != nil && n.Flags&plan.Embedded != 0 {
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
		name  string
		value jsondoc.Value
	}
	items := make([]item, 0, w.d.Len(v))
	for _, c := range w.d.Items(v) {
		items = append(items, item{w.itemName(c, n), c})
	}
	slices.SortFunc(items, func(a, b item) int { return strings.Compare(a.name, b.name) })
	w.out = append(w.out, `{".":{}`...)
	first := false
	for i, c := range items {
		if i > 0 && items[i-1].name == c.name {
			w.ok = false
		}
		w.element(c.name, &first)
		w.value(c.value, n.Items)
	}
	w.out = append(w.out, '}')
}

// itemName is how an item of a set or list map is called.
func (w *fieldsWriter) itemName(v jsondoc.Value, n *plan.Node) string {
	kind := w.d.Kind(v)
	if n.Flags&plan.ListSet != 0 {
		if kind == jsondoc.Object || kind == jsondoc.Array || kind == jsondoc.Null {
			w.ok = false
		}
		return "v:" + string(w.d.Raw(v))
	}
	if kind != jsondoc.Object {
		w.ok = false
		return ""
	}
	keys := slices.Sorted(slices.Values(mapKeys(n)))
	name := []byte("k:{")
	for i, key := range keys {
		field, ok := w.d.Get(v, key)
		if !ok {
			w.ok = false
			return ""
		}
		if i > 0 {
			name = append(name, ',')
		}
		name = append(jsondoc.AppendString(name, key), ':')
		name = append(name, w.d.Raw(field)...)
	}
	return string(append(name, '}'))
}

// metadata writes the fields of ObjectMeta that belong to clients.
func (w *fieldsWriter) metadata(v jsondoc.Value, first bool) bool {
	if w.d.Kind(v) != jsondoc.Object {
		return first
	}
	mark, outer, inner := len(w.out), first, true
	w.field("metadata", &outer)
	w.out = append(w.out, '{')
	for m := range w.d.Members(v) {
		key := string(w.d.Key(m.Key))
		if serverOwned(key) {
			continue
		}
		w.field(key, &inner)
		w.value(m.Value, metadataNodes[key])
	}
	if inner {
		w.out = w.out[:mark]
		return first
	}
	w.out = append(w.out, '}')
	return false
}

// serverOwned reports whether a field of metadata has no manager.
func serverOwned(key string) bool {
	switch key {
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
		key := string(now.Key(m.Key))
		if key == "apiVersion" || key == "kind" || slices.Contains(except, key) {
			continue
		}
		was, ok := old.Get(jsondoc.Root, key)
		switch {
		case !ok:
			return false
		case key == "metadata":
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
		key := string(k.now.Key(m.Key))
		old, ok := k.old.Get(was, key)
		if !ok || !k.value(old, m.Value, child(n, key)) {
			return false
		}
	}
	return true
}

func (k *keeper) list(was, is jsondoc.Value, n *plan.Node) bool {
	before, after := fieldsWriter{d: k.old, ok: true}, fieldsWriter{d: k.now, ok: true}
	items := make(map[string]jsondoc.Value, k.old.Len(was))
	for _, v := range k.old.Items(was) {
		items[before.itemName(v, n)] = v
	}
	for _, v := range k.now.Items(is) {
		old, ok := items[after.itemName(v, n)]
		if !ok || !k.value(old, v, n.Items) {
			return false
		}
	}
	return true
}

func (k *keeper) metadata(was, is jsondoc.Value) bool {
	for m := range k.now.Members(is) {
		key := string(k.now.Key(m.Key))
		if serverOwned(key) {
			continue
		}
		old, ok := k.old.Get(was, key)
		if !ok || !k.value(old, m.Value, metadataNodes[key]) {
			return false
		}
	}
	return true
}
