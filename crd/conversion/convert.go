package conversion

import (
	"fmt"
	"slices"

	"github.com/espalier-dev/espalier/internal/jsondoc"
)

// convert appends the object in the target version.
func (d *direction) convert(dst []byte, doc *jsondoc.Doc) ([]byte, error) {
	size := doc.End(jsondoc.Root)
	r := newRun(doc, nil)
	defer r.release()
	r.own = newBudget(size)
	r.budget = &r.own
	r.version = d.apiVersion
	c := d.root
	f := r.enter(c, jsondoc.Root)
	r.loadNotes(&d.notes)
	node := none
	if at := r.slots[d.notes.payload].at; at != none && doc.Kind(at) == jsondoc.String {
		if r.payload = r.readPayload(at); r.payload != nil {
			defer r.payload.Release()
			if v, ok := r.payload.Get(jsondoc.Root, d.target); ok && r.payload.Kind(v) == jsondoc.Object {
				node = v
			}
		}
	}
	r.groups(c, f, node)
	start := len(dst)
	// The object begins where dst ends: out[len-1] is looked at to place commas.
	dst = r.value(dst, c.write, f, node, true)
	saved := len(r.saved)
	r.saved = append(r.saved, '{')
	r.saveContext(c, f)
	r.saveNotes(&d.notes)
	r.saved = append(r.saved, '}')
	payload := r.merge(d, r.saved[saved:])
	if r.budget.exceeded {
		return dst[:start], fmt.Errorf("the CEL expressions of the conversion rules cost more than %d for an object of %d bytes: make them cheaper, or the object smaller", newBudget(size).left, size)
	}
	metadata, err := r.metadata(&d.notes, node, payload)
	if err != nil {
		return dst[:start], err
	}
	return slices.Insert(dst, r.metadataAt, metadata...), nil
}

// readPayload returns what an object has preserved of its other versions, nil if it is not what conversion writes.
func (r *run) readPayload(at jsondoc.Value) *jsondoc.Doc {
	r.payloadText = r.doc.AppendText(r.payloadText[:0], at)
	payload, err := jsondoc.Parse(r.payloadText, jsondoc.Limits{MaxBytes: maxAnnotations})
	if err != nil {
		return nil
	}
	if payload.Kind(jsondoc.Root) != jsondoc.Object {
		payload.Release()
		return nil
	}
	return payload
}

// merge returns the annotation of the target, as a JSON string: what is saved now, and what was saved of versions
// that neither the source nor the target is.
func (r *run) merge(d *direction, saved []byte) []byte {
	own := len(saved) > len("{}")
	if !own && r.payload == nil {
		return nil
	}
	out := append(r.merged[:0], '{')
	write := func() {
		out = append(jsondoc.AppendString(appendComma(out), d.source), ':')
		out = append(out, saved...)
		own = false
	}
	if r.payload != nil {
		keys := r.payload.SortedKeys(jsondoc.Root)
		for i := range keys.Len() {
			k, _ := keys.At(i)
			name := string(r.payload.Key(k))
			if name == d.source || name == d.target {
				continue
			}
			if own && d.source < name {
				write()
			}
			out = append(jsondoc.AppendString(appendComma(out), name), ':')
			out = r.payload.AppendCanonical(out, k+1)
		}
		keys.Release()
	}
	if own {
		write()
	}
	if r.merged = out; len(out) == 1 {
		return nil
	}
	r.merged = append(out, '}')
	r.quoted = jsondoc.AppendString(r.quoted[:0], r.merged)
	return r.quoted
}
