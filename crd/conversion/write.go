package conversion

import (
	"bytes"

	"github.com/espalier-dev/espalier/internal/jsondoc"
)

// member appends a member of an object, if it has a value. node is what was saved of the object; live says that
// the source has the nearest object that both versions have.
func (r *run) member(out []byte, o *output, f frame, node jsondoc.Value, live bool) []byte {
	start := len(out)
	if out[start-1] != '{' {
		out = append(out, ',')
	}
	out = append(out, o.key...)
	at := len(out)
	below := none
	if node != none && o.restores {
		if v, ok := r.payload.Get(node, o.name); ok {
			below = v
		}
	}
	outer := r.returns
	r.returns = true
	if out = r.value(out, o, f, below, live); len(out) == at {
		r.returns = outer
		return out[:start]
	}
	r.returns = outer || r.returns && !o.moved
	return out
}

// value appends a value of the target, nothing if it is absent. node is what was saved of it.
func (r *run) value(out []byte, o *output, f frame, node jsondoc.Value, live bool) []byte {
	var s *slot
	if o.slot >= 0 {
		s = &r.slots[f.slots+int(o.slot)]
	}
	switch o.kind {
	case copied:
		if s.at == none { // former rules may have saved it
			return r.restored(out, o, node, live)
		}
		return appendValue(out, r.doc, s.at)
	case restored:
		return r.restored(out, o, node, live)
	case calculated:
		if o.constant && !live {
			return out
		}
		if cell := r.cells[f.cells+o.cell]; cell != nil || r.given(o.inputs, f) {
			return append(out, cell...)
		}
		return r.restored(out, o, node, live)
	case ownVersion:
		return append(out, r.version...)
	case ownMetadata:
		r.metadataAt = len(out) - len(o.key) - 1 // it is written when all that has to be saved is known
		return out
	case keyName:
		return jsondoc.AppendString(out, r.key)
	case created:
		return r.object(out, o, f, node, live, s)
	case paired:
		return r.object(out, o, f, node, s.at != none, s)
	}
	if s.at == none {
		return out
	}
	want := jsondoc.Array
	if o.kind == values || o.kind == toList {
		want = jsondoc.Object
	}
	if r.doc.Kind(s.at) != want {
		if o.kind == toMap || o.kind == toList {
			return out // null, for servers the same as absent
		}
		return appendValue(out, r.doc, s.at)
	}
	at := f.slots + int(o.slot)
	switch o.kind {
	case keyedList:
		return r.keyedList(out, o, at, node)
	case plainList:
		return r.plainList(out, o, at, node)
	case toMap:
		return r.toMap(out, o, at, node)
	case toList:
		return r.toList(out, o, at, node)
	}
	return r.values(out, o, at, node)
}

// restored appends a value that was saved as it is.
func (r *run) restored(out []byte, o *output, node jsondoc.Value, live bool) []byte {
	if node == none || !live || !o.kinds.Has(r.payload.Kind(node)) {
		return out
	}
	return r.payload.AppendCanonical(out, node)
}

// given reports whether the source has one of the values that a value is calculated from.
func (r *run) given(inputs []int32, f frame) bool {
	for _, at := range inputs {
		if r.slots[f.slots+int(at)].at != none {
			return true
		}
	}
	return len(inputs) == 0
}

// object appends an object: with the values that it gets, or because the source has it, or because it was saved. What was
// saved of it counts only if it is live; objects below it, which rules have moved, may be live without it.
func (r *run) object(out []byte, o *output, f frame, node jsondoc.Value, live bool, s *slot) []byte {
	start := len(out)
	out = append(out, '{')
	r.returns = false
	members := node
	if node != none && r.payload.Kind(node) != jsondoc.Object {
		members = none
	}
	if o.unknown != lost {
		out = r.withUnknown(out, o, f, members, live, s)
	} else {
		for _, c := range o.children {
			out = r.member(out, c, f, members, live)
		}
	}
	if s != nil {
		at := f.slots + int(o.slot)
		s = &r.slots[at] // writing what is below may have moved it
	}
	if !live {
		node, members = none, none
	}
	scalar := s != nil && s.at != none && r.doc.Kind(s.at) != jsondoc.Object
	if len(out) > start+1 {
		if s != nil && s.at != none && (scalar || s.state == contributes && !r.returns) {
			s.state |= overridden
		}
		if s != nil {
			s.state |= written
		}
		return append(out, '}')
	}
	out, r.returns = out[:start], true
	switch {
	case scalar:
		return appendValue(out, r.doc, s.at)
	case node != none && r.payload.Kind(node) == jsondoc.Array:
		if v, ok := r.payload.Index(node, 0); ok {
			return r.payload.AppendCanonical(out, v) // it was no object
		}
	case members != none, s != nil && s.at != none && (s.state&contributes != 0 || o.always):
		if s != nil {
			s.state |= written
		}
		return append(out, "{}"...)
	}
	return out
}

