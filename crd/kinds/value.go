package kinds

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
)

// wrap makes a CEL value of a part of a tree. An absent part, and one of another form
// than its type, is the zero value of the type.
func wrap(t *fieldType, value any) ref.Val {
	switch t.form {
	case stringForm:
		s, _ := value.(string)
		return types.String(s)
	case quantityForm:
		return types.String(quantityText(value))
	case integerForm:
		i, _ := value.(int64)
		return types.Int(i)
	case floatForm:
		return types.Double(number(value))
	case boolForm:
		b, _ := value.(bool)
		return types.Bool(b)
	case intOrStringForm:
		if s, ok := value.(string); ok {
			return types.String(s)
		}
		i, _ := value.(int64)
		return types.Int(i)
	case objectForm:
		m, _ := value.(map[string]any)
		return &object{t.object, m}
	case listForm:
		list, _ := value.([]any)
		return items{types.NewDynamicList(adapter{t.items}, list)}
	case mapForm:
		m, _ := value.(map[string]any)
		return entries{types.NewStringInterfaceMap(adapter{t.items}, m)}
	default:
		return types.DefaultTypeAdapter.NativeToValue(value)
	}
}

// quantityText is a quantity as text. The command line's trees may have numbers.
func quantityText(value any) string {
	switch v := value.(type) {
	case string:
		return v
	case int64:
		return strconv.FormatInt(v, 10)
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64)
	}
	return ""
}

func number(value any) float64 {
	switch v := value.(type) {
	case float64:
		return v
	case int64:
		return float64(v)
	}
	return 0
}

// items is a list. CEL's own one gives comprehensions of two variables the parts of the
// tree as they are.
type items struct{ traits.Lister }

// Add implements traits.Adder.
func (l items) Add(other ref.Val) ref.Val {
	more, ok := other.(traits.Lister)
	if !ok {
		return types.MaybeNoSuchOverloadErr(other)
	}
	var all []ref.Val
	for _, list := range []traits.Lister{l, more} {
		for it := list.Iterator(); it.HasNext() == types.True; {
			all = append(all, it.Next())
		}
	}
	return types.NewRefValList(types.DefaultTypeAdapter, all)
}

// entries is a map, as items is a list.
type entries struct{ traits.Mapper }

// adapter wraps the items of a list or map.
type adapter struct{ items *fieldType }

// NativeToValue implements types.Adapter.
func (a adapter) NativeToValue(value any) ref.Val {
	if v, ok := value.(ref.Val); ok {
		return v
	}
	return wrap(a.items, value)
}

// object is a struct as a CEL value.
type object struct {
	t    *objectType
	tree map[string]any
}

var (
	_ traits.Indexer     = (*object)(nil)
	_ traits.FieldTester = (*object)(nil)
)

// field is the type of a field. CEL's reserved words are written with underscores, as
// in the rules of CRDs.
func (o *object) field(name ref.Val) (string, *fieldType) {
	s, _ := name.(types.String)
	t := o.t.fields[string(s)]
	if t == nil {
		plain := strings.TrimSuffix(strings.TrimPrefix(string(s), "__"), "__")
		return plain, o.t.fields[plain]
	}
	return string(s), t
}

// Get implements traits.Indexer.
func (o *object) Get(name ref.Val) ref.Val {
	s, t := o.field(name)
	if t == nil {
		return types.NewErr("%s has no field %v", o.t.name, name)
	}
	return wrap(t, o.tree[s])
}

// IsSet implements traits.FieldTester.
func (o *object) IsSet(name ref.Val) ref.Val {
	s, t := o.field(name)
	if t == nil {
		return types.NewErr("%s has no field %v", o.t.name, name)
	}
	return types.Bool(t.isSet(o.tree[s]))
}

// ConvertToNative implements ref.Val.
func (o *object) ConvertToNative(t reflect.Type) (any, error) {
	if reflect.TypeFor[map[string]any]().AssignableTo(t) {
		return o.tree, nil
	}
	return nil, fmt.Errorf("a %s cannot be converted to %v", o.t.name, t)
}

// ConvertToType implements ref.Val.
func (o *object) ConvertToType(t ref.Type) ref.Val {
	if t == types.TypeType {
		return o.Type().(ref.Val)
	}
	return types.NewErr("a %s cannot be converted to %s", o.t.name, t.TypeName())
}

// Equal implements ref.Val.
func (o *object) Equal(other ref.Val) ref.Val {
	p, ok := other.(*object)
	return types.Bool(ok && p.t == o.t && equalObjects(o.t, o.tree, p.tree))
}

// Type implements ref.Val.
func (o *object) Type() ref.Type { return types.NewObjectType(o.t.name) }

// Value implements ref.Val.
func (o *object) Value() any { return o.tree }

// equalValues compares as Go's semantic equality does: empty and absent are equal.
func equalValues(t *fieldType, a, b any) bool {
	setA, setB := t.isSet(a), t.isSet(b)
	if !setA || !setB {
		return setA == setB
	}
	switch t.form {
	case objectForm:
		x, _ := a.(map[string]any)
		y, _ := b.(map[string]any)
		return equalObjects(t.object, x, y)
	case listForm:
		x, _ := a.([]any)
		y, _ := b.([]any)
		if len(x) != len(y) {
			return false
		}
		for i := range x {
			if !equalValues(t.items, x[i], y[i]) {
				return false
			}
		}
		return true
	case mapForm:
		x, _ := a.(map[string]any)
		y, _ := b.(map[string]any)
		if len(x) != len(y) {
			return false
		}
		for key, v := range x {
			w, ok := y[key]
			if !ok || !equalValues(t.items, v, w) {
				return false
			}
		}
		return true
	case quantityForm:
		return quantityText(a) == quantityText(b) || compareQuantities(quantityText(a), quantityText(b)) == 0
	}
	return reflect.DeepEqual(a, b)
}

func equalObjects(t *objectType, a, b map[string]any) bool {
	for _, name := range t.names {
		if !equalValues(t.fields[name], a[name], b[name]) {
			return false
		}
	}
	return true
}

// plain makes a tree of a CEL value.
func plain(v ref.Val) any {
	switch v := v.(type) {
	case *object:
		return v.tree
	case merged:
		return v.tree
	case types.String:
		return string(v)
	case types.Int:
		return int64(v)
	case types.Uint:
		return int64(v) //nolint:gosec // expressions of the files make no such large numbers
	case types.Double:
		return float64(v)
	case types.Bool:
		return bool(v)
	case types.Null:
		return nil
	case traits.Lister:
		list := []any{}
		for it := v.Iterator(); it.HasNext() == types.True; {
			list = append(list, plain(it.Next()))
		}
		return list
	case traits.Mapper:
		m := map[string]any{}
		for it := v.Iterator(); it.HasNext() == types.True; {
			key := it.Next()
			member, _ := v.Find(key)
			m[fmt.Sprint(key.Value())] = plain(member)
		}
		return m
	}
	return v.Value()
}
