package crd

import (
	"bytes"
	"hash/maphash"
	"math"
	"sync"

	"github.com/espalier-dev/espalier/internal/crdtree"
	"github.com/espalier-dev/espalier/internal/jsondoc"
	"github.com/espalier-dev/espalier/internal/syntax"
)

// reader reads members of objects. It ignores those of the wrong type.
type reader struct{ doc *jsondoc.Doc }

func (r reader) member(v jsondoc.Value, name string) (jsondoc.Value, bool) {
	m, ok := r.doc.Get(v, name)
	return m, ok && r.doc.Kind(m) != jsondoc.Null
}

func (r reader) text(v jsondoc.Value, name string) string {
	if m, ok := r.member(v, name); ok && r.doc.Kind(m) == jsondoc.String {
		return r.doc.Text(m)
	}
	return ""
}

// optional returns nil for a text that is left out.
func (r reader) optional(v jsondoc.Value, name string) *string {
	if m, ok := r.member(v, name); ok && r.doc.Kind(m) == jsondoc.String {
		s := r.doc.Text(m)
		return &s
	}
	return nil
}

func (r reader) list(v jsondoc.Value, name string) (jsondoc.Value, bool) {
	m, ok := r.member(v, name)
	return m, ok && r.doc.Kind(m) == jsondoc.Array
}

// texts reads a list. An API server reads null as "".
func (r reader) texts(v jsondoc.Value, name string) []string {
	m, ok := r.list(v, name)
	if !ok {
		return nil
	}
	var list []string
	for _, item := range r.doc.Items(m) {
		switch r.doc.Kind(item) {
		case jsondoc.String:
			list = append(list, r.doc.Text(item))
		case jsondoc.Null:
			list = append(list, "")
		}
	}
	return list
}

func (r reader) textMap(v jsondoc.Value, name string) map[string]string {
	m, ok := r.member(v, name)
	if !ok || r.doc.Kind(m) != jsondoc.Object {
		return nil
	}
	all := map[string]string{}
	for entry := range r.doc.Members(m) {
		if r.doc.Kind(entry.Value) == jsondoc.String {
			all[string(r.doc.Key(entry.Key))] = r.doc.Text(entry.Value)
		}
	}
	return all
}

func (r reader) flag(v jsondoc.Value, name string, otherwise bool) bool {
	if m, ok := r.member(v, name); ok {
		return r.doc.Kind(m) == jsondoc.True
	}
	return otherwise
}

func (r reader) integer(v jsondoc.Value, name string, otherwise int32) int32 {
	if m, ok := r.member(v, name); ok {
		if n, whole := r.doc.Int64(m); whole && n >= math.MinInt32 && n <= math.MaxInt32 {
			return int32(n)
		}
	}
	return otherwise
}

// index is the index of a CRD's JSON and the syntax trees of its schemas.
type index struct {
	data   []byte
	limits jsondoc.Limits
	known  map[uint64]*source // by the hash of what is written

	mu  sync.Mutex   // parsing a schema uses scratch memory of doc
	doc *jsondoc.Doc // nil after release
}

// open returns the index of the JSON. The caller holds mu, or is the only user.
func (x *index) open() *jsondoc.Doc {
	if x.doc == nil {
		x.doc, _ = jsondoc.Parse(x.data, x.limits) // it was parsed before
	}
	return x.doc
}

func (x *index) get() *jsondoc.Doc {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.open()
}

// source is a schema of a CRD. Versions with the same schema share it.
type source struct {
	in     *index
	at     jsondoc.Value
	offset int

	parsed   bool
	tree     *syntax.Schema
	problems []syntax.Problem
}

var hashSeed = maphash.MakeSeed()

func (x *index) source(at jsondoc.Value) *source {
	raw := x.doc.Raw(at)
	key := maphash.Bytes(hashSeed, raw)
	if s := x.known[key]; s != nil && bytes.Equal(x.doc.Raw(s.at), raw) {
		return s
	}
	s := &source{in: x, at: at, offset: x.doc.Offset(at)}
	x.known[key] = s
	return s
}

// schema returns the parsed schema of the version.
func (v *Version) schema() crdtree.Schema {
	s := v.source
	if s == nil {
		return crdtree.Schema{}
	}
	s.in.mu.Lock()
	defer s.in.mu.Unlock()
	if !s.parsed {
		s.tree, s.problems = syntax.Parse(s.in.open(), s.at)
		s.parsed = true
	}
	return crdtree.Schema{Tree: s.tree, Problems: s.problems, Shift: v.Offset - s.offset}
}

func init() {
	crdtree.Doc = func(crd any) *jsondoc.Doc { return crd.(*CRD).index.get() }
	crdtree.Parse = func(version any) crdtree.Schema { return version.(*Version).schema() }
	crdtree.At = func(part any) jsondoc.Value {
		switch x := part.(type) {
		case *Version:
			return x.at
		case *Column:
			return x.at
		case *Scale:
			return x.at
		case *SelectableField:
			return x.at
		}
		panic("crdtree.At: not a part of a CRD")
	}
}
