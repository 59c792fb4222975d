package cel

import (
	"bytes"
	"slices"
	"unsafe"

	"github.com/espalier-dev/espalier/internal/jsondoc"
)

// reader gives CEL values of a document. Values are valid until reset.
type reader struct {
	doc     *jsondoc.Doc
	views   *resources
	places  map[jsondoc.Value][]jsondoc.Value // of wide objects their keys, sorted; of long arrays their items
	objects arena[object]
	lists   arena[list]
}

// wide is the number of members or items above which looking for one by walking
// over the others would show: a rule can look for each of them.
const wide = 16

// use prepares the reader for a document.
func (r *reader) use(doc *jsondoc.Doc, views *resources) { r.doc, r.views = doc, views }

// reset invalidates the values.
func (r *reader) reset() {
	r.objects.reset()
	r.lists.reset()
}

// close forgets the document.
func (r *reader) close() {
	r.reset()
	r.doc, r.views = nil, nil
	clear(r.places)
}

// member returns the value of the member of the object v called key.
func (r *reader) member(v jsondoc.Value, key string) (jsondoc.Value, bool) {
	if keys, ok := r.places[v]; ok {
		return r.search(keys, key)
	}
	end := r.doc.Next(v)
	k := v + 1
	for range wide {
		if k >= end {
			return 0, false
		}
		if string(r.doc.Key(k)) == key {
			return k + 1, true
		}
		k = r.doc.Next(k + 1)
	}
	return r.search(r.sortedKeys(v), key)
}

func (r *reader) search(keys []jsondoc.Value, key string) (jsondoc.Value, bool) {
	lo, hi := 0, len(keys)
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		if string(r.doc.Key(keys[mid])) < key {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	if lo < len(keys) && string(r.doc.Key(keys[lo])) == key {
		return keys[lo] + 1, true
	}
	return 0, false
}

// sortedKeys indexes the object v.
func (r *reader) sortedKeys(v jsondoc.Value) []jsondoc.Value {
	var keys []jsondoc.Value
	for k, end := v+1, r.doc.Next(v); k < end; k = r.doc.Next(k + 1) {
		keys = append(keys, k)
	}
	if !r.doc.Sorted(v) {
		slices.SortFunc(keys, func(a, b jsondoc.Value) int { return bytes.Compare(r.doc.Key(a), r.doc.Key(b)) })
	}
	return r.remember(v, keys)
}

func (r *reader) remember(v jsondoc.Value, places []jsondoc.Value) []jsondoc.Value {
	if r.places == nil {
		r.places = map[jsondoc.Value][]jsondoc.Value{}
	}
	r.places[v] = places
	return places
}

// item returns item i of the array v, which has that many.
func (r *reader) item(v jsondoc.Value, i int) jsondoc.Value {
	if items, ok := r.places[v]; ok {
		return items[i]
	}
	if i < wide {
		c := v + 1
		for range i {
			c = r.doc.Next(c)
		}
		return c
	}
	var items []jsondoc.Value
	for c, end := v+1, r.doc.Next(v); c < end; c = r.doc.Next(c) {
		items = append(items, c)
	}
	return r.remember(v, items)[i]
}

// size returns the number of members or items of v.
func (r *reader) size(v jsondoc.Value) int {
	if r.doc.Kind(v) == jsondoc.Array || r.doc.Sorted(v) {
		return r.doc.Len(v)
	}
	if keys, ok := r.places[v]; ok {
		return len(keys)
	}
	n := 0
	for k, end := v+1, r.doc.Next(v); k < end; k = r.doc.Next(k + 1) {
		if n++; n > wide {
			return len(r.sortedKeys(v))
		}
	}
	return n
}

// text returns the string v, or the key v. It shares the document's memory and
// callers that keep it must copy it.
func (r *reader) text(v jsondoc.Value) string {
	if r.doc.Plain(v) {
		raw := r.doc.Raw(v)
		return view(raw[1 : len(raw)-1])
	}
	return r.doc.Text(v)
}

func view(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// arena hands out values that are all given back at once.
type arena[T any] struct {
	chunks [][]T
	used   int
}

const (
	chunk     = 32
	maxChunks = 32 // kept for reuse
)

func (a *arena[T]) next() *T {
	c := a.used / chunk
	if c == len(a.chunks) {
		a.chunks = append(a.chunks, make([]T, chunk))
	}
	t := &a.chunks[c][a.used%chunk]
	a.used++
	return t
}

func (a *arena[T]) reset() {
	for i := range a.chunks {
		if i*chunk >= a.used {
			break
		}
		clear(a.chunks[i])
	}
	if len(a.chunks) > maxChunks {
		clear(a.chunks[maxChunks:])
		a.chunks = a.chunks[:maxChunks]
	}
	a.used = 0
}
