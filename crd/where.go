package crd

import (
	"strconv"

	"github.com/espalier-dev/espalier/internal/jsondoc"
	"github.com/espalier-dev/espalier/internal/syntax"
)

// where is a place in a CRD. A missing value has the place where it would be, and
// the offset of its parent.
type where struct {
	doc     *jsondoc.Doc
	at      jsondoc.Value
	missing bool
	pointer string
}

// to returns the place of a member of a member and so on.
func (w where) to(names ...string) where {
	for _, n := range names {
		if !w.missing {
			if v, ok := w.doc.Get(w.at, n); ok {
				w.at = v
			} else {
				w.missing = true
			}
		}
		w.pointer = string(syntax.AppendToken([]byte(w.pointer), n))
	}
	return w
}

// item returns the place of item i of a list, whose value is known to be at v.
func (w where) item(i int, v jsondoc.Value) where {
	if !w.missing {
		w.at = v
	}
	w.pointer += "/" + strconv.Itoa(i)
	return w
}

// values are the items of a list.
type values struct {
	items  []jsondoc.Value
	around jsondoc.Value
}

// values returns the items of the list at w.
func (w where) values() values {
	all := values{around: w.at}
	if !w.missing {
		for _, v := range w.doc.Items(w.at) {
			all.items = append(all.items, v)
		}
	}
	return all
}

// get returns item i. An item that is not in the document has the place of the list.
func (v values) get(i int) jsondoc.Value {
	if i < len(v.items) {
		return v.items[i]
	}
	return v.around
}

func (w where) offset() int { return w.doc.Offset(w.at) }

// spot is a place and the name that API servers have for it.
type spot struct {
	where
	path string
}

// to returns the spot of a member.
func (s spot) to(names ...string) spot {
	s.where = s.where.to(names...)
	for _, n := range names {
		s.path += "." + n
	}
	return s
}

// item returns the spot of item i of a list, whose value is known to be at v.
func (s spot) item(i int, v jsondoc.Value) spot {
	return spot{s.where.item(i, v), s.path + "[" + strconv.Itoa(i) + "]"}
}

// as returns the spot under another name.
func (s spot) as(path string) spot {
	s.path = path
	return s
}
