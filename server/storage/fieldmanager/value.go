package fieldmanager

import (
	"bytes"
	"fmt"
	"strings"
	"unsafe"

	"sigs.k8s.io/structured-merge-diff/v6/value"

	"github.com/espalier-dev/espalier/internal/jsondoc"
)

// A view is a value of a canonical document, as structured-merge-diff wants it.
// It is read only: it decodes only values that are read, and compares equal values
// by their bytes.
type view struct {
	doc *jsondoc.Doc
	at  jsondoc.Value
}

var _ value.Value = (*view)(nil)

func (v *view) kind() jsondoc.Kind { return v.doc.Kind(v.at) }

// same reports whether two values are written alike.
func (v *view) same(other *view) bool { return bytes.Equal(v.doc.Raw(v.at), other.doc.Raw(other.at)) }

// IsMap implements value.Value.
func (v *view) IsMap() bool { return v.kind() == jsondoc.Object }

// IsList implements value.Value.
func (v *view) IsList() bool { return v.kind() == jsondoc.Array }

// IsBool implements value.Value.
func (v *view) IsBool() bool { return v.kind() == jsondoc.True || v.kind() == jsondoc.False }

// IsString implements value.Value.
func (v *view) IsString() bool { return v.kind() == jsondoc.String }

// IsNull implements value.Value.
func (v *view) IsNull() bool { return v.kind() == jsondoc.Null }

// IsInt implements value.Value.
func (v *view) IsInt() bool {
	if v.kind() != jsondoc.Number {
		return false
	}
	_, ok := v.doc.Int64(v.at)
	return ok
}

// IsFloat implements value.Value.
func (v *view) IsFloat() bool { return v.kind() == jsondoc.Number && !v.IsInt() }

// AsMap implements value.Value.
func (v *view) AsMap() value.Map { return &members{view: *v} }

// AsMapUsing implements value.Value.
func (v *view) AsMapUsing(value.Allocator) value.Map { return v.AsMap() }

// AsList implements value.Value.
func (v *view) AsList() value.List { return &items{view: *v, next: v.at + 1} }

// AsListUsing implements value.Value.
func (v *view) AsListUsing(value.Allocator) value.List { return v.AsList() }

// AsBool implements value.Value.
func (v *view) AsBool() bool { return v.kind() == jsondoc.True }

// AsInt implements value.Value.
func (v *view) AsInt() int64 { n, _ := v.doc.Int64(v.at); return n }

// AsFloat implements value.Value.
func (v *view) AsFloat() float64 { return v.doc.Float64(v.at) }

// AsString implements value.Value.
func (v *view) AsString() string { return v.doc.Text(v.at) }

// Unstructured implements value.Value.
func (v *view) Unstructured() any { return v.doc.Any(v.at) }

// String and GoString are for errors, which clients see: they say what the
// library's own values say.
func (v *view) String() string { return fmt.Sprint(v.decoded()) }

// GoString implements fmt.GoStringer.
func (v *view) GoString() string { return fmt.Sprintf("%#v", v.decoded()) }

// name returns a key of the document, which never changes and is never given
// back: it is not copied.
func name(d *jsondoc.Doc, key jsondoc.Value) string {
	b := d.Key(key)
	return unsafe.String(unsafe.SliceData(b), len(b))
}

// decoded returns the value as the library's own.
func (v *view) decoded() value.Value { return value.NewValueInterface(v.Unstructured()) }

// members are those of an object.
type members struct {
	view
	index map[string]jsondoc.Value // made when it is needed
}

var _ value.Map = (*members)(nil)

// Set and Delete are for the results of merging, which are never views.
const readOnly = "an object that is compared is not changed"

// Set implements value.Map.
func (m *members) Set(string, value.Value) { panic(readOnly) }

// Delete implements value.Map.
func (m *members) Delete(string) { panic(readOnly) }

// few is how many members are looked through faster than indexed.
const few = 16

func (m *members) find(key string) (jsondoc.Value, bool) {
	if m.Length() <= few {
		return m.doc.Get(m.at, key)
	}
	if m.index == nil {
		m.index = make(map[string]jsondoc.Value, m.Length())
		for member := range m.doc.Members(m.at) {
			m.index[name(m.doc, member.Key)] = member.Value
		}
	}
	at, ok := m.index[key]
	return at, ok
}

// Get implements value.Map.
func (m *members) Get(key string) (value.Value, bool) {
	at, ok := m.find(key)
	if !ok {
		return nil, false
	}
	return &view{m.doc, at}, true
}

// GetUsing implements value.Map.
func (m *members) GetUsing(_ value.Allocator, key string) (value.Value, bool) { return m.Get(key) }

// Has implements value.Map.
func (m *members) Has(key string) bool { _, ok := m.find(key); return ok }

// Length implements value.Map.
func (m *members) Length() int { return m.doc.Len(m.at) }

// Empty implements value.Map.
func (m *members) Empty() bool { return m.Length() == 0 }

