package generate

import (
	"bytes"
	"math"
	"strconv"
)

// Mode says how bad an object may be.
type Mode uint8

const (
	Valid   Mode = iota
	Near         // one or two things are wrong, of the kind that people get wrong
	Breach       // one or two values are not what their schemas demand, often narrowly; a third of the objects is valid
	Hostile      // many things are wrong, of every kind; some documents are no JSON at all
)

// Options for one object.
type Options struct {
	Mode       Mode
	Size       int    // the size to aim at, in bytes; 0 draws one between 200 and 3000
	APIVersion string // default orchard.example/v1
	Kind       string // default Tree
	Compact    bool   // no whitespace, whatever the dice say
	Metadata   string // raw JSON to use as the root's metadata in place of a generated one
	Resolve    bool   // satisfy allOf, anyOf, oneOf and not also in other modes than Breach, as far as that is easy
}

// Append writes the object of a seed to dst.
func (p *Plan) Append(dst []byte, seed uint64, o Options) []byte {
	w := writer{dst: dst, dice: newDice(seed, uint64(o.Mode)), mode: o.Mode, o: o, start: len(dst)}
	if w.o.APIVersion == "" {
		w.o.APIVersion = "orchard.example/v1"
	}
	if w.o.Kind == "" {
		w.o.Kind = "Tree"
	}
	size := o.Size
	if size == 0 {
		size = 200 + w.n(300)
		if w.one(3) {
			size += w.n(2500)
		}
	}
	if !o.Compact && w.one(2) {
		w.style = style(1 + w.n(3))
	}
	w.arm()
	if w.mode == Breach && w.one(3) {
		w.fuse = math.MaxInt
	}
	if w.mode == Hostile && w.one(12) {
		w.document(p, size)
	} else {
		w.resource(w.resolved(p.root), size, 0)
	}
	return w.dst
}

// resolved picks one of the ways to satisfy a schema's allOf, anyOf, oneOf and not. Other modes than Breach do not care for them, and
// sometimes neither does this.
func (w *writer) resolved(n *node) *node {
	if w.mode != Breach && !w.o.Resolve {
		return n
	}
	for range 4 {
		if len(n.alternatives) == 0 || w.mode == Breach && w.one(8) {
			break
		}
		n = n.alternatives[w.n(len(n.alternatives))]
	}
	return n
}

type style uint8

const (
	compact style = iota
	spaced
	pretty
	wild
)

// A writer holds the state of one object.
type writer struct {
	dice
	dst   []byte
	start int
	mode  Mode
	style style
	fuse  int // values left until the next piece of trouble
	nth   int // of the item that is being written, for an object that begins
	o     Options
}

// arm sets the fuse. Hostile objects of one run differ widely in how much goes wrong.
func (w *writer) arm() {
	switch w.mode {
	case Valid:
		w.fuse = math.MaxInt
	case Near:
		w.fuse = 1 + w.n(60)
	case Breach:
		w.fuse = 1 + w.n(40)
	case Hostile:
		w.fuse = 1 + w.n(2+w.n(40))
	}
}

// trouble reports whether something should go wrong here.
func (w *writer) trouble() bool {
	w.fuse--
	if w.fuse > 0 {
		return false
	}
	w.arm()
	return true
}

// room is how much of a share is left, given where its value began.
func (w *writer) room(share, began int) int { return share - (len(w.dst) - began) }

func (w *writer) raw(s string) { w.dst = append(w.dst, s...) }

// gap writes whitespace as the style has it, before a value or key at some depth, or before a closing bracket.
func (w *writer) gap(depth int) {
	switch w.style {
	case compact:
	case spaced:
		if last := w.dst[len(w.dst)-1]; last == ',' || last == ':' {
			w.dst = append(w.dst, ' ')
		}
	case pretty:
		if w.dst[len(w.dst)-1] == ':' {
			w.dst = append(w.dst, ' ')
			return
		}
		w.dst = append(w.dst, '\n')
		for range min(depth, 40) {
			w.dst = append(w.dst, ' ', ' ')
		}
	case wild:
		for w.one(3) {
			w.dst = append(w.dst, " \t\r\n"[w.n(4)])
		}
	}
}

