package jsondoc

import "bytes"

// Edited returns the index of src, which is the canonical document with one member of the root
// set, replaced or removed. Only the new value is parsed; the rest of the index is taken over. It
// reports false if src is something else: the caller has to parse it.
func (d *Doc) Edited(src []byte, name string) (*Doc, bool) {
	if !d.Canonical() || !d.Settled() || d.Kind(Root) != Object || len(src) > defaultMaxBytes {
		return nil, false
	}
	e := edit{old: d, src: src}
	e.find(name)
	if !e.same() {
		return nil, false
	}
	value, ok := e.member(name)
	if !ok {
		return nil, false
	}
	if value == nil {
		return e.splice(nil), true
	}
	fragment, err := Parse(value, Limits{MaxDepth: defaultMaxDepth - 1})
	if err != nil {
		return nil, false
	}
	defer fragment.Release()
	if !fragment.Canonical() || !fragment.Settled() {
		return nil, false
	}
	return e.splice(fragment), true
}

// edit is how a document becomes another.
type edit struct {
	old *Doc
	src []byte

	at, after  Value // the member's entries, as far as it was there: from its key to the next one
	first      bool  // no member is before it
	from       int   // offset of the first byte that may differ, in both
	rest       int   // offset in the old document of what is the same again
	key, value int   // offsets in the new one; 0 if the member is gone
	keyEnd     int
}

// find finds the place of the member.
func (e *edit) find(name string) {
	d := e.old
	end := d.Next(Root)
	e.at, e.from, e.first = 1, 1, true
	for e.at < end && string(d.Key(e.at)) < name {
		e.from, e.first = d.End(e.at+1), false
		e.at = d.Next(e.at + 1)
	}
	e.after = e.at
	if e.at < end && string(d.Key(e.at)) == name {
		e.after = d.Next(e.at + 1)
	}
	e.rest = len(d.src) - 1 // the closing bracket
	if e.after < end {
		e.rest = d.Offset(e.after)
	}
}

// shift is by how much what comes after the member has moved.
func (e *edit) shift() int { return len(e.src) - len(e.old.src) }

// same reports whether both documents are equal around the member.
func (e *edit) same() bool {
	now := e.rest + e.shift()
	return now >= e.from && bytes.Equal(e.src[:e.from], e.old.src[:e.from]) && bytes.Equal(e.src[now:], e.old.src[e.rest:])
}

// member returns the bytes of the new value, nothing if the member is gone. It reports false if there
// is something else in its place.
func (e *edit) member(name string) ([]byte, bool) {
	between := e.src[e.from : e.rest+e.shift()]
	last := e.after == e.old.Next(Root)
	if gone := ","; len(between) == 0 || string(between) == gone {
		return nil, (string(between) == gone) == (!e.first && !last)
	}
	e.key = e.from
	if !e.first {
		if between[0] != ',' {
			return nil, false
		}
		between, e.key = between[1:], e.key+1
	}
	quoted := AppendString(nil, name)
	rest, ok := bytes.CutPrefix(between, quoted)
	if !ok || len(rest) < 2 || rest[0] != ':' {
		return nil, false
	}
	e.keyEnd = e.key + len(quoted)
	e.value = e.keyEnd + 1
	rest = rest[1:]
	if !last {
		if rest, ok = bytes.CutSuffix(rest, []byte(",")); !ok {
			return nil, false
		}
	}
	return rest, len(rest) > 0
}

// splice makes the index of the new document.
func (e *edit) splice(value *Doc) *Doc {
	d, old := pool.Get().(*Doc), e.old
	d.src, d.negativeZero = e.src, false
	d.text, d.keys = append(d.text[:0], old.text...), append(d.keys[:0], old.keys...)
	d.tape = append(d.tape[:0], old.tape[:e.at]...)
	members := -1
	if e.after == e.at {
		members = 0
	}
	if value != nil {
		members++
		n := node{off: uint32(e.key), end: uint32(e.keyEnd), info: uint32(String) | key}
		if raw := e.src[e.key+1 : e.keyEnd-1]; bytes.IndexByte(raw, '\\') >= 0 {
			n.info |= escaped
			n.next = d.decodeKey(raw)
		}
		d.tape = append(d.tape, n)
		d.take(value.tape, uint32(e.value), uint32(len(d.tape)), uint32(len(d.keys)))
		for _, s := range value.keys {
			d.keys = append(d.keys, span{s.off + uint32(len(d.text)), s.end + uint32(len(d.text))})
		}
		d.text = append(d.text, value.text...)
	}
	d.take(old.tape[e.after:], uint32(e.shift()), uint32(len(d.tape))-uint32(e.after), 0)
	root := &d.tape[Root]
	root.end, root.next = uint32(len(e.src)), uint32(len(d.tape))
	if count := root.info >> countShift; count < countMax {
		root.info = root.info&(1<<countShift-1) | uint32(int(count)+members)<<countShift
	}
	return d
}

// take appends entries whose offsets, places and keys are others now. Unsigned numbers wrap around
// where they get smaller.
func (d *Doc) take(entries []node, offset, place, keys uint32) {
	for _, n := range entries {
		n.off += offset
		n.end += offset
		switch {
		case n.info&key == 0:
			n.next += place
		case n.info&escaped != 0:
			n.next += keys
		}
		d.tape = append(d.tape, n)
	}
}
