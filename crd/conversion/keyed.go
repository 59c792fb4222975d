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
	from, to int // in what is written
	saved    int // where the entry ends that is saved of it; 0 if there is none
}

// toMap appends a map made of a list. That the keys do not ascend is something that a map cannot hold: then all keys are
// saved in their order. Items are converted once: they may have lists that become maps, too.
func (r *run) toMap(out []byte, o *output, at int, node jsondoc.Value) []byte {
	start, from := len(out), len(r.saved)
	out = append(out, '{')
	out, parts, regular, ascending := r.parts(out, o.each, at, r.byName(node, r.slots[at].at, o.each.keys[0].own))
	if !ascending {
		made := append(r.made[:0], out[start:]...)
		slices.SortStableFunc(parts, func(a, b part) int { return bytes.Compare(a.key, b.key) })
		out = append(out[:start], '{')
		for i, p := range parts {
			if i > 0 && bytes.Equal(p.key, parts[i-1].key) {
				regular = false
				continue
			}
			out = append(appendComma(out), made[p.from-start:p.to-start]...)
		}
		r.made = made[:0]
	}
	out = append(out, '}')
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

// parts appends the members of the map that the items of a list become, in the order of the list, and saves what those
// cannot hold. It reports whether each item has a key and a value, and whether the keys ascend.
func (r *run) parts(dst []byte, c *context, at int, find func([]byte) jsondoc.Value) (out []byte, parts []part, regular, ascending bool) {
	out, regular, ascending = dst, true, true
	v, from := r.slots[at].at, len(r.saved)
	parts = make([]part, 0, r.doc.Len(v))
	name := c.keys[0].own
	for _, item := range r.doc.Items(v) {
		k, ok := r.doc.Get(item, name)
		if !ok || r.doc.Kind(k) != jsondoc.String {
			regular = false
			continue
		}
		key := r.text(k)
		if n := len(parts); ascending && n > 0 && bytes.Compare(parts[n-1].key, key) >= 0 {
			ascending = false
			r.saveOrder(c, parts, from)
		}
		end := len(r.saved)
		f := r.enter(c, item)
		entry := find(key)
		r.groups(c, f, entry)
		before := len(out)
		out = append(jsondoc.AppendString(appendComma(out), key), ':')
		n := len(out)
		if out = r.value(out, c.write, f, entry, true); len(out) == n {
			out, regular = out[:before], false // a map has no place for a key without a value
		} else {
			if out[before] == ',' {
				before++
			}
			parts = append(parts, part{key: key, from: before, to: len(out)})
		}
		r.saveEntry(c, f, from, end)
		if n := len(parts); len(r.saved) > end && n > 0 {
			parts[n-1].saved = len(r.saved)
		} else if !ascending && !r.pure {
			r.saveKey(name, key, from)
		}
		r.leave(f)
	}
	return out, parts, regular, ascending
}

// saveKey appends an entry that says nothing but the place of a key.
func (r *run) saveKey(name string, key []byte, from int) {
	if len(r.saved) > from {
		r.saved = append(r.saved, ',')
	}
	r.saved = append(jsondoc.AppendString(append(r.saved, '{'), name), ':')
	r.saved = append(jsondoc.AppendString(r.saved, key), '}')
}

// saveOrder adds entries to r.saved[from:] for the items so far that have none there.
func (r *run) saveOrder(c *context, parts []part, from int) {
	if r.pure {
		return
	}
	entries := slices.Clone(r.saved[from:])
	r.saved = r.saved[:from]
	done := 0
	for _, p := range parts {
		if p.saved == 0 {
			r.saveKey(c.keys[0].own, p.key, from)
			continue
		}
		entry := bytes.TrimPrefix(entries[done:p.saved-from], []byte{','})
		done = p.saved - from
		if len(r.saved) > from {
			r.saved = append(r.saved, ',')
		}
		r.saved = append(r.saved, entry...)
	}
}

// text returns the value of a string.
func (r *run) text(v jsondoc.Value) []byte {
	if r.doc.Plain(v) {
		raw := r.doc.Raw(v)
		return raw[1 : len(raw)-1]
	}
	return r.doc.AppendText(nil, v)
}

// byName returns a function that finds members of an object that was saved by the names of items. If items have the same
// name, none of them gets what was saved.
func (r *run) byName(node, list jsondoc.Value, name string) func(key []byte) jsondoc.Value {
	if node == none || r.payload.Kind(node) != jsondoc.Object {
		return func([]byte) jsondoc.Value { return none }
	}
	index := make(map[string]jsondoc.Value, r.payload.Len(node))
	for m := range r.payload.Members(node) {
		index[string(r.payload.Key(m.Key))] = m.Value
	}
	seen := make(map[string]bool, len(index))
	for _, item := range r.doc.Items(list) {
		if k, ok := r.doc.Get(item, name); ok && r.doc.Kind(k) == jsondoc.String {
			key := string(r.text(k))
			if seen[key] {
				delete(index, key)
			}
			seen[key] = true
		}
	}
	return func(key []byte) jsondoc.Value {
		if v, ok := index[string(key)]; ok {
			return v
		}
		return none
	}
}

// toList appends a list made of a map: in the order of the keys, or in the order that was saved.
func (r *run) toList(out []byte, o *output, at int, node jsondoc.Value) []byte {
	c, start := o.each, len(out)
	outer := r.key
	defer func() { r.key = outer }()
	entries, order := r.order(node, c.keys[0].own)
	from := len(r.saved)
	out = append(out, '[')
	keys := r.doc.SortedKeys(r.slots[at].at)
	var parts []part // if their order is another one
	if order != nil {
		parts = make([]part, 0, keys.Len())
	}
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
		if i > 0 {
			out = append(out, ',')
		}
		n := len(out)
		out = r.value(out, c.write, f, entry, true)
		if order != nil {
			parts = append(parts, part{key: key, from: n, to: len(out)})
		}
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
		made := append(r.made[:0], out[start:]...)
		out = append(out[:start], '[')
		for i, p := range parts {
			if i > 0 {
				out = append(out, ',')
			}
			out = append(out, made[p.from-start:p.to-start]...)
		}
		r.made = made[:0]
	}
	out = append(out, ']')
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
			entries[name] = none
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
