package conversion

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"slices"
	"sync"

	"github.com/espalier-dev/espalier/internal/jsondoc"
	"github.com/espalier-dev/espalier/internal/plan"
)

// none is the place of a value that is absent.
const none = ^jsondoc.Value(0)

// slot is a value of the source during a conversion.
type slot struct {
	at    jsondoc.Value
	state state
	// The part of run.saved that belongs to a list or map.
	from, to uint32
}

// state is what is known of a value of the source.
type state uint8

const (
	contributes state = 1 << iota // the object that holds it has a reason to be in the target
	carries                       // the target has a value because of it
	overridden                    // converted back, the source would have another object, or none
	written                       // the target has the object
	whole                         // the list has to be saved as a whole
)

// run is the conversion of one object.
type run struct {
	doc     *jsondoc.Doc
	payload *jsondoc.Doc // what was saved of the target version; nil if nothing was
	budget  *budget
	own     budget
	pure    bool // neither restore nor save: what rules alone make of a value

	slots []slot
	cells [][]byte
	buf   []byte // bytes of cells
	saved []byte
	save  []bool // by group and context: the source has to be saved
	key   []byte // of the map whose value is converted
	made  []byte // parts of lists and maps that become each other
	meta  []byte

	keyText []byte // of items
	// The annotation: as it was, as it is now, and as a JSON string.
	payloadText, merged, quoted []byte

	version    string // apiVersion of the target, as JSON
	metadataAt int    // where metadata is to be written
	returns    bool   // the value written last, converted back, is a reason for the object that holds it
}

var runs = sync.Pool{New: func() any { return new(run) }}

func newRun(doc *jsondoc.Doc, b *budget) *run {
	r := runs.Get().(*run)
	r.doc, r.payload, r.budget, r.pure, r.metadataAt = doc, nil, b, false, -1
	return r
}

// maxPooled is the size above which memory is left to the collector.
const maxPooled = 1 << 20

func (r *run) release() {
	if cap(r.slots)*16+cap(r.buf)+cap(r.saved)+cap(r.made)+cap(r.meta)+cap(r.keyText)+cap(r.payloadText)+cap(r.merged)+cap(r.quoted) > maxPooled {
		return
	}
	clear(r.cells[:cap(r.cells)])
	r.doc, r.payload, r.budget, r.key = nil, nil, nil, nil
	r.slots, r.cells, r.buf, r.saved, r.save, r.made = r.slots[:0], r.cells[:0], r.buf[:0], r.saved[:0], r.save[:0], r.made[:0]
	runs.Put(r)
}

// frame is where a context has its slots, cells and groups.
type frame struct{ slots, cells, groups, buf int }

// enter makes room for a context, and reads its value.
func (r *run) enter(c *context, v jsondoc.Value) frame {
	f := frame{len(r.slots), len(r.cells), len(r.save), len(r.buf)}
	r.slots = slices.Grow(r.slots, c.size)[:f.slots+c.size]
	for i := range r.slots[f.slots:] {
		r.slots[f.slots+i] = slot{at: none}
	}
	if c.cells > 0 {
		r.cells = slices.Grow(r.cells, c.cells)[:f.cells+c.cells]
		clear(r.cells[f.cells:])
		r.save = slices.Grow(r.save, len(c.groups))[:f.groups+len(c.groups)]
		clear(r.save[f.groups:])
	}
	r.load(&c.read, v, f.slots)
	return f
}

func (r *run) leave(f frame) {
	r.slots, r.cells, r.save, r.buf = r.slots[:f.slots], r.cells[:f.cells], r.save[:f.groups], r.buf[:f.buf]
}

// load fills the slots of a value and what is below it, in one pass. It reports what the value is for the object
// that holds it.
func (r *run) load(m *member, v jsondoc.Value, base int) state {
	s := &r.slots[base+int(m.slot)]
	s.at = v
	if m.kind != object {
		switch {
		case m.moved:
			return carries
		case m.fate == carried || m.fate == grouped:
			return contributes | carries
		}
		return contributes
	}
	var below state
	if r.doc.Kind(v) == jsondoc.Object {
		below = r.loadMembers(m, v, base)
	} else {
		below = contributes
	}
	r.slots[base+int(m.slot)].state = below
	switch {
	case m.shared && m.moved:
		return carries
	case m.shared:
		return below | carries
	}
	return below
}

func (r *run) loadMembers(m *member, v jsondoc.Value, base int) state {
	d := r.doc
	end := d.Next(v)
	if v+1 == end {
		return contributes
	}
	var below state
	next := 0
	for k := v + 1; k < end; k = d.Next(k + 1) {
		rank, key := next, d.Key(k)
		if rank >= len(m.members) || m.members[rank].name != string(key) { // stored objects have all members in their order
			rank = m.names.Lookup(key)
		}
		if rank >= 0 {
			next = rank + 1
			below |= r.load(&m.members[rank], k+1, base) // a later duplicate replaces an earlier one
			continue
		}
		switch m.unknown {
		case carried:
			below |= contributes | carries
		case preserved:
			below |= contributes
		}
	}
	return below
}