// withUnknown appends the members of an object, with those that its schema does not specify among them.
func (r *run) withUnknown(out []byte, o *output, f frame, node jsondoc.Value, live bool, s *slot) []byte {
	doc, at := r.payload, node
	if !live {
		at = none
	}
	if o.unknown == carried {
		doc, at = r.doc, none
		if s != nil && s.at != none {
			at = s.at
		}
	}
	next := 0
	until := func(key []byte) {
		for next < len(o.children) && (key == nil || o.children[next].name < string(key)) {
			out = r.member(out, o.children[next], f, node, live)
			next++
		}
	}
	if at != none && doc.Kind(at) == jsondoc.Object {
		keys := doc.SortedKeys(at)
		for i := range keys.Len() {
			k, _ := keys.At(i)
			key := doc.Key(k)
			if doc == r.payload && bytes.HasPrefix(key, []byte(groupsKey)) {
				if key = key[len(groupsKey):]; len(key) == 0 {
					continue // the records of groups
				}
			}
			if o.names.Lookup(key) >= 0 || r.specified(o, key) {
				continue
			}
			until(key)
			if out[len(out)-1] != '{' {
				out = append(out, ',')
			}
			if doc == r.payload {
				out = append(jsondoc.AppendString(out, key), ':')
			} else {
				out = appendKey(out, doc, k)
			}
			out = appendValue(out, doc, k+1)
			r.returns = true
		}
		keys.Release()
	}
	until(nil)
	return out
}

// specified reports whether the schema of the source specifies a member, which is then converted as such.
func (r *run) specified(o *output, key []byte) bool {
	return o.unknown == carried && o.known.Lookup(key) >= 0
}

// keyedList appends a list whose items are found again by their keys. If items have no key, or the same one, what was
// saved of one could come back in another: then the list counts as one without keys.
func (r *run) keyedList(out []byte, o *output, at int, node jsondoc.Value) []byte {
	c, v := o.each, r.slots[at].at
	start := len(out)
	if node != none && !r.pure {
		switch r.payload.Kind(node) {
		case jsondoc.Object:
			if v, ok := r.recallList(node, r.pureList(out, o, v)[start:], jsondoc.Array); ok {
				out = r.payload.AppendCanonical(out, v)
				r.checkList(o, at, out[start:])
				return out
			}
			node = none
		case jsondoc.Array:
			if !r.distinct(c, v) {
				node = none
			}
		}
	}
	find := r.finder(c, node)
	from := len(r.saved)
	out = append(out, '[')
	open := len(out)
	for _, item := range r.doc.Items(v) {
		end := len(r.saved)
		f := r.enter(c, item)
		entry := find.entry(r, f)
		r.groups(c, f, entry)
		if len(out) > open {
			out = append(out, ',')
		}
		n := len(out)
		if out = r.value(out, c.write, f, entry, true); len(out) == n {
			out = append(out, "null"...)
		}
		r.saveEntry(c, f, from, end)
		r.leave(f)
	}
	out = append(out, ']')
	if len(r.saved) > from && !r.distinct(c, v) {
		r.saved = r.saved[:from]
		r.checkList(o, at, out[start:])
		return out
	}
	r.slots[at].from, r.slots[at].to = uint32(from), uint32(len(r.saved))
	return out
}

