package conversion

import (
	"bytes"

	"github.com/espalier-dev/espalier/internal/jsondoc"
)

// finder finds what was saved of items by their keys. Items mostly are in the order in which they were saved. Users may
// write what was saved: the keys of an entry are read once, and entries that have no keys or the same ones are not found.
type finder struct {
	keys    []keyPair
	entries []entry // in their order
	text    []byte  // their keys
	next    int
	index   map[string]int // of those that are not found yet
}

type entry struct {
	at  jsondoc.Value
	end int // of its keys in text
}

func (r *run) finder(c *context, node jsondoc.Value) finder {
	x := finder{keys: c.keys}
	if node == none || r.payload.Kind(node) != jsondoc.Array {
		return x
	}
	x.entries = make([]entry, 0, r.payload.Len(node))
	ascending := true
	for _, e := range r.payload.Items(node) {
		from := len(x.text)
		text, ok := appendKeys(x.text, r.payload, e, x.keys, func(k *keyPair) string { return k.name })
		if x.text = text; !ok {
			x.text = text[:from]
			continue
		}
		ascending = ascending && (len(x.entries) == 0 || bytes.Compare(x.key(len(x.entries)-1), x.text[from:]) < 0)
		x.entries = append(x.entries, entry{e, len(x.text)})
	}
	if !ascending {
		x.makeIndex()
	}
	return x
}

// appendKeys appends the keys of an item. It reports false if one is absent.
func appendKeys(text []byte, doc *jsondoc.Doc, item jsondoc.Value, keys []keyPair, name func(*keyPair) string) ([]byte, bool) {
	if doc.Kind(item) != jsondoc.Object {
		return text, false
	}
	for i := range keys {
		v, ok := doc.Get(item, name(&keys[i]))
		if !ok || doc.Kind(v) == jsondoc.Null {
			return text, false
		}
		text = append(doc.AppendCanonical(text, v), 0)
	}
	return text, true
}

// distinct reports whether each item of a list has all keys, and no other item has the same.
func (r *run) distinct(c *context, list jsondoc.Value) bool {
	text := r.keyText[:0]
	defer func() { r.keyText = text }()
	ends := make([]int, 0, r.doc.Len(list))
	ascending, last := true, []byte(nil)
	for _, item := range r.doc.Items(list) {
		from := len(text)
		var ok bool
		if text, ok = appendKeys(text, r.doc, item, c.keys, func(k *keyPair) string { return k.own }); !ok {
			return false
		}
		ascending = ascending && (last == nil || bytes.Compare(last, text[from:]) < 0)
		last = text[from:]
		ends = append(ends, len(text))
	}
	if ascending {
		return true
	}
	seen, from := make(map[string]bool, len(ends)), 0
	for _, end := range ends {
		if seen[string(text[from:end])] {
			return false
		}
		seen[string(text[from:end])] = true
		from = end
	}
	return true
}

// entry returns what was saved of the item in the frame.
func (x *finder) entry(r *run, f frame) jsondoc.Value {
	if x.next >= len(x.entries) && x.index == nil {
		return none
	}
	wanted := r.keyText[:0]
	for _, k := range x.keys {
		if at := r.slots[f.slots+int(k.slot)].at; at != none {
			wanted = r.doc.AppendCanonical(wanted, at)
		}
		wanted = append(wanted, 0)
	}
	r.keyText = wanted
	if x.index == nil {
		if bytes.Equal(wanted, x.key(x.next)) {
			x.next++
			return x.entries[x.next-1].at
		}
		x.makeIndex()
	}
	i, ok := x.index[string(wanted)]
	if !ok || i < 0 {
		return none
	}
	delete(x.index, string(wanted))
	return x.entries[i].at
}

// makeIndex finds the entries that are not found yet by their keys. Of keys that several entries have, none is found.
func (x *finder) makeIndex() {
	x.index = make(map[string]int, len(x.entries)-x.next)
	for i := x.next; i < len(x.entries); i++ {
		key := string(x.key(i))
		if _, twice := x.index[key]; twice {
			x.index[key] = -1
			continue
		}
		x.index[key] = i
	}
}

// key returns the keys of an entry.
func (x *finder) key(i int) []byte {
	from := 0
	if i > 0 {
		from = x.entries[i-1].end
	}
	return x.text[from:x.entries[i].end]
}
