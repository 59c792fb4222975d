package cel

import (
	"fmt"
	"reflect"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"

	"github.com/espalier-dev/espalier/internal/jsondoc"
)

// setList is an array of x-kubernetes-list-type: set. The order of its items
// does not matter, and adding to it adds what is not in it.
type setList struct{ *list }

// Equal implements ref.Val.
func (s *setList) Equal(other ref.Val) ref.Val { return equalSets(s, other) }

// Add implements traits.Adder.
func (s *setList) Add(other ref.Val) ref.Val { return union(s.values(), other) }

// sumSet is what becomes of adding to a set: another set.
type sumSet struct{ traits.Lister }

// Equal implements ref.Val.
func (s *sumSet) Equal(other ref.Val) ref.Val { return equalSets(s, other) }

// Add implements traits.Adder.
func (s *sumSet) Add(other ref.Val) ref.Val { return union(valuesOf(s.Lister), other) }

func valuesOf(l traits.Lister) []ref.Val {
	var values []ref.Val
	for it := l.Iterator(); it.HasNext() == types.True; {
		values = append(values, it.Next())
	}
	return values
}

func union(values []ref.Val, other ref.Val) ref.Val {
	o, ok := other.(traits.Lister)
	if !ok {
		return types.MaybeNoSuchOverloadErr(other)
	}
	seen := make(map[any]struct{}, len(values))
	for _, v := range values {
		k, err := setKey(v)
		if err != nil {
			return err
		}
		seen[k] = struct{}{}
	}
	for it := o.Iterator(); it.HasNext() == types.True; {
		v := it.Next()
		k, err := setKey(v)
		if err != nil {
			return err
		}
		if _, dup := seen[k]; !dup {
			seen[k] = struct{}{}
			values = append(values, v)
		}
	}
	return &sumSet{types.NewRefValList(types.DefaultTypeAdapter, values)}
}

func equalSets(l traits.Lister, other ref.Val) ref.Val {
	o, ok := other.(traits.Lister)
	if !ok {
		return types.MaybeNoSuchOverloadErr(other)
	}
	if l.Size() != o.Size() {
		return types.False
	}
	set := map[any]struct{}{}
	for it := l.Iterator(); it.HasNext() == types.True; {
		k, err := setKey(it.Next())
		if err != nil {
			return err
		}
		set[k] = struct{}{}
	}
	seen := make(map[any]struct{}, len(set))
	for it := o.Iterator(); it.HasNext() == types.True; {
		k, err := setKey(it.Next())
		if err != nil {
			return err
		}
		if _, ok := set[k]; !ok {
			return types.False
		}
		seen[k] = struct{}{}
	}
	return types.Bool(len(seen) == len(set))
}

// setKey returns what makes an item of a set the same as another. Items that
// cannot be read are the same as none, not even as themselves.
func setKey(v ref.Val) (key any, err ref.Val) {
	switch v := v.(type) {
	case *types.Err:
		unreadable := *v
		return &unreadable, nil
	case traits.Lister, traits.Mapper:
		return nil, types.NewErr("listSet operations are only supported on lists of scalar values")
	}
	return hashable(v.Value()), nil
}

// hashable returns something that equals another exactly if raw does.
func hashable(raw any) any {
	if raw != nil && !reflect.TypeOf(raw).Comparable() {
		return fmt.Sprintf("%#v", raw)
	}
	return raw
}

// mapList is an array of x-kubernetes-list-type: map. Its items are identified
// by their keys; their order does not matter, and adding to it replaces the
// items with the same keys.
type mapList struct{ *list }

// keyNames returns the names of the keys as rules call them. Unlike rules, the
// API server also looks for them by these names in objects that are not
// escaped, and does not find keys that need it; so do mapList and its items.
func (m *mapList) keyNames() []string {
	keys := m.node.Rare.ListMapKeys
	names := make([]string, len(keys))
	for i, k := range keys {
		if names[i] = escape(k); names[i] == "" {
			names[i] = k
		}
	}
	return names
}

