package exec

import (
	"bytes"
	"strconv"

	"github.com/espalier-dev/espalier/internal/jsondoc"
	"github.com/espalier-dev/espalier/internal/plan"
)

// pairing is a value of an object and the value that was in its place before
// the change. Objects pair by key, items of lists of type map by their keys,
// and nothing else does.
type pairing struct {
	node     *plan.Node
	now, was jsondoc.Value
	ok       bool // there is a value that was
}

// history compares an object with what it was. It remembers what it has
// compared, so that asking at every level costs no more than asking once.
type history struct {
	now, was *jsondoc.Doc
	equal    map[jsondoc.Value]bool
	lists    map[jsondoc.Value]map[string]jsondoc.Value
}

func newHistory(now, was *jsondoc.Doc) *history {
	return &history{now: now, was: was, equal: map[jsondoc.Value]bool{}, lists: map[jsondoc.Value]map[string]jsondoc.Value{}}
}

// root pairs the objects themselves.
func (h *history) root(n *plan.Node) pairing {
	if h == nil {
		return pairing{}
	}
	return pairing{node: n, now: jsondoc.Root, was: jsondoc.Root, ok: true}
}

// fieldSchema returns the schema of the member called key. Upstream can
// compare only what has one.
func fieldSchema(n *plan.Node, key []byte) *plan.Node {
	if n == nil {
		return nil
	}
	if rank := n.Props.Lookup(key); rank >= 0 {
		return n.Props.At(rank).Node
	}
	return n.Additional
}

// members calls f for every member of p's value, with the old value of the
// same key. Both documents are sorted.
func (h *history) members(p pairing, f func(key jsondoc.Value, was jsondoc.Value, ok bool) bool) {
	k, end := p.now+1, h.now.Next(p.now)
	var old, oldEnd jsondoc.Value
	if p.ok && h.was.Kind(p.was) == jsondoc.Object {
		old, oldEnd = p.was+1, h.was.Next(p.was)
	}
	for ; k < end; k = h.now.Next(k + 1) {
		c := -1
		for old < oldEnd {
			if c = bytes.Compare(h.now.Key(k), h.was.Key(old)); c <= 0 {
				break
			}
			old = h.was.Next(old + 1)
		}
		if c == 0 && old < oldEnd {
			if !f(k, old+1, true) {
				return
			}
			continue
		}
		if !f(k, 0, false) {
			return
		}
	}
}

// item pairs an item of the list that p is, by its keys if it is a list map.
func (h *history) item(p pairing, item jsondoc.Value) pairing {
	if !p.ok || p.node == nil || p.node.Items == nil || p.node.Flags&plan.ListMap == 0 || p.node.Type != plan.Array || p.node.Rare == nil ||
		h.was.Kind(p.was) != jsondoc.Array || h.now.Kind(item) != jsondoc.Object {
		return pairing{}
	}
	byKey, ok := h.lists[p.was]
	if !ok {
		byKey = map[string]jsondoc.Value{}
		for _, c := range h.was.Items(p.was) {
			if key, ok := listKey(h.was, c, p.node.Rare.ListMapKeys); ok {
				if _, taken := byKey[key]; !taken {
					byKey[key] = c
				}
			}
		}
		h.lists[p.was] = byKey
	}
	key, ok := listKey(h.now, item, p.node.Rare.ListMapKeys)
	if !ok {
		return pairing{}
	}
	was, ok := byKey[key]
	return pairing{node: p.node.Items, now: item, was: was, ok: ok}
}

// listKey returns what identifies an item of a list map among others: the
// values of its keys, which must all be there and be scalars. With several
// keys upstream prints floats with six digits, so that closer ones are alike.
func listKey(d *jsondoc.Doc, item jsondoc.Value, keys []string) (string, bool) {
	if d.Kind(item) != jsondoc.Object {
		return "", false
	}
	var b []byte
	for _, name := range keys {
		v, ok := d.Get(item, name)
		if !ok {
			return "", false
		}
		switch k := d.Kind(v); k {
		case jsondoc.Null, jsondoc.Array, jsondoc.Object:
			return "", false
		case jsondoc.Number:
			b = append(b, 'n')
			if _, isInt := wholeNumber(d, v); isInt || len(keys) == 1 {
				b = d.AppendCanonical(b, v)
			} else {
				b = strconv.AppendFloat(b, d.Float64(v), 'f', 6, 64)
			}
		default:
			b = append(b, 's')
			b = d.AppendCanonical(b, v)
		}
		b = append(b, 0)
	}
	return string(b), true
}

// unchanged reports whether p's value equals the one before: as upstream
// compares them, for which an object with a field that has no schema is never
// what it was.
func (h *history) unchanged(p pairing) bool {
	if h == nil || !p.ok {
		return false
	}
	if same, known := h.equal[p.now]; known {
		return same
	}
	same := h.compare(p)
	h.equal[p.now] = same
	return same
}

func (h *history) compare(p pairing) bool {
	kind := h.now.Kind(p.now)
	if kind != h.was.Kind(p.was) {
		return false
	}
	switch kind {
	case jsondoc.Object:
		if h.now.Len(p.now) != h.was.Len(p.was) {
			return false
		}
		same := true
		h.members(p, func(k, was jsondoc.Value, ok bool) bool {
			child := fieldSchema(p.node, h.now.Key(k))
			same = ok && child != nil && h.unchanged(pairing{node: child, now: k + 1, was: was, ok: true})
			return same
		})
		return same
	case jsondoc.Array:
		if h.now.Len(p.now) != h.was.Len(p.was) {
			return false
		}
		if p.node.Flags&plan.ListMap == 0 {
			return sameValue(h.now, p.now, h.was, p.was)
		}
		for _, c := range h.now.Items(p.now) {
			if !h.unchanged(h.item(p, c)) {
				return false
			}
		}
		return true
	}
	return sameValue(h.now, p.now, h.was, p.was)
}

// sameValue reports whether two values are the same JSON.
func sameValue(a *jsondoc.Doc, v jsondoc.Value, b *jsondoc.Doc, w jsondoc.Value) bool {
	if a.IsCanonical(v) && b.IsCanonical(w) {
		return bytes.Equal(a.Raw(v), b.Raw(w))
	}
	return bytes.Equal(a.AppendCanonical(nil, v), b.AppendCanonical(nil, w))
}
