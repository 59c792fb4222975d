package exec

import (
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
		switch key {
		case "name", "namespace", "creationTimestamp", "selfLink", "uid", "clusterName", "generation", "managedFields", "resourceVersion":
			continue
		}
		w.field(key, &inner)
		switch key {
		case "finalizers":
			w.list(m.Value, &finalizersNode)
		case "ownerReferences":
			w.list(m.Value, &ownerReferencesNode)
		default:
			w.value(m.Value, nil)
		}
	}
	if inner {
		w.out = w.out[:mark]
		return first
	}
	w.out = append(w.out, '}')
	return false
}

// What the schema of ObjectMeta says about its lists.
var (
	finalizersNode      = plan.Node{Flags: plan.ListSet}
	ownerReferencesNode = plan.Node{
		Flags: plan.ListMap,
		Rare:  &plan.Rare{ListMapKeys: []string{"uid"}},
		Items: &plan.Node{Flags: plan.MapAtomic},
	}
)
