package conversion

import (
	"bytes"
	"slices"

	"github.com/espalier-dev/espalier/internal/jsondoc"
)

// groupsKey is the member with the records of groups in what is saved of a context. Unknown members whose names begin
// with it are saved with another one before their names. Rules are refused for schemas
// that have a field of this name.
const groupsKey = "~"

// saveContext appends what the target cannot hold of a context: the members of an object, without its brackets.
func (r *run) saveContext(c *context, f frame) {
	if c.read.saves && c.read.kind == object {
		r.saveMembers(&c.read, f.slots)
	}
	first := true
	for i := range c.groups {
		g := &c.groups[i]
		if !r.save[f.groups+i] || g.anchor >= 0 && r.slots[f.slots+int(g.anchor)].state&written == 0 {
			continue // no object of the target asks for the constant when it is converted back
		}
		if first {
			r.comma()
			r.saved = append(r.saved, `"`+groupsKey+`":{`...)
			first = false
		} else {
			r.saved = append(r.saved, ',')
		}
		r.saved = append(jsondoc.AppendString(r.saved, g.name), `:{`...)
		at := f.cells + g.cells
		outs := r.cells[at+len(g.in) : at+len(g.in)+g.outs]
		if g.targetHolder >= 0 && r.slots[f.slots+int(g.targetHolder)].state&written != 0 && !slices.ContainsFunc(outs, func(c []byte) bool { return c != nil }) {
			r.saved = append(r.saved, `"held":true,`...) // only its absence can tell that the user has removed all of it
		}
		r.saved = append(r.saved, `"image":`...)
		r.saved = appendImage(r.saved, outs)
		r.saved = append(r.saved, `,"values":`...)
		r.saved = append(appendTuple(r.saved, r.cells[at:at+len(g.in)]), '}')
	}
	if !first {
		r.saved = append(r.saved, '}')
	}
}

// comma separates members.
func (r *run) comma() {
	if n := len(r.saved); n > 0 && r.saved[n-1] != '{' && r.saved[n-1] != '[' {
		r.saved = append(r.saved, ',')
	}
}

// saveMembers appends what has to be saved of the members of an object.
func (r *run) saveMembers(m *member, base int) {
	at := r.slots[base+int(m.slot)].at
	if at == none || r.doc.Kind(at) != jsondoc.Object {
		return
	}
	for i := range m.members {
		c := &m.members[i]
		if s := r.slots[base+int(c.slot)]; c.saves && s.at != none {
			r.saveMember(c, s, base)
		}
	}
	if m.unknown != preserved {
		return
	}
	keys := r.doc.SortedKeys(at)
	for i := range keys.Len() {
		k, _ := keys.At(i)
		if key := r.doc.Key(k); m.names.Lookup(key) < 0 {
			r.comma()
			if bytes.HasPrefix(key, []byte(groupsKey)) {
				key = append([]byte(groupsKey), key...) // not to be taken for the records of groups
			}
			r.saved = append(jsondoc.AppendString(r.saved, key), ':')
			r.saved = r.doc.AppendCanonical(r.saved, k+1)
		}
	}
	keys.Release()
}

func (r *run) saveMember(c *member, s slot, base int) {
	start := len(r.saved)
	r.comma()
	r.saved = append(r.saved, c.key...)
	switch {
	case c.fate == preserved:
		r.saved = r.doc.AppendCanonical(r.saved, s.at)
		return
	case c.kind == object:
		if r.saveObject(c, s, base) {
			return
		}
	case r.saveParts(c, s):
		return
	}
	r.saved = r.saved[:start]
}

// saveParts appends what has to be saved of a list or map. It reports false if that is nothing.
func (r *run) saveParts(c *member, s slot) bool {
	switch {
	case s.state&whole != 0:
		r.saved = append(r.saved, `{"digest":"`...)
		r.saved = append(r.saved, r.saved[s.from:s.to]...)
		r.saved = append(r.saved, `","value":`...)
		r.saved = append(r.doc.AppendCanonical(r.saved, s.at), '}')
		return true
	case s.to > s.from:
		opening, closing := byte('['), byte(']')
		if c.kind == mapping {
			opening, closing = '{', '}'
		}
		r.saved = append(r.saved, opening)
		r.saved = append(r.saved, r.saved[s.from:s.to]...)
		r.saved = append(r.saved, closing)
		return true
	}
	return false
}

// saveObject appends what has to be saved of an object. It reports false if that is nothing.
func (r *run) saveObject(c *member, s slot, base int) bool {
	if r.doc.Kind(s.at) != jsondoc.Object {
		if c.shared && s.state&overridden == 0 {
			return false
		}
		r.saved = append(r.saved, '[')
		r.saved = append(r.doc.AppendCanonical(r.saved, s.at), ']')
		return true
	}
	r.saved = append(r.saved, '{')
	n := len(r.saved)
	r.saveMembers(c, base)
	if len(r.saved) == n {
		// Converting back would not make the object.
		alone := !c.shared && s.state&carries == 0
		if !alone && s.state&overridden == 0 {
			return false
		}
	}
	r.saved = append(r.saved, '}')
	return true
}

// saveEntry appends what has to be saved of an item, with its keys, to the entries in r.saved[from:end].
func (r *run) saveEntry(c *context, f frame, from, end int) {
	if r.pure || c.quiet {
		return
	}
	start := len(r.saved)
	r.saved = append(r.saved, '{')
	for _, k := range c.keys {
		if at := r.slots[f.slots+int(k.slot)].at; at != none {
			r.comma()
			r.saved = append(jsondoc.AppendString(r.saved, k.own), ':')
			r.saved = r.doc.AppendCanonical(r.saved, at)
		}
	}
	n := len(r.saved)
	r.saveContext(c, f)
	if len(r.saved) == n {
		r.saved = r.saved[:end]
		return
	}
	r.saved = append(r.saved, '}')
	r.settle(from, end, start)
}

// saveValue appends what has to be saved of a value of a map.
func (r *run) saveValue(c *context, f frame, from, end int, key []byte) {
	if r.pure || c.quiet {
		return
	}
	start := len(r.saved)
	r.saved = append(jsondoc.AppendString(r.saved, key), ':')
	if !r.saveWhole(c, f) {
		r.saved = r.saved[:end]
		return
	}
	r.settle(from, end, start)
}

// saveWhole appends what has to be saved of the value of a context. It reports false if that is nothing.
func (r *run) saveWhole(c *context, f frame) bool {
	if c.read.kind == list || c.read.kind == mapping {
		return r.saveParts(&c.read, r.slots[f.slots+int(c.read.slot)])
	}
	r.saved = append(r.saved, '{')
	n := len(r.saved)
	r.saveContext(c, f)
	r.saved = append(r.saved, '}')
	return len(r.saved) > n+1
}

// settle moves r.saved[start:] to end, after the entries that begin at from.
func (r *run) settle(from, end, start int) {
	if end == start && end == from {
		return
	}
	size := len(r.saved) - start
	if end == from {
		copy(r.saved[end:], r.saved[start:])
		r.saved = r.saved[:end+size]
		return
	}
	r.saved = append(r.saved, 0) // room for the comma
	copy(r.saved[end+1:], r.saved[start:start+size])
	r.saved[end] = ','
	r.saved = r.saved[:end+1+size]
}