// groups calculates the values of the groups of a context. node is what was saved of the context.
func (r *run) groups(c *context, f frame, node jsondoc.Value) {
	if len(c.groups) == 0 {
		return
	}
	records := none
	if node != none {
		if v, ok := r.payload.Get(node, groupsKey); ok {
			records = v
		}
	}
	for i := range c.groups {
		g := &c.groups[i]
		in := r.cells[f.cells+g.cells : f.cells+g.cells+len(g.in)]
		out := r.cells[f.cells+g.cells+len(g.in) : f.cells+g.cells+len(g.in)+g.outs]
		some := g.constant
		for j, at := range g.in {
			if v := r.slots[f.slots+int(at)].at; v != none {
				in[j] = r.canonical(v)
				some = true
			}
		}
		held := some || g.holder < 0 || r.slots[f.slots+int(g.holder)].at != none
		restored := records != none && r.recall(g, records, in, out, held)
		if !restored && some {
			r.buf = g.forth.apply(r.budget, r.buf, in, out)
			fit(out, g.outputs)
		}
		if r.pure || !some && !restored {
			continue
		}
		r.save[f.groups+i] = !r.comesBack(g, in, out)
	}
}

// comesBack reports whether converting back gives the values of the source.
func (r *run) comesBack(g *groupStep, in, out [][]byte) bool {
	at := len(r.cells)
	for range in {
		r.cells = append(r.cells, nil)
	}
	again := r.cells[at:]
	some := g.constant
	for _, y := range out {
		some = some || y != nil
	}
	if some {
		r.buf = g.back.apply(r.budget, r.buf, out, again)
		fit(again, g.inputs)
	}
	same := true
	for i := range in {
		same = same && (in[i] == nil) == (again[i] == nil) && bytes.Equal(in[i], again[i])
	}
	r.cells = r.cells[:at]
	return same
}

// fit drops values that the schemas of their fields do not accept.
func fit(cells [][]byte, kinds []plan.Kinds) {
	for i, c := range cells {
		if c != nil && !kinds[i].Has(kindOf(c)) {
			cells[i] = nil
		}
	}
}

// appendValue appends the canonical bytes of a value or key.
func appendValue(dst []byte, doc *jsondoc.Doc, v jsondoc.Value) []byte {
	if doc.IsCanonical(v) {
		return append(dst, doc.Raw(v)...)
	}
	return doc.AppendCanonical(dst, v)
}

// appendKey appends a key, with its colon.
func appendKey(dst []byte, doc *jsondoc.Doc, k jsondoc.Value) []byte {
	if doc.Plain(k) && doc.IsCanonical(k) {
		return append(append(dst, doc.Raw(k)...), ':')
	}
	return append(jsondoc.AppendString(dst, doc.Key(k)), ':')
}

// canonical returns the canonical bytes of a value of the source.
func (r *run) canonical(v jsondoc.Value) []byte {
	if r.doc.IsCanonical(v) {
		return r.doc.Raw(v)
	}
	from := len(r.buf)
	r.buf = r.doc.AppendCanonical(r.buf, v)
	return r.buf[from:len(r.buf):len(r.buf)]
}

// recall sets out to what was saved, if the source still has the values that it became. held says that the source has
// values, or the object that would hold them.
func (r *run) recall(g *groupStep, records jsondoc.Value, in, out [][]byte, held bool) bool {
	p := r.payload
	record, ok := p.Get(records, g.target)
	if !ok {
		return false
	}
	if _, was := p.Get(record, "held"); was && !held {
		return false // the user has removed the object
	}
	image, ok := p.Get(record, "image")
	if !ok {
		return false
	}
	from := len(r.buf)
	r.buf = appendImage(r.buf, in)
	same := bytes.Equal(r.buf[from:], p.AppendCanonical(nil, image))
	r.buf = r.buf[:from]
	if !same {
		return false
	}
	list, ok := p.Get(record, "values")
	if !ok || p.Kind(list) != jsondoc.Array || p.Len(list) != len(out) {
		return false
	}
	for i, cell := range p.Items(list) {
		if p.Kind(cell) != jsondoc.Array {
			clear(out)
			return false
		}
		v, ok := p.Index(cell, 0)
		if !ok {
			continue // it was absent
		}
		if !g.outputs[i].Has(p.Kind(v)) {
			clear(out)
			return false
		}
		out[i] = p.AppendCanonical(nil, v)
	}
	return true
}

// appendTuple appends values. Some of them may be absent.
func appendTuple(dst []byte, cells [][]byte) []byte {
	dst = append(dst, '[')
	for i, c := range cells {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, '[')
		dst = append(dst, c...)
		dst = append(dst, ']')
	}
	return append(dst, ']')
}

// maxImage is how long an image may be that is saved as it is. Of longer ones the digest is enough.
const maxImage = 64

// appendImage appends what identifies values: themselves, or their digest.
func appendImage(dst []byte, cells [][]byte) []byte {
	from := len(dst)
	dst = appendTuple(dst, cells)
	if len(dst)-from <= maxImage {
		return dst
	}
	d := digest(dst[from:])
	return jsondoc.AppendString(dst[:from], d)
}

// digest identifies bytes.
func digest(b []byte) string {
	sum := sha256.Sum256(b)
	return base64.RawURLEncoding.EncodeToString(sum[:18])
}