// itemKey returns the key of an item.
func (m *mapList) itemKey(r *reader, v jsondoc.Value, names []string) any {
	return composite(names, func(name string) any {
		k, ok := r.member(v, name)
		if !ok {
			return nil
		}
		return hashable(r.doc.Any(k))
	})
}

// composite makes one key of several.
func composite(names []string, get func(string) any) any {
	switch len(names) {
	case 1:
		return get(names[0])
	case 2:
		return [2]any{get(names[0]), get(names[1])}
	case 3:
		return [3]any{get(names[0]), get(names[1]), get(names[2])}
	}
	all := make([]any, len(names))
	for i, n := range names {
		all[i] = get(n)
	}
	return fmt.Sprintf("%#v", all)
}

// Equal implements ref.Val.
func (m *mapList) Equal(other ref.Val) ref.Val {
	o, ok := other.(traits.Lister)
	if !ok {
		return types.MaybeNoSuchOverloadErr(other)
	}
	if m.Size() != o.Size() {
		return types.False
	}
	names := m.keyNames()
	mine := make(map[any]jsondoc.Value, m.len())
	for _, v := range m.doc.Items(m.at) {
		if m.doc.Kind(v) == jsondoc.Object {
			mine[m.itemKey(m.reader, v, names)] = v
		}
	}
	seen := make(map[any]struct{}, len(mine))
	for it := o.Iterator(); it.HasNext() == types.True; {
		v := it.Next()
		its, ok := v.(*object)
		if !ok {
			return types.False
		}
		k := m.itemKey(its.reader, its.at, names)
		at, ok := mine[k]
		if !ok {
			return types.False
		}
		if eq := m.value(at, m.node.Items).Equal(v); eq != types.True {
			return eq
		}
		seen[k] = struct{}{}
	}
	return types.Bool(len(seen) == len(mine))
}

// Add implements traits.Adder.
func (m *mapList) Add(other ref.Val) ref.Val { return merge(m.values(), other, m.keyNames()) }

// sumMap is what becomes of adding to a mapList.
type sumMap struct {
	traits.Lister
	names []string
}

// Add implements traits.Adder.
func (s *sumMap) Add(other ref.Val) ref.Val { return merge(valuesOf(s.Lister), other, s.names) }

// Equal implements ref.Val.
func (s *sumMap) Equal(other ref.Val) ref.Val {
	o, ok := other.(traits.Lister)
	if !ok {
		return types.MaybeNoSuchOverloadErr(other)
	}
	if s.Size() != o.Size() {
		return types.False
	}
	mine := map[any]ref.Val{}
	for it := s.Iterator(); it.HasNext() == types.True; {
		v := it.Next()
		mine[valueKey(v, s.names)] = v
	}
	seen := make(map[any]struct{}, len(mine))
	for it := o.Iterator(); it.HasNext() == types.True; {
		v := it.Next()
		k := valueKey(v, s.names)
		have, ok := mine[k]
		if !ok {
			return types.False
		}
		if eq := have.Equal(v); eq != types.True {
			return eq
		}
		seen[k] = struct{}{}
	}
	return types.Bool(len(seen) == len(mine))
}

// merge adds the items of other to values, in the place of those with the same
// key. Items of other that are new do not replace each other.
func merge(values []ref.Val, other ref.Val, names []string) ref.Val {
	o, ok := other.(traits.Lister)
	if !ok {
		return types.MaybeNoSuchOverloadErr(other)
	}
	places := make(map[any]int, len(values))
	for i, v := range values {
		places[valueKey(v, names)] = i
	}
	for it := o.Iterator(); it.HasNext() == types.True; {
		v := it.Next()
		if i, ok := places[valueKey(v, names)]; ok {
			values[i] = v
		} else {
			values = append(values, v)
		}
	}
	return &sumMap{types.NewRefValList(types.DefaultTypeAdapter, values), names}
}

// valueKey returns the key of an item that need not be from a document.
func valueKey(v ref.Val, names []string) any {
	return composite(names, func(name string) any {
		m, ok := v.(traits.Mapper)
		if !ok {
			return nil
		}
		k, found := m.Find(types.String(name))
		if !found || k == nil || types.IsUnknownOrError(k) {
			return nil
		}
		return hashable(k.Value())
	})
}
