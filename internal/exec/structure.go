package exec

import (
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/espalier-dev/espalier/internal/jsondoc"
	"github.com/espalier-dev/espalier/internal/plan"
)

// inspector looks for what upstream checks apart from values: that embedded
// resources are resources, and that sets and map lists have no duplicates.
// Upstream writes keys of maps in brackets there.
type inspector struct {
	d     *jsondoc.Doc
	which plan.Flags // EmbeddedBelow, ListsBelow
	path  path
	lists uniqueness
	errs  []Violation
	bytes int
}

// inspect returns the violations below the root, in embedded resources or in
// lists.
func inspect(d *jsondoc.Doc, n *plan.Node, which plan.Flags) []Violation {
	return inspectAt(d, n, which, nil)
}

// inspectAt is inspect for a document that is itself at a path.
func inspectAt(d *jsondoc.Doc, n *plan.Node, which plan.Flags, at path) []Violation {
	i := inspector{d: d, which: which, path: at}
	i.value(jsondoc.Root, n)
	return i.errs
}

func (i *inspector) value(v jsondoc.Value, n *plan.Node) {
	if n == nil || n.Flags&i.which == 0 || i.bytes >= maxViolationBytes || len(i.errs) >= maxViolations {
		return
	}
	switch i.d.Kind(v) {
	case jsondoc.Object:
		if i.which == plan.EmbeddedBelow && n.Flags&plan.Embedded != 0 && !embeddedValid(i.d, v) {
			for _, x := range embeddedErrors(i.d, v, i.path) {
				i.add(x)
			}
		}
		end := i.d.Next(v)
		for k := v + 1; k < end; k = i.d.Next(k + 1) {
			key := i.d.Key(k)
			child, at := n.Additional, step{kind: keyStep, key: key}
			if rank := n.Props.Lookup(key); rank >= 0 {
				child, at.kind = n.Props.At(rank).Node, fieldStep
			}
			i.below(k+1, child, at)
		}
	case jsondoc.Array:
		if i.which == plan.ListsBelow && n.Flags&(plan.ListSet|plan.ListMap) != 0 {
			i.list(v, n)
		}
		for at, c := range i.d.Items(v) {
			i.below(c, n.Items, step{kind: indexStep, index: at})
		}
	}
}

func (i *inspector) below(v jsondoc.Value, n *plan.Node, at step) {
	i.path = append(i.path, at)
	i.value(v, n)
	i.path = i.path[:len(i.path)-1]
}

func (i *inspector) add(x Violation) {
	i.bytes += len(x.Path) + len(x.Detail)
	i.errs = append(i.errs, x)
}

// list notes the duplicates of a set or map list.
func (i *inspector) list(v jsondoc.Value, n *plan.Node) {
	if n.Flags&plan.ListMap != 0 {
		if at, ok := notObject(i.d, v); ok {
			item, _ := i.d.Index(v, at)
			i.item(at, item, Violation{Type: field.ErrorTypeInvalid, BadValue: i.d.Any(item),
				Detail: "must be an object for an array of list-type map"})
			return
		}
	}
	keys := mapKeys(n)
	i.lists.duplicates(i.d, v, keys, func(at int, item jsondoc.Value) bool {
		bad := any(nil)
		if keys == nil {
			bad = i.d.Any(item)
		} else {
			named := map[string]any{}
			for _, key := range keys {
				if k, ok := i.d.Get(item, key); ok {
					named[key] = i.d.Any(k)
				}
			}
			bad = named
		}
		i.item(at, item, Violation{Type: field.ErrorTypeDuplicate, BadValue: bad})
		return len(i.errs) < maxViolations
	})
}

func (i *inspector) item(at int, v jsondoc.Value, x Violation) {
	i.path = append(i.path, step{kind: indexStep, index: at})
	x.Path = i.path.field()
	i.path = i.path[:len(i.path)-1]
	x.At, x.Offset, x.Keyword = x.Path, i.d.Offset(v), "x-kubernetes-list-type"
	i.add(x)
}