// Iterate implements value.Map. The value is another one after fn has returned.
func (m *members) Iterate(fn func(key string, v value.Value) bool) bool {
	v := &view{doc: m.doc}
	for member := range m.doc.Members(m.at) {
		v.at = member.Value
		if !fn(name(m.doc, member.Key), v) {
			return false
		}
	}
	return true
}

// IterateUsing implements value.Map.
func (m *members) IterateUsing(_ value.Allocator, fn func(key string, v value.Value) bool) bool {
	return m.Iterate(fn)
}

// Equals implements value.Map.
func (m *members) Equals(other value.Map) bool { return m.EqualsUsing(value.HeapAllocator, other) }

// EqualsUsing implements value.Map. What is not written alike may be equal all
// the same: 1 and 1.0.
func (m *members) EqualsUsing(a value.Allocator, other value.Map) bool {
	if o, ok := other.(*members); ok && m.same(&o.view) {
		return true
	}
	return m.decoded().AsMap().EqualsUsing(a, other)
}

// Zip implements value.Map.
func (m *members) Zip(other value.Map, order value.MapTraverseOrder, fn func(key string, lhs, rhs value.Value) bool) bool {
	return m.ZipUsing(value.HeapAllocator, other, order, fn)
}

// ZipUsing implements value.Map, except that members which are equal in two
// objects are left out: two objects are only ever compared. What is merged into
// an object is a patch, which is no view.
func (m *members) ZipUsing(a value.Allocator, other value.Map, order value.MapTraverseOrder, fn func(key string, lhs, rhs value.Value) bool) bool {
	if other == nil {
		// In the order of the keys: what is made of them is kept in that order.
		return m.Iterate(func(key string, v value.Value) bool { return fn(key, v, nil) })
	}
	o, ok := other.(*members)
	if !ok || order != value.Unordered {
		return m.decoded().AsMap().ZipUsing(a, other, order, fn)
	}
	// At values, of keys that are sorted.
	l, r := &view{m.doc, m.at + 2}, &view{o.doc, o.at + 2}
	lEnd, rEnd := m.doc.Next(m.at), o.doc.Next(o.at)
	for l.at < lEnd || r.at < rEnd {
		key, c := nextKey(l, r, lEnd, rEnd)
		switch {
		case c < 0:
			ok = fn(key, l, nil)
		case c > 0:
			ok = fn(key, nil, r)
		default:
			ok = l.same(r) || fn(key, l, r)
		}
		if !ok {
			return false
		}
		if c <= 0 {
			l.at = l.doc.Next(l.at) + 1
		}
		if c >= 0 {
			r.at = r.doc.Next(r.at) + 1
		}
	}
	return true
}

// nextKey returns the smaller of the keys of two values, and how they compare.
// A value at or after the end is after all others.
func nextKey(l, r *view, lEnd, rEnd jsondoc.Value) (string, int) {
	switch {
	case r.at >= rEnd:
		return name(l.doc, l.at-1), -1
	case l.at >= lEnd:
		return name(r.doc, r.at-1), 1
	}
	left, right := name(l.doc, l.at-1), name(r.doc, r.at-1)
	return min(left, right), strings.Compare(left, right)
}

// items are those of an array. They remember the place that was asked for last,
// so that asking for one after the other takes linear time.
type items struct {
	view
	number int
	next   jsondoc.Value // the place of the item with this number
}

var _ value.List = (*items)(nil)

// Length implements value.List.
func (l *items) Length() int { return l.doc.Len(l.at) }

// At implements value.List.
func (l *items) At(i int) value.Value {
	if i < l.number {
		l.number, l.next = 0, l.at+1
	}
	for ; l.number < i; l.number++ {
		l.next = l.doc.Next(l.next)
	}
	return &view{l.doc, l.next}
}

// AtUsing implements value.List.
func (l *items) AtUsing(_ value.Allocator, i int) value.Value { return l.At(i) }

// Range implements value.List.
func (l *items) Range() value.ListRange {
	return &span{item: view{l.doc, l.at + 1}, end: l.doc.Next(l.at), number: -1}
}

// RangeUsing implements value.List.
func (l *items) RangeUsing(value.Allocator) value.ListRange { return l.Range() }

// Equals implements value.List.
func (l *items) Equals(other value.List) bool { return l.EqualsUsing(value.HeapAllocator, other) }

// EqualsUsing implements value.List.
func (l *items) EqualsUsing(a value.Allocator, other value.List) bool {
	if o, ok := other.(*items); ok && l.same(&o.view) {
		return true
	}
	return value.ListEqualsUsing(a, l, other)
}

// span walks over the items of an array.
type span struct {
	item   view
	end    jsondoc.Value
	number int
}

// Next implements value.ListRange.
func (s *span) Next() bool {
	if s.number >= 0 && s.item.at < s.end {
		s.item.at = s.item.doc.Next(s.item.at)
	}
	s.number++
	return s.item.at < s.end
}

// Item implements value.ListRange.
func (s *span) Item() (int, value.Value) { return s.number, &s.item }
