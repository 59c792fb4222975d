package page

import (
	"iter"

	"github.com/espalier-dev/espalier/internal/jsondoc"
)

// reader reads parts of a document; what is not there is empty.
type reader struct{ doc *jsondoc.Doc }

// part is a value of a document that may not be there.
type part struct {
	v  jsondoc.Value
	ok bool
}

func (r reader) root() part { return part{jsondoc.Root, true} }

func (r reader) get(p part, name string) part {
	if !p.ok {
		return part{}
	}
	v, ok := r.doc.Get(p.v, name)
	return part{v, ok}
}

func (r reader) items(p part) iter.Seq[part] {
	return func(yield func(part) bool) {
		if !p.ok {
			return
		}
		for _, v := range r.doc.Items(p.v) {
			if !yield(part{v, true}) {
				return
			}
		}
	}
}

func (r reader) text(p part, name string) string {
	if m := r.get(p, name); m.ok && r.doc.Kind(m.v) == jsondoc.String {
		return r.doc.Text(m.v)
	}
	return ""
}

func (r reader) columns(in part) []column {
	var list []column
	for item := range r.items(r.get(in, "additionalPrinterColumns")) {
		c := column{
			Name: r.text(item, "name"), Type: r.text(item, "type"),
			Description: r.text(item, "description"), Path: r.text(item, "jsonPath"),
		}
		if c.Path == "" {
			c.Path = r.text(item, "JSONPath") // in v1beta1
		}
		if p := r.get(item, "priority"); p.ok && r.doc.Kind(p.v) == jsondoc.Number {
			c.Wide = r.doc.Float64(p.v) > 0
		}
		list = append(list, c)
	}
	return list
}
