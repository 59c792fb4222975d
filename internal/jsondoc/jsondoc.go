package jsondoc

import (
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"unsafe"
)

// Kind is the JSON type of a value.
type Kind uint8

// The kinds of JSON values.
const (
	Null Kind = iota
	False
	True
	Number
	String
	Array
	Object
)

// String names the kind as JSON does.
func (k Kind) String() string {
	switch k {
	case Null:
		return "null"
	case False, True:
		return "boolean"
	case Number:
		return "number"
	case String:
		return "string"
	case Array:
		return "array"
	case Object:
		return "object"
	}
	return "invalid"
}

// Value is the place of a value, or of a key, in a document's index.
type Value uint32

// Root is the place of the document's outermost value.
const Root Value = 0

// Limits bound what Parse accepts. A zero field means its default.
type Limits struct {
	MaxBytes int // largest document; default 1 GiB
	MaxDepth int // deepest nesting of objects and arrays; default 10,000, upstream's limit
}

const (
	defaultMaxBytes = 1 << 30
	defaultMaxDepth = 10000
)

// SyntaxError says why bytes are not an acceptable JSON document, and where.
type SyntaxError struct {
	Offset int // of the first invalid byte
	Msg    string
}

// Error implements error.
func (e *SyntaxError) Error() string {
	return fmt.Sprintf("invalid JSON at byte %d: %s", e.Offset, e.Msg)
}

// node is one entry of the tape: a value, or the key before a member's value.
// It has no pointers, so the collector never looks into a tape.
type node struct {
	off, end uint32 // the bytes as written, quotes and brackets included
	next     uint32 // values: tape position after the subtree; escaped keys: their place in Doc.keys
	info     uint32 // kind, flags and (saturated) number of children
}

const (
	kindMask = 1<<3 - 1

	// escaped: the string's value is not the bytes between its quotes.
	escaped = 1 << 3
	// recode: the scalar's canonical form differs from its bytes.
	recode = 1 << 4
	// canonical: the bytes of the whole subtree are canonical.
	canonical = 1 << 5
	// unsorted: the object's keys do not strictly increase, so there may be duplicates.
	unsorted = 1 << 6
	// key: the entry is a key.
	key = 1 << 7

	countShift = 8
	countMax   = 1<<(32-countShift) - 1
)

// span is a decoded key in Doc.text.
type span struct{ off, end uint32 }

// Doc is a JSON document: its bytes and the index into them. It is read-only
// after Parse, but not safe for concurrent use: walking an object whose keys
// have to be sorted uses its scratch memory.
type Doc struct {
	src   []byte
	tape  []node
	text  []byte // decoded forms of keys that are written with escapes
	keys  []span // where in text each of them is
	stack []frame
	order []sortKey // scratch: the keys of the objects being sorted
	spare []sortKey // scratch of the sort itself

	negativeZero bool // there is a -0.0
}

var pool = sync.Pool{New: func() any { return new(Doc) }}

// maxPooled is the tape length above which a Doc is left to the collector
// rather than kept for reuse: one huge document must not stay resident.
const maxPooled = 1 << 18

// Parse validates src and indexes it. The document refers to src, which must
// not change while it is in use.
func Parse(src []byte, lim Limits) (*Doc, error) {
	maxBytes, maxDepth := lim.MaxBytes, lim.MaxDepth
	if maxBytes <= 0 || maxBytes > defaultMaxBytes {
		maxBytes = defaultMaxBytes
	}
	if maxDepth <= 0 {
		maxDepth = defaultMaxDepth
	}
	if len(src) > maxBytes {
		return nil, &SyntaxError{maxBytes, "document of " + strconv.Itoa(len(src)) + " bytes is larger than the limit of " + strconv.Itoa(maxBytes)}
	}
	if f := parsed.Load(); f != nil {
		(*f)(src)
	}
	d := pool.Get().(*Doc)
	d.src = src
	if err := d.index(maxDepth); err != nil {
		d.Release()
		return nil, err
	}
	return d, nil
}

// parsed is told what is parsed, if it is set.
var parsed atomic.Pointer[func(src []byte)]

// Observe has f told about every document that is parsed from now on, until stop is called. It is for
// tests that count them.
func Observe(f func(src []byte)) (stop func()) {
	parsed.Store(&f)
	return func() { parsed.Store(nil) }
}

