package jsondoc

// Writer emits canonical JSON that is mostly a document's own bytes. Output
// that equals the source at the place where the last output ended only extends
// a pending run; runs are copied whole. A document that is canonical and
// emitted without a change is therefore never copied: its single run is the
// whole source, and Finish returns the source itself.
type Writer struct {
	doc      *Doc
	src      []byte
	buf      []byte
	from, to uint32 // the pending run

	// KeepNumbers emits numbers as they are written. -0.0 is canonically -0,
	// which reads back as an integer; for output that is going to be read
	// again as part of the same work that matters.
	KeepNumbers bool

	// Duplicates counts the members that were left out because a later one of
	// the same object has the same key.
	Duplicates int
}

// Reset starts a new output from d, appending to buf[:0].
func (w *Writer) Reset(d *Doc, buf []byte) {
	*w = Writer{doc: d, src: d.src, buf: buf[:0]}
}

// Finish completes the output. If it is the source, unchanged is true.
func (w *Writer) Finish() (out []byte, unchanged bool) {
	if len(w.buf) == 0 && w.from == 0 && int(w.to) == len(w.src) {
		return w.src, true
	}
	w.flush()
	return w.buf, false
}

func (w *Writer) flush() {
	if w.from != w.to {
		if cap(w.buf) == 0 {
			w.buf = make([]byte, 0, len(w.src)+len(w.src)/8)
		}
		w.buf = append(w.buf, w.src[w.from:w.to]...)
		w.from = w.to
	}
}

// Byte emits one byte of structure.
func (w *Writer) Byte(c byte) {
	if int(w.to) < len(w.src) && w.src[w.to] == c {
		w.to++
		return
	}
	w.byteSlow(c)
}

//go:noinline
func (w *Writer) byteSlow(c byte) {
	w.flush()
	w.buf = append(w.buf, c)
}

// raw emits source bytes as they are.
func (w *Writer) raw(from, to uint32) {
	if w.to != from {
		w.flush()
		w.from = from
	}
	w.to = to
}

// Bytes emits canonical bytes that are not from the source.
func (w *Writer) Bytes(b []byte) {
	w.flush()
	w.buf = append(w.buf, b...)
}

// Insert emits canonical JSON text that is not from the source.
func (w *Writer) Insert(s string) {
	w.flush()
	w.buf = append(w.buf, s...)
}

// Text emits a string that is not from the source.
func (w *Writer) Text(s string) {
	w.flush()
	w.buf = AppendString(w.buf, s)
}

// Member emits what comes before a member's value: a comma, unless it is the
// first, the key k and a colon.
func (w *Writer) Member(k Value, first bool) {
	n := &w.doc.tape[k]
	if n.info&recode == 0 && !first && w.to+1 == n.off && w.src[w.to] == ',' && w.src[n.end] == ':' {
		w.to = n.end + 1 // the run goes on
		return
	}
	w.memberSlow(n, first)
}

func (w *Writer) memberSlow(n *node, first bool) {
	if !first {
		w.Byte(',')
	}
	if n.info&recode == 0 {
		w.raw(n.off, n.end)
	} else {
		w.flush()
		w.buf = w.doc.appendQuoted(w.buf, n)
	}
	w.Byte(':')
}

// Scalar emits a value that is neither object nor array.
func (w *Writer) Scalar(v Value) {
	n := &w.doc.tape[v]
	if n.info&recode == 0 || w.KeepNumbers && Kind(n.info&kindMask) == Number {
		w.raw(n.off, n.end)
		return
	}
	w.flush()
	w.buf = w.doc.appendScalar(w.buf, v)
}

// Value emits v in canonical form.
func (w *Writer) Value(v Value) {
	d := w.doc
	n := &d.tape[v]
	switch {
	case d.IsCanonical(v):
		w.raw(n.off, n.end)
	case Kind(n.info&kindMask) < Array:
		w.Scalar(v)
	case Kind(n.info&kindMask) == Array:
		w.Byte('[')
		end := Value(n.next)
		for c := v + 1; c < end; c = d.Next(c) {
			if c > v+1 {
				w.Byte(',')
			}
			w.Value(c)
		}
		w.Byte(']')
	case n.info&unsorted == 0:
		w.Byte('{')
		end := Value(n.next)
		for k := v + 1; k < end; k = d.Next(k + 1) {
			w.Member(k, k == v+1)
			w.Value(k + 1)
		}
		w.Byte('}')
	default:
		w.Byte('{')
		keys := d.SortedKeys(v)
		for i := range keys.Len() {
			k, _ := keys.At(i)
			w.Member(k, i == 0)
			w.Value(k + 1)
		}
		w.Duplicates += keys.Duplicates
		keys.Release()
		w.Byte('}')
	}
}
