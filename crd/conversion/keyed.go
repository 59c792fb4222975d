package conversion

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/espalier-dev/espalier/internal/jsondoc"
)

// listToMap relates a list of one side to a map of the other.
func (p *pairing) listToMap(r *listToMapRule, side int) error {
	l, err := p.claim(side, r.List)
	if err != nil {
		return err
	}
	m, err := p.claim(1-side, r.Map)
	if err != nil {
		return err
	}
	if l.kind != list || l.item.kind != object {
		return fmt.Errorf("%s of %s must be a list of objects", l.path(), p.sides[side].version)
	}
	if m.kind != mapping {
		return fmt.Errorf("%s of %s must be a map, but is %s", m.path(), p.sides[1-side].version, m.describe())
	}
	key := l.item.child(r.Key)
	if key == nil || key.scalar() != "string" || key.explicit {
		return fmt.Errorf("key: the items of %s must have a string %q that no other rule converts", l.path(), r.Key)
	}
	value := l.item
	if r.Value != "" {
		if value = l.item.child(r.Value); value == nil || value.explicit || value == key {
			return fmt.Errorf("value: the items of %s must have a field %q that no other rule converts", l.path(), r.Value)
		}
		l.item.fate = split
	}
	if !alike(value, m.item) {
		return fmt.Errorf("the values of %s are %s, but %s is %s", m.path(), m.item.describe(), value.path(), value.describe())
	}
	key.explicit, value.explicit, m.item.explicit = true, true, true
	key.fate = listKey
	p.pair(l, m)
	p.pair(value, m.item)
	l.item.partner, m.item.partner = m.item, l.item
	l.keyed = &keyed{key: key}
	m.keyed = l.keyed
	return nil
}

// part is what an item or value becomes.
type part struct {
	key      []byte
	from, to int // in the bytes of all parts
}

// toMap appends a map made of a list.
func (r *run) toMap(out []byte, o *output, at int, node jsondoc.Value) []byte {
	start, from := len(out), len(r.saved)
	made, parts, regular := r.parts(o.each, at, r.byName(node))
	slices.SortStableFunc(parts, func(a, b part) int { return bytes.Compare(a.key, b.key) })
	out = append(out, '{')
	for i, p := range parts {
		if i > 0 && bytes.Equal(p.key, parts[i-1].key) {
			regular = false
			continue
		}
		out = append(jsondoc.AppendString(appendComma(out), p.key), ':')
		out = append(out, made[p.from:p.to]...)
	}
	out = append(out, '}')
	r.made = made[:0]
	switch {
	case r.pure:
		return out
	case !regular:
		r.saved = r.saved[:from]
		r.checkList(o, at, out[start:])
		return out
	}
	r.slots[at].from, r.slots[at].to = uint32(from), uint32(len(r.saved))
	return out
}

// parts converts the items of a list to values of a map, and saves what those cannot hold. That the keys do not ascend is
// something that a map cannot hold: then it saves all keys in their order. It reports whether each item has a key and a
// value. Items are converted once: they may have lists that become maps, too.
func (r *run) parts(c *context, at int, find func([]byte) jsondoc.Value) (made []byte, parts []part, regular bool) {
	made, r.made = r.made[:0], nil // lists below have their own
	regular, ascending := true, true
	v, from := r.slots[at].at, len(r.saved)
	parts = make([]part, 0, r.doc.Len(v))
	name := c.keys[0].own
	var more []part // of what is saved: more than the key
	for _, item := range r.doc.Items(v) {
		k, ok := r.doc.Get(item, name)
		if !ok || r.doc.Kind(k) != jsondoc.String {
			regular = false
			continue
		}
		key := r.text(k)
		if n := len(parts); n > 0 && bytes.Compare(parts[n-1].key, key) >= 0 {
			ascending = false
		}
		end := len(r.saved)
		f := r.enter(c, item)
		entry := find(key)
		r.groups(c, f, entry)
		n := len(made)
		if made = r.value(made, c.write, f, entry, true); len(made) == n {
			regular = false // a map has no place for a key without a value
		} else {
			parts = append(parts, part{key, n, len(made)})
		}
		r.saveEntry(c, f, from, end)
		switch {
		case r.pure:
		case len(r.saved) > end:
			more = append(more, part{from: end, to: len(r.saved)})
		default:
			r.saved = append(jsondoc.AppendString(append(r.saved, '{'), name), ':')
			r.saved = append(r.doc.AppendCanonical(r.saved, k), '}')
			r.settle(from, end, end)
		}
		r.leave(f)
	}
	if ascending && !r.pure {
		r.saved = keepOnly(r.saved, from, more)
	}
	return made, parts, regular
}

