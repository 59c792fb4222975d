package fix

import (
	"bytes"
	"slices"
	"strconv"

	"github.com/espalier-dev/espalier/finding"
	"github.com/espalier-dev/espalier/internal/jsondoc"
	"github.com/espalier-dev/espalier/internal/syntax"
)

// node is a JSON value that can be changed and keeps the order of its members.
type node struct {
	kind jsondoc.Kind
	raw  []byte   // of a scalar
	keys []string // of an object
	kids []*node

	at   map[string]int    // places of the keys, if there are many; made when needed
	from *node             // what it is a copy of; nil if it is new
	why  map[string]reason // of changes of members, by their keys
}

// reason is why a member is changed, and the check that requires it.
type reason struct {
	check finding.ID
	text  string
}

// parse reads JSON. Of a key that is there twice the last one counts.
func parse(text []byte) (*node, error) {
	doc, err := jsondoc.Parse(text, jsondoc.Limits{})
	if err != nil {
		return nil, err
	}
	defer doc.Release()
	return build(doc, jsondoc.Root), nil
}

func build(doc *jsondoc.Doc, v jsondoc.Value) *node {
	n := &node{kind: doc.Kind(v)}
	switch n.kind {
	case jsondoc.Object:
		at := make(map[string]int, doc.Len(v))
		for m := range doc.Members(v) {
			key := string(doc.AppendText(nil, m.Key))
			if i, twice := at[key]; twice {
				n.kids[i] = build(doc, m.Value)
				continue
			}
			at[key] = len(n.keys)
			n.keys = append(n.keys, key)
			n.kids = append(n.kids, build(doc, m.Value))
		}
	case jsondoc.Array:
		for _, item := range doc.Items(v) {
			n.kids = append(n.kids, build(doc, item))
		}
	default:
		n.raw = bytes.Clone(doc.Raw(v))
	}
	return n
}

// literal makes a node of JSON that is known to be right.
func literal(text string) *node {
	n, err := parse([]byte(text))
	if err != nil {
		panic("fix: " + err.Error())
	}
	return n
}

func text(s string) *node {
	return &node{kind: jsondoc.String, raw: jsondoc.AppendString(nil, s)}
}

func truth() *node { return &node{kind: jsondoc.True, raw: []byte("true")} }

func object() *node { return &node{kind: jsondoc.Object} }

func array(items ...*node) *node { return &node{kind: jsondoc.Array, kids: items} }

// fork copies a value; the copy remembers what it is a copy of.
func (n *node) fork() *node {
	c := *n
	c.from, c.why, c.at = n, nil, nil
	c.keys = append([]string(nil), n.keys...)
	c.kids = make([]*node, len(n.kids))
	for i, k := range n.kids {
		c.kids[i] = k.fork()
	}
	return &c
}

// clone copies a value as a new one.
func (n *node) clone() *node {
	c := n.fork()
	c.forget()
	return c
}

func (n *node) forget() {
	n.from = nil
	for _, k := range n.kids {
		k.forget()
	}
}

// size counts the values.
func (n *node) size() int {
	size := 1
	for _, k := range n.kids {
		size += k.size()
	}
	return size
}

func (n *node) index(key string) int {
	if n == nil || n.kind != jsondoc.Object {
		return -1
	}
	if len(n.keys) > 16 {
		if n.at == nil {
			n.at = make(map[string]int, len(n.keys))
			for i, k := range n.keys {
				n.at[k] = i
			}
		}
		if i, ok := n.at[key]; ok {
			return i
		}
		return -1
	}
	return slices.Index(n.keys, key)
}

// get returns a member, or nil; null is as good as nothing.
func (n *node) get(key string) *node {
	if i := n.index(key); i >= 0 && n.kids[i].kind != jsondoc.Null {
		return n.kids[i]
	}
	return nil
}

// has reports whether there is a member, other than null.
func (n *node) has(key string) bool { return n.get(key) != nil }

// is reports whether a member is true.
func (n *node) is(key string) bool {
	m := n.get(key)
	return m != nil && m.kind == jsondoc.True
}

// string returns a member that is a string.
func (n *node) string(key string) string { return n.get(key).text() }

func (n *node) text() string {
	if n == nil || n.kind != jsondoc.String {
		return ""
	}
	return jsondoc.Unquote(n.raw)
}

// object returns a member that is an object, or nil.
func (n *node) object(key string) *node {
	if m := n.get(key); m != nil && m.kind == jsondoc.Object {
		return m
	}
	return nil
}

// items returns the items of a member that is an array.
func (n *node) items(key string) []*node {
	if m := n.get(key); m != nil && m.kind == jsondoc.Array {
		return m.kids
	}
	return nil
}

