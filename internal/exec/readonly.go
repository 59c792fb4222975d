package exec

import (
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/espalier-dev/espalier/internal/jsondoc"
	"github.com/espalier-dev/espalier/internal/plan"
)

// readOnlyWalk looks for read-only values (KEP-2335) that a change has set,
// changed or removed.
type readOnlyWalk struct {
	*history
	path path
	errs []Violation
}

func (w *readOnlyWalk) value(p pairing) {
	if p.node == nil || p.node.Flags&plan.ReadOnlyBelow == 0 || len(w.errs) >= maxViolations {
		return
	}
	if p.node.Flags&plan.ReadOnly != 0 {
		if !sameValue(w.now, p.now, w.was, p.was) {
			w.report(p.now, "the field is read-only and must not change")
		}
		return
	}
	switch w.now.Kind(p.now) {
	case jsondoc.Object:
		w.members(p, func(k, was jsondoc.Value, ok bool) bool {
			w.field(p.node, w.now.Key(k), k+1, was, ok)
			return true
		})
		w.removed(p)
	case jsondoc.Array:
		for i, c := range w.now.Items(p.now) {
			if item := w.item(p, c); item.ok {
				w.at(step{kind: indexStep, index: i}, func() { w.value(item) })
			}
		}
	}
}

func (w *readOnlyWalk) field(n *plan.Node, key []byte, v, was jsondoc.Value, ok bool) {
	child, kind := n.Additional, keyStep
	if rank := n.Props.Lookup(key); rank >= 0 {
		child, kind = n.Props.At(rank).Node, fieldStep
	}
	if child == nil {
		return
	}
	w.at(step{kind: kind, key: key}, func() {
		switch {
		case ok:
			w.value(pairing{node: child, now: v, was: was, ok: true})
		case child.Flags&plan.ReadOnly != 0:
			w.report(v, "the field is read-only and was not set before")
		}
	})
}

// removed reports the read-only members that are gone.
func (w *readOnlyWalk) removed(p pairing) {
	if w.was.Kind(p.was) != jsondoc.Object {
		return
	}
	back := history{now: w.was, was: w.now}
	back.members(pairing{now: p.was, was: p.now, ok: true}, func(k, _ jsondoc.Value, ok bool) bool {
		rank := p.node.Props.Lookup(w.was.Key(k))
		if !ok && rank >= 0 && p.node.Props.At(rank).Node.Flags&plan.ReadOnly != 0 {
			w.at(step{key: w.was.Key(k)}, func() { w.report(p.now, "the field is read-only and must not be removed") })
		}
		return true
	})
}

func (w *readOnlyWalk) at(s step, f func()) {
	w.path = append(w.path, s)
	f()
	w.path = w.path[:len(w.path)-1]
}

func (w *readOnlyWalk) report(v jsondoc.Value, detail string) {
	at := w.path.field()
	w.errs = append(w.errs, Violation{Type: field.ErrorTypeForbidden, Path: at, At: at, Detail: detail,
		Keyword: "readOnly", Offset: w.now.Offset(v), BadValue: ""})
}