// keepOnly removes from the entries in saved[from:] all but some.
func keepOnly(saved []byte, from int, some []part) []byte {
	end := from
	for _, p := range some {
		entry := bytes.TrimPrefix(saved[p.from:p.to], []byte{','})
		if end > from {
			saved[end] = ','
			end++
		}
		end += copy(saved[end:], entry)
	}
	return saved[:end]
}

// text returns the value of a string.
func (r *run) text(v jsondoc.Value) []byte {
	if r.doc.Plain(v) {
		raw := r.doc.Raw(v)
		return raw[1 : len(raw)-1]
	}
	return r.doc.AppendText(nil, v)
}

// byName returns a function that finds members of an object that was saved.
func (r *run) byName(node jsondoc.Value) func(key []byte) jsondoc.Value {
	if node == none || r.payload.Kind(node) != jsondoc.Object {
		return func([]byte) jsondoc.Value { return none }
	}
	index := make(map[string]jsondoc.Value, r.payload.Len(node))
	for m := range r.payload.Members(node) {
		index[string(r.payload.Key(m.Key))] = m.Value
	}
	return func(key []byte) jsondoc.Value {
		v, ok := index[string(key)]
		if !ok {
			return none
		}
		delete(index, string(key)) // users may write what was saved: an entry is read once, whatever the list has
		return v
	}
}

// toList appends a list made of a map: in the order of the keys, or in the order that was saved.
func (r *run) toList(out []byte, o *output, at int, node jsondoc.Value) []byte {
	c, start := o.each, len(out)
	outer := r.key
	defer func() { r.key = outer }()
	entries, order := r.order(node, c.keys[0].own)
	from := len(r.saved)
	made := r.made[:0]
	r.made = nil // lists below have their own
	keys := r.doc.SortedKeys(r.slots[at].at)
	parts := make([]part, 0, keys.Len())
	for i := range keys.Len() {
		k, _ := keys.At(i)
		key := r.doc.Key(k)
		end := len(r.saved)
		f := r.enter(c, k+1)
		entry, ok := entries[string(key)]
		if !ok {
			entry = none
		}
		r.key = key
		r.groups(c, f, entry)
		n := len(made)
		made = r.value(made, c.write, f, entry, true)
		parts = append(parts, part{key, n, len(made)})
		r.saveValue(c, f, from, end, key)
		r.leave(f)
	}
	keys.Release()
	if order != nil {
		place := func(p part) int {
			if n, ok := order[string(p.key)]; ok {
				return n
			}
			return len(order)
		}
		slices.SortStableFunc(parts, func(a, b part) int { return place(a) - place(b) })
	}
	out = append(out, '[')
	for i, p := range parts {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, made[p.from:p.to]...)
	}
	out = append(out, ']')
	r.made = made[:0]
	r.slots[at].from, r.slots[at].to = uint32(from), uint32(len(r.saved))
	if v, ok := r.recallList(node, out[start:], jsondoc.Array); ok && !r.pure {
		return r.payload.AppendCanonical(out[:start], v)
	}
	return out
}

// order returns the entries that were saved of a list by their keys and, if they are not in the order of their
// keys, the place of each.
func (r *run) order(node jsondoc.Value, key string) (entries map[string]jsondoc.Value, order map[string]int) {
	if node == none || r.payload.Kind(node) != jsondoc.Array {
		return nil, nil
	}
	entries = map[string]jsondoc.Value{}
	order = map[string]int{}
	ascending, last := true, ""
	for _, e := range r.payload.Items(node) {
		k, ok := r.payload.Get(e, key)
		if !ok || r.payload.Kind(k) != jsondoc.String {
			continue
		}
		name := r.payload.Text(k)
		if _, twice := entries[name]; twice {
			continue
		}
		if len(entries) > 0 && name < last {
			ascending = false
		}
		order[name] = len(entries)
		entries[name], last = e, name
	}
	if ascending {
		order = nil
	}
	return entries, order
}