// set replaces or adds a member. A new one goes before the first of the members
// called before that is there, or to the end.
func (n *node) set(key string, value *node, why reason, before ...string) {
	n.because(key, why)
	if i := n.index(key); i >= 0 {
		n.kids[i] = value
		return
	}
	for _, b := range before {
		if i := n.index(b); i >= 0 {
			n.keys, n.kids, n.at = slices.Insert(n.keys, i, key), slices.Insert(n.kids, i, value), nil
			return
		}
	}
	if n.at != nil {
		n.at[key] = len(n.keys)
	}
	n.keys, n.kids = append(n.keys, key), append(n.kids, value)
}

// del takes out a member.
func (n *node) del(key string, why reason) {
	if n.index(key) >= 0 {
		n.filter(func(k string, _ *node) bool { return k != key }, why)
	}
}

// filter takes out all members but those that are to be kept.
func (n *node) filter(keep func(key string, value *node) bool, why reason) {
	kept := 0
	for i, k := range n.keys {
		if !keep(k, n.kids[i]) {
			n.because(k, why)
			continue
		}
		n.keys[kept], n.kids[kept] = k, n.kids[i]
		kept++
	}
	n.keys, n.kids, n.at = n.keys[:kept], n.kids[:kept], nil
}

func (n *node) because(key string, why reason) {
	if n.why == nil {
		n.why = make(map[string]reason)
	}
	n.why[key] = why
}

// appendJSON writes the value.
func (n *node) appendJSON(dst []byte) []byte {
	switch n.kind {
	case jsondoc.Object:
		dst = append(dst, '{')
		for i, k := range n.kids {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = append(jsondoc.AppendString(dst, n.keys[i]), ':')
			dst = k.appendJSON(dst)
		}
		return append(dst, '}')
	case jsondoc.Array:
		dst = append(dst, '[')
		for i, k := range n.kids {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = k.appendJSON(dst)
		}
		return append(dst, ']')
	}
	return append(dst, n.raw...)
}

// differ finds the edits that make one value of another.
type differ struct {
	path   []byte
	edits  []Edit
	budget int // bytes of pointers and values; negative when there were too many
}

// diff compares a value with its changed fork. why is the reason of the nearest
// change around it that has one.
func (d *differ) diff(old, now *node, why reason) {
	switch old.kind {
	case jsondoc.Object:
		d.members(old, now, why)
	case jsondoc.Array:
		d.list(old, now, why)
	}
}

func (n *node) reason(key string, otherwise reason) reason {
	if r, ok := n.why[key]; ok {
		return r
	}
	return otherwise
}

func (d *differ) members(old, now *node, why reason) {
	for i, key := range old.keys {
		j := now.index(key)
		r := now.reason(key, why)
		n := len(d.path)
		d.path = syntax.AppendToken(d.path, key)
		switch {
		case j < 0:
			d.add(Edit{Op: Remove}, r)
		case now.kids[j].from == old.kids[i]:
			d.diff(old.kids[i], now.kids[j], r)
		default:
			d.add(Edit{Op: Set, Value: now.kids[j].appendJSON(nil)}, r)
		}
		d.path = d.path[:n]
	}
	before := ""
	var added []Edit
	for j := len(now.keys) - 1; j >= 0; j-- {
		key := now.keys[j]
		if old.index(key) >= 0 {
			before = key
			continue
		}
		n := len(d.path)
		d.path = syntax.AppendToken(d.path, key)
		added = append(added, d.edit(Edit{Op: Insert, Value: now.kids[j].appendJSON(nil), Before: before}, now.reason(key, why)))
		d.path = d.path[:n]
	}
	slices.Reverse(added)
	d.edits = append(d.edits, added...)
}

// list compares arrays. What is left of an array stays as it is written; one
// with new items is written anew.
func (d *differ) list(old, now *node, why reason) {
	kept := make([]*node, len(old.kids))
	at := 0
	for _, k := range now.kids {
		for at < len(old.kids) && old.kids[at] != k.from {
			at++
		}
		if at == len(old.kids) {
			d.add(Edit{Op: Set, Value: now.appendJSON(nil)}, why)
			return
		}
		kept[at] = k
		at++
	}
	visit := func(i int, f func()) {
		n := len(d.path)
		d.path = strconv.AppendInt(append(d.path, '/'), int64(i), 10)
		f()
		d.path = d.path[:n]
	}
	for i, k := range kept {
		if k != nil {
			visit(i, func() { d.diff(old.kids[i], k, why) })
		}
	}
	for i := len(kept) - 1; i >= 0; i-- {
		if kept[i] == nil {
			visit(i, func() { d.add(Edit{Op: Remove}, why) })
		}
	}
}

func (d *differ) add(e Edit, why reason) { d.edits = append(d.edits, d.edit(e, why)) }

func (d *differ) edit(e Edit, why reason) Edit {
	d.budget -= len(d.path) + len(e.Value)
	if d.budget < 0 {
		return Edit{}
	}
	e.Pointer, e.Check, e.Why = string(d.path), why.check, why.text
	return e
}