// values appends a map.
func (r *run) values(out []byte, o *output, at int, node jsondoc.Value) []byte {
	c := o.each
	from := len(r.saved)
	if node != none && r.payload.Kind(node) != jsondoc.Object {
		node = none
	}
	saved := cursor{doc: r.payload, object: node}
	out = append(out, '{')
	keys := r.doc.SortedKeys(r.slots[at].at)
	for i := range keys.Len() {
		k, _ := keys.At(i)
		end := len(r.saved)
		f := r.enter(c, k+1)
		key := r.doc.Key(k)
		entry := saved.seek(key)
		r.groups(c, f, entry)
		start := len(out)
		if out[start-1] != '{' {
			out = append(out, ',')
		}
		out = appendKey(out, r.doc, k)
		n := len(out)
		if out = r.value(out, c.write, f, entry, true); len(out) == n {
			out = append(out, "null"...)
		}
		r.saveValue(c, f, from, end, key)
		r.leave(f)
	}
	keys.Release()
	r.slots[at].from, r.slots[at].to = uint32(from), uint32(len(r.saved))
	return append(out, '}')
}

// cursor finds members of an object by ascending keys, in one pass.
type cursor struct {
	doc    *jsondoc.Doc
	object jsondoc.Value
	next   jsondoc.Value
}

func (c *cursor) seek(key []byte) jsondoc.Value {
	if c.object == none {
		return none
	}
	if c.next == 0 {
		c.next = c.object + 1
	}
	for end := c.doc.Next(c.object); c.next < end; c.next = c.doc.Next(c.next + 1) {
		switch bytes.Compare(c.doc.Key(c.next), key) {
		case 0:
			return c.next + 1
		case 1:
			return none
		}
	}
	return none
}

// plainList appends a list whose items have no keys. It is saved as a whole if converting it back does not give
// what the source has, with the digest of what it would give.
func (r *run) plainList(out []byte, o *output, at int, node jsondoc.Value) []byte {
	start := len(out)
	out = r.pureList(out, o, r.slots[at].at)
	if r.pure {
		return out
	}
	if v, ok := r.recallList(node, out[start:], jsondoc.Array); ok {
		out = r.payload.AppendCanonical(out[:start], v)
	}
	r.checkList(o, at, out[start:])
	return out
}

// recallList returns the list or map that was saved as a whole, if rules still make the same of the source.
func (r *run) recallList(node jsondoc.Value, now []byte, want jsondoc.Kind) (jsondoc.Value, bool) {
	if node == none || r.payload.Kind(node) != jsondoc.Object {
		return none, false
	}
	d, ok := r.payload.Get(node, "digest")
	if !ok || r.payload.Kind(d) != jsondoc.String || r.payload.Text(d) != digest(now) {
		return none, false
	}
	v, ok := r.payload.Get(node, "value")
	return v, ok && r.payload.Kind(v) == want
}

// checkList notes whether a list has to be saved, given what has been made of it.
func (r *run) checkList(o *output, at int, made []byte) {
	doc, err := jsondoc.Parse(made, jsondoc.Limits{})
	if err != nil {
		return // conversion has written it
	}
	defer doc.Release()
	back := newRun(doc, r.budget)
	defer back.release()
	back.pure = true
	again := back.pureValue(o.back)
	if bytes.Equal(again, r.canonical(r.slots[at].at)) {
		return
	}
	s := &r.slots[at]
	s.state |= whole
	s.from = uint32(len(r.saved))
	r.saved = append(r.saved, digest(again)...)
	s.to = uint32(len(r.saved))
}

// pureValue returns what rules alone make of a whole document that is a list or map.
func (r *run) pureValue(o *output) []byte {
	switch o.kind {
	case toList:
		r.slots = append(r.slots, slot{at: jsondoc.Root})
		return r.toList(nil, o, 0, none)
	case toMap:
		r.slots = append(r.slots, slot{at: jsondoc.Root})
		return r.toMap(nil, o, 0, none)
	}
	return r.pureList(nil, o, jsondoc.Root)
}

// pureList appends what rules alone make of a list.
func (r *run) pureList(out []byte, o *output, v jsondoc.Value) []byte {
	was := r.pure
	r.pure = true
	defer func() { r.pure = was }()
	c := o.each
	out = append(out, '[')
	open := len(out)
	for _, item := range r.doc.Items(v) {
		f := r.enter(c, item)
		r.groups(c, f, none)
		start := len(out)
		if len(out) > open {
			out = append(out, ',')
		}
		n := len(out)
		if out = r.value(out, c.write, f, none, true); len(out) == n {
			out = out[:start]
		}
		r.leave(f)
	}
	return append(out, ']')
}