// value writes a value of about share bytes.
func (w *writer) value(n *node, share, depth int) {
	if w.trouble() {
		w.wrong(n, share, depth)
		return
	}
	w.plain(n, share, depth)
}

// plain writes a value that fits the schema, apart from what may happen inside it.
func (w *writer) plain(n *node, share, depth int) {
	n = w.resolved(n)
	if len(n.samples) > 0 {
		w.raw(w.of(n.samples))
		return
	}
	switch n.kind {
	case objectKind:
		if n.embedded {
			w.resource(n, share, depth)
		} else {
			w.object(n, share, depth)
		}
	case arrayKind:
		w.array(n, share, depth)
	case stringKind:
		w.text(n.minLen, n.maxLen)
	case integerKind:
		w.integer(n)
	case numberKind:
		w.integer(n)
		if w.one(3) && n.max-n.min > 1 {
			w.raw(".5")
		}
	case booleanKind:
		if w.one(2) {
			w.raw("true")
		} else {
			w.raw("false")
		}
	case intOrStringKind:
		if w.one(2) {
			w.integer(n)
		} else {
			w.text(0, 12)
		}
	default:
		w.anything(n, share, depth)
	}
}

func (w *writer) integer(n *node) {
	span := uint64(n.max) - uint64(n.min)
	if n.max > 10000 && n.min < 5000 {
		span = uint64(5000 - n.min)
	}
	v := n.min
	if span > 0 && span < 1<<62 {
		v += int64(w.n(int(span)))
	}
	w.dst = strconv.AppendInt(w.dst, v, 10)
}

// anything writes some value where the schema has no type.
func (w *writer) anything(n *node, share, depth int) {
	if len(n.props) > 0 || n.additional != nil {
		w.object(n, share, depth)
		return
	}
	switch pick := w.n(8); {
	case pick < 3 && depth < 24 && share > 20:
		w.object(n, share, depth)
	case pick < 4 && depth < 24 && share > 20:
		w.array(free, share, depth)
	case pick < 6:
		w.text(0, 24)
	case pick < 7:
		w.integer(free)
	default:
		w.raw("true")
	}
}

func (w *writer) array(n *node, share, depth int) {
	items := n.items
	if items == nil {
		items = free
	}
	began := len(w.dst)
	w.dst = append(w.dst, '[')
	count := min(n.maxItems, max(n.minItems, 1+w.n(3)))
	if w.one(20) {
		count = n.minItems
	}
	if share > 4000 {
		count = n.maxItems // as many as fit
	}
	if depth > 40 {
		count = 0
	}
	w.nth = 0
	for i := 0; i < count; i++ {
		room := w.room(share, began)
		if i >= max(n.minItems, 1) && room <= 0 || i > 20000 {
			break
		}
		item := len(w.dst)
		if i > 0 {
			w.dst = append(w.dst, ',')
		}
		w.gap(depth + 1)
		first := len(w.dst)
		w.nth = i
		w.value(items, min(max(room, 0), 200+share/6), depth+1)
		if n.unique && bytes.Contains(w.dst[began+1:first], w.dst[first:]) && w.mode != Hostile && !w.one(20) {
			w.dst = w.dst[:item] // most likely there already
		}
	}
	if len(w.dst) > began+1 {
		w.gap(depth)
	}
	w.dst = append(w.dst, ']')
}

var syllables = []string{"apple", "pear", "quince", "medlar", "cherry", "plum", "graft", "scion", "stock", "trellis", "wall", "south", "west", "frame", "row", "prod", "eu-1", "v2", "team-a", "blue"}

// text writes a plain string of words.
func (w *writer) text(minLen, maxLen int) {
	w.dst = append(w.dst, '"')
	began := len(w.dst)
	for i := range 1 + w.n(4) {
		if i > 0 {
			w.dst = append(w.dst, '-')
		}
		w.raw(w.of(syllables))
	}
	for len(w.dst)-began < minLen && minLen < 100000 {
		w.dst = append(w.dst, byte('a'+w.n(26)))
	}
	if len(w.dst)-began > maxLen {
		w.dst = w.dst[:began+maxLen]
	}
	w.dst = append(w.dst, '"')
}
