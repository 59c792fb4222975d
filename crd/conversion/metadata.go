package conversion

import (
	"fmt"
	"slices"
	"strings"

	"github.com/espalier-dev/espalier/internal/jsondoc"
)

// maxAnnotations is what all annotations of an object may have together, in bytes: API servers refuse more.
const maxAnnotations = 256 << 10

// loadNotes fills the slots of annotations and labels that do not stay in place.
func (r *run) loadNotes(n *notes) {
	meta, ok := r.doc.Get(jsondoc.Root, "metadata")
	if !ok {
		return
	}
	for _, in := range []string{"annotations", "labels"} {
		all, ok := r.doc.Get(meta, in)
		if !ok || r.doc.Kind(all) != jsondoc.Object {
			continue
		}
		end := r.doc.Next(all)
		for k := all + 1; k < end; k = r.doc.Next(k + 1) {
			if i := n.find(in, r.doc.Key(k)); i >= 0 {
				r.slots[n.read[i].slot].at = k + 1
			}
		}
	}
}

// find returns the place of an annotation or label among those that do not stay in place, or -1.
func (n *notes) find(in string, name []byte) int {
	lo, hi := 0, len(n.read)
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		x := &n.read[mid]
		if c := strings.Compare(x.in, in); c < 0 || c == 0 && x.name < string(name) {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	if lo < len(n.read) && n.read[lo].in == in && n.read[lo].name == string(name) {
		return lo
	}
	return -1
}

// saveNotes appends the annotations and labels that the target cannot hold.
func (r *run) saveNotes(n *notes) {
	in := ""
	for _, x := range n.read {
		if x.fate != preserved || r.slots[x.slot].at == none {
			continue
		}
		switch {
		case in == "":
			r.comma()
			r.saved = append(r.saved, `"metadata":{"`+x.in+`":{`...)
		case in != x.in:
			r.saved = append(r.saved, `},"`+x.in+`":{`...)
		default:
			r.saved = append(r.saved, ',')
		}
		in = x.in
		r.saved = append(jsondoc.AppendString(r.saved, x.name), ':')
		r.saved = r.doc.AppendCanonical(r.saved, r.slots[x.slot].at)
	}
	if in != "" {
		r.saved = append(r.saved, "}}"...)
	}
}

// change is an annotation or label that metadata of the target gets.
type change struct {
	name  string
	value []byte // JSON
}

// changes returns what metadata of the target gets, sorted.
func (r *run) changes(n *notes, in string, node jsondoc.Value) []change {
	var list []change
	for _, x := range n.write {
		if x.in != in {
			continue
		}
		var value []byte
		switch {
		case x.slot >= 0:
			if at := r.slots[x.slot].at; at != none {
				value = r.canonical(at)
			} else {
				value = r.savedNote(node, in, x.name) // by former rules
			}
		case x.cell >= 0:
			if value = r.cells[x.cell]; value == nil && !r.given(x.inputs, frame{}) {
				value = r.savedNote(node, in, x.name)
			}
		case x.fate == preserved:
			value = r.savedNote(node, in, x.name)
		}
		if len(value) > 0 && value[0] == '"' {
			list = append(list, change{x.name, value})
		}
	}
	return list
}

func (r *run) savedNote(node jsondoc.Value, in, name string) []byte {
	if node == none {
		return nil
	}
	for _, key := range []string{"metadata", in, name} {
		v, ok := r.payload.Get(node, key)
		if !ok {
			return nil
		}
		node = v
	}
	return r.payload.AppendCanonical(nil, node)
}

// metadata returns the member metadata of the target, with a comma before it; nothing if there is none. payload is
// the annotation with what was saved, as JSON.
func (r *run) metadata(n *notes, node jsondoc.Value, payload []byte) ([]byte, error) {
	meta, has := r.doc.Get(jsondoc.Root, "metadata")
	changed := len(payload) > 0 || r.slots[n.payload].at != none || len(n.read) > 1 || len(n.write) > 0
	if !changed {
		if !has {
			return nil, nil
		}
		r.meta = r.doc.AppendCanonical(append(r.meta[:0], `,"metadata":`...), meta)
		return r.meta, nil
	}
	annotations := r.changes(n, "annotations", node)
	if len(payload) > 0 {
		i, _ := slices.BinarySearchFunc(annotations, Preserved, func(c change, name string) int { return strings.Compare(c.name, name) })
		annotations = slices.Insert(annotations, i, change{Preserved, payload})
	}
	w := metadataWriter{run: r, notes: n, changes: [2][]change{annotations, r.changes(n, "labels", node)}}
	w.out = append(r.meta[:0], `,"metadata":{`...)
	if has && r.doc.Kind(meta) == jsondoc.Object {
		w.meta = meta
		if err := w.members(); err != nil {
			return nil, err
		}
	}
	if err := w.until(nil); err != nil {
		return nil, err
	}
	r.meta = w.out
	if w.out[len(w.out)-1] == '{' && !has {
		return nil, nil
	}
	r.meta = append(r.meta, '}')
	return r.meta, nil
}

// noteNames are the members of metadata that conversion changes, in their order.
var noteNames = [...]string{"annotations", "labels"}

// metadataWriter writes metadata with other annotations and labels.
type metadataWriter struct {
	*run
	notes   *notes
	out     []byte
	meta    jsondoc.Value // 0 if the source has none
	changes [2][]change
	next    int // of noteNames
}

// members copies all other members, as they are.
func (w *metadataWriter) members() error {
	d := w.doc
	keys := d.SortedKeys(w.meta)
	defer keys.Release()
	for i := range keys.Len() {
		k, _ := keys.At(i)
		name := d.Key(k)
		if err := w.until(name); err != nil {
			return err
		}
		if string(name) == "annotations" || string(name) == "labels" {
			continue
		}
		w.out = appendKey(appendComma(w.out), d, k)
		w.out = appendValue(w.out, d, k+1)
	}
	return nil
}

// until writes annotations and labels once it is their turn before a member.
func (w *metadataWriter) until(key []byte) error {
	for w.next < len(noteNames) && (key == nil || noteNames[w.next] <= string(key)) {
		i := w.next
		w.next++
		var err error
		if w.out, err = w.noteMap(w.out, w.notes, w.meta, w.meta != 0, noteNames[i], w.changes[i]); err != nil {
			return err
		}
	}
	return nil
}

func appendComma(out []byte) []byte {
	if out[len(out)-1] != '{' {
		out = append(out, ',')
	}
	return out
}

// noteMap appends the annotations or labels: those that stay in place, and changes.
func (r *run) noteMap(out []byte, n *notes, meta jsondoc.Value, has bool, in string, changes []change) ([]byte, error) {
	start := len(out)
	out = appendComma(out)
	out = append(append(append(out, '"'), in...), `":{`...)
	open := len(out)
	until := func(key []byte) {
		for len(changes) > 0 && (key == nil || changes[0].name <= string(key)) {
			out = appendComma(out)
			out = append(jsondoc.AppendString(out, changes[0].name), ':')
			out = append(out, changes[0].value...)
			changes = changes[1:]
		}
	}
	if has {
		if all, ok := r.doc.Get(meta, in); ok && r.doc.Kind(all) == jsondoc.Object {
			keys := r.doc.SortedKeys(all)
			for i := range keys.Len() {
				k, _ := keys.At(i)
				key := r.doc.Key(k)
				until(key)
				if n.find(in, key) >= 0 {
					continue
				}
				out = appendComma(out)
				out = appendKey(out, r.doc, k)
				out = appendValue(out, r.doc, k+1)
			}
			keys.Release()
		}
	}
	until(nil)
	switch size := len(out) - open; {
	case size == 0:
		return out[:start], nil
	case in == "annotations" && size > maxAnnotations:
		return nil, fmt.Errorf("its annotations would have %d bytes, more than the %d that API servers accept, because %s holds what version %s cannot: "+
			"move those fields to fields of that version by rules, declare them lost, or make the object smaller", size, maxAnnotations, Preserved, strings.Trim(r.version, `"`))
	}
	return append(out, '}'), nil
}