// Indexes reports whether the document is of these very bytes.
func (d *Doc) Indexes(src []byte) bool {
	return len(d.src) == len(src) && unsafe.SliceData(d.src) == unsafe.SliceData(src)
}

// Release gives the document's memory back for reuse. The document and all
// slices obtained from it, except those that alias src, are invalid afterwards.
func (d *Doc) Release() {
	if cap(d.tape) > maxPooled || cap(d.text) > maxPooled || cap(d.order) > maxPooled {
		return
	}
	d.src = nil
	pool.Put(d)
}

// Canonical reports whether the whole source, to its last byte, is canonical.
func (d *Doc) Canonical() bool {
	return d.IsCanonical(Root) && d.tape[0].off == 0 && int(d.tape[0].end) == len(d.src)
}

// Settled reports whether the document says the same once it is canonical. The
// float -0 does not: canonically it is written -0, which reads back as the
// integer 0.
func (d *Doc) Settled() bool { return !d.negativeZero }

// Kind returns the kind of v.
func (d *Doc) Kind(v Value) Kind { return Kind(d.tape[v].info & kindMask) }

// Offset returns the offset of the first byte of v.
func (d *Doc) Offset(v Value) int { return int(d.tape[v].off) }

// End returns the offset after the last byte of v.
func (d *Doc) End(v Value) int { return int(d.tape[v].end) }

// Next returns the place after v's subtree: the next item of its array, the
// next key of its object, or the container's own Next.
func (d *Doc) Next(v Value) Value { return Value(d.tape[v].next) }

// IsCanonical reports whether the bytes of v are canonical throughout.
func (d *Doc) IsCanonical(v Value) bool {
	const rec, can = recode, canonical
	info := d.tape[v].info
	if info&kindMask >= uint32(Array) {
		return info&can != 0
	}
	return info&rec == 0
}

// Sorted reports whether the keys of the object v strictly increase, which
// implies that there are no duplicates among them.
func (d *Doc) Sorted(v Value) bool { return d.tape[v].info&unsorted == 0 }

// Raw returns the bytes of v as written.
func (d *Doc) Raw(v Value) []byte { n := &d.tape[v]; return d.src[n.off:n.end] }

// Plain reports whether the string or key v is written without escapes and
// invalid UTF-8, so that its value is the bytes between its quotes.
func (d *Doc) Plain(v Value) bool { return d.tape[v].info&escaped == 0 }

// Key returns the decoded bytes of the key k. They must not be modified.
func (d *Doc) Key(k Value) []byte {
	n := &d.tape[k]
	if n.info&escaped == 0 {
		return d.src[n.off+1 : n.end-1]
	}
	s := d.keys[n.next]
	return d.text[s.off:s.end]
}

// AppendText appends the decoded value of the string v.
func (d *Doc) AppendText(dst []byte, v Value) []byte {
	n := &d.tape[v]
	raw := d.src[n.off+1 : n.end-1]
	if n.info&escaped == 0 {
		return append(dst, raw...)
	}
	return appendUnquoted(dst, raw)
}

// Text returns the decoded value of the string or key v.
func (d *Doc) Text(v Value) string {
	n := &d.tape[v]
	raw := d.src[n.off+1 : n.end-1]
	if n.info&escaped == 0 {
		return string(raw)
	}
	return string(appendUnquoted(nil, raw))
}

// Int64 returns the number v as an integer. It reports false for numbers that
// upstream's decoder would not make an int64: those with a fraction or an
// exponent, and those out of range.
func (d *Doc) Int64(v Value) (int64, bool) {
	return parseInt(d.Raw(v))
}

// Float64 returns the number v as a float64.
func (d *Doc) Float64(v Value) float64 {
	f, _ := strconv.ParseFloat(view(d.Raw(v)), 64) // Parse has checked syntax and range
	return f
}

// view gives a string over b without copying; it must not outlive b's contents.
func view(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// parseInt parses a JSON number literal as upstream's decoder does for int64.
func parseInt(b []byte) (int64, bool) {
	digits := b
	negative := len(b) > 0 && b[0] == '-'
	if negative {
		digits = b[1:]
	}
	if len(digits) == 0 || len(digits) > 19 {
		return 0, false
	}
	var u uint64
	for _, c := range digits {
		if c -= '0'; c > 9 {
			return 0, false
		}
		u = u*10 + uint64(c)
	}
	switch {
	case negative && u <= 1<<63:
		return -int64(u), true
	case !negative && u < 1<<63:
		return int64(u), true
	}
	return 0, false
}
