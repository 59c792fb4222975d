package exec

import (
	"slices"
	"strconv"

	"github.com/espalier-dev/espalier/internal/jsondoc"
	"github.com/espalier-dev/espalier/internal/plan"
	"github.com/espalier-dev/espalier/internal/spelling"
)

// Recorder collects changes. What it keeps is bounded, because paths can be as
// long as a document is deep and as many as it has fields.
type Recorder struct {
	Changes []Change
	Omitted int // changes beyond the bounds, counted only

	pathBytes   int
	comparisons int
}

const (
	maxChanges     = 100_000
	maxPathBytes   = 16 << 20
	maxComparisons = 20_000 // names compared in search of the nearest
)

// step is one element of a path.
type step struct {
	kind  stepKind
	index int
	key   []byte
}

type stepKind uint8

const (
	fieldStep stepKind = iota // a specified property
	keyStep                   // a key under additionalProperties
	indexStep
)

type path []step

// push and pop keep the path of the walk, when it is tracked.
func (w *walker) push(s step) {
	if w.track {
		w.path = append(w.path, s)
	}
}

func (w *walker) pop() {
	if w.track {
		w.path = w.path[:len(w.path)-1]
	}
}

// String renders the path as upstream's unknown-field paths are: keys of maps
// look like fields.
func (p path) String() string { return string(p.appendTo(nil, false)) }

// field renders the path as upstream's field.Path does: keys of maps stand in
// brackets.
func (p path) field() string { return string(p.appendTo(nil, true)) }

func (p path) appendTo(b []byte, brackets bool) []byte {
	for i, s := range p {
		switch {
		case s.kind == indexStep:
			b = append(b, '[')
			b = strconv.AppendInt(b, int64(s.index), 10)
			b = append(b, ']')
		case brackets && (s.kind == keyStep || len(s.key) == 0): // upstream takes an empty name for a subscript
			b = append(b, '[')
			b = append(b, s.key...)
			b = append(b, ']')
		default:
			if i > 0 {
				b = append(b, '.')
			}
			b = append(b, s.key...)
		}
	}
	return b
}

// note records a change at the current path; field, if not nil, is one more
// element of it.
func (w *walker) note(what Changes, v jsondoc.Value, field []byte, detail string) {
	w.changes |= what
	if w.rec == nil {
		return
	}
	w.noteChange(what, w.path, v, field, detail)
}

func (w *walker) noteChange(what Changes, at path, v jsondoc.Value, field []byte, detail string) *Change {
	if w.rec.full() {
		return nil
	}
	if field != nil {
		at = append(at[:len(at):len(at)], step{key: field})
	}
	return w.rec.add(Change{What: what, Path: at.String(), Offset: w.offset(v), Detail: detail})
}

func (w *walker) offset(v jsondoc.Value) int {
	if w.base >= 0 {
		return w.base
	}
	return w.d.Offset(v)
}

func (r *Recorder) full() bool {
	if len(r.Changes) >= maxChanges || r.pathBytes >= maxPathBytes {
		r.Omitted++
		return true
	}
	return false
}

func (r *Recorder) add(c Change) *Change {
	r.pathBytes += len(c.Path)
	if len(r.Changes) == cap(r.Changes) {
		r.Changes = slices.Grow(r.Changes, max(16, len(r.Changes))) // append would grow by quarters, and copy more
	}
	r.Changes = append(r.Changes, c)
	return &r.Changes[len(r.Changes)-1]
}

// notePruned records the removal of the member k of an object described by n.
func (w *walker) notePruned(k jsondoc.Value, n *plan.Node) {
	w.changes |= Pruned
	if w.rec == nil {
		return
	}
	key := w.d.Key(k)
	detail := "the schema specifies no field of this name"
	if n == nil {
		detail = "the schema specifies no fields here"
	}
	c := w.noteChange(Pruned, w.path, k, key, detail)
	if c != nil && n != nil {
		c.Nearest = w.rec.nearest(string(key), n.Props)
	}
}

// nearest returns the property whose name is most like name, if one is alike
// enough to be what was meant.
func (r *Recorder) nearest(name string, props *plan.Props) string {
	if r.comparisons >= maxComparisons {
		return ""
	}
	r.comparisons += props.Len()
	return spelling.Nearest(name, func(yield func(string) bool) {
		for i := range props.Len() {
			if !yield(props.At(i).Name) {
				return
			}
		}
	})
}
