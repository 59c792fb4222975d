package cel

import (
	"fmt"
	"reflect"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"

	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/espalier-dev/espalier/internal/jsondoc"
	"github.com/espalier-dev/espalier/internal/plan"
)

// object is a JSON object as rules see it: with the fields that its schema
// specifies, or a map.
type object struct {
	*reader
	at   jsondoc.Value
	node *plan.Node
}

var _ traits.Mapper = (*object)(nil)

// fields reports whether the object has specified fields. Their names are
// escaped in expressions; keys of maps are not.
func (o *object) fields() bool { return o.node.Props != nil }

// schema returns the node of the member called key, nil if rules cannot see it.
func (o *object) schema(key []byte) *plan.Node {
	if !o.fields() {
		return o.node.Additional
	}
	if rank := o.node.Props.Lookup(key); rank >= 0 {
		return o.node.Props.At(rank).Node
	}
	return nil
}

// Find implements traits.Mapper.
func (o *object) Find(key ref.Val) (ref.Val, bool) {
	name, ok := key.(types.String)
	if !ok {
		return types.MaybeNoSuchOverloadErr(key), true
	}
	k := string(name)
	if o.fields() {
		if k, ok = unescape(k); !ok {
			return nil, false
		}
	}
	v, ok := o.member(o.at, k)
	if !ok || o.fields() && o.doc.Kind(v) == jsondoc.Null {
		return nil, false // a field that is null is as good as absent
	}
	n := o.schema(o.doc.Key(v - 1))
	if n == nil {
		return nil, false
	}
	return o.value(v, n), true
}

// Get implements traits.Indexer.
func (o *object) Get(key ref.Val) ref.Val {
	if v, found := o.Find(key); found {
		return v
	}
	return types.ValOrErr(key, "no such key: %v", key)
}

// Contains implements traits.Container.
func (o *object) Contains(key ref.Val) ref.Val {
	v, found := o.Find(key)
	if types.IsUnknownOrError(v) {
		return v
	}
	return types.Bool(found)
}

// Size implements traits.Sizer. It counts members that rules cannot see.
func (o *object) Size() ref.Val { return types.Int(o.size(o.at)) }

// Type implements ref.Val.
func (o *object) Type() ref.Type { return types.MapType }

// Value implements ref.Val.
func (o *object) Value() any { return o.doc.Any(o.at) }

// String is the object as errors show it, for example one that is inserted
// twice as the key of a map.
func (o *object) String() string { return string(o.doc.AppendCanonical(nil, o.at)) }

// ConvertToNative implements ref.Val.
func (o *object) ConvertToNative(t reflect.Type) (any, error) {
	if t.Kind() == reflect.Map {
		return o.Value(), nil
	}
	return nil, fmt.Errorf("type conversion error from '%s' to '%s'", o.Type(), t)
}

// ConvertToType implements ref.Val.
func (o *object) ConvertToType(t ref.Type) ref.Val {
	switch t {
	case types.MapType:
		return o
	case types.TypeType:
		return types.MapType
	}
	return types.NewErr("type conversion error from '%s' to '%s'", o.Type(), t.TypeName())
}

// Equal implements ref.Val. Members that rules cannot see are compared if both
// objects have them.
func (o *object) Equal(other ref.Val) ref.Val {
	m, ok := other.(traits.Mapper)
	if !ok {
		return types.MaybeNoSuchOverloadErr(other)
	}
	if o.Size() != m.Size() {
		return types.False
	}
	for k, end := o.at+1, o.doc.Next(o.at); k < end; k = o.doc.Next(k + 1) {
		if eq := o.memberEqual(k, m); eq != types.True {
			return eq
		}
	}
	return types.True
}

func (o *object) memberEqual(k jsondoc.Value, m traits.Mapper) ref.Val {
	key := o.doc.Key(k)
	if o.schema(key) == nil {
		p, ok := m.(*object)
		if !ok {
			return types.MaybeNoSuchOverloadErr(m)
		}
		if w, ok := p.member(p.at, string(key)); ok {
			return types.Bool(sameJSON(o.reader, k+1, p.reader, w))
		}
		return types.True
	}
	name := types.String(key)
	mine, found := o.Find(name)
	its, foundThere := m.Find(name)
	switch {
	case found != foundThere:
		return types.False
	case !found:
		return types.True
	}
	return mine.Equal(its)
}

// Iterator implements traits.Iterable. It ranges over the names of members that
// rules can see, in the order of the document.
func (o *object) Iterator() traits.Iterator {
	return &memberIterator{object: o, next: o.visible(o.at + 1)}
}

// visible returns the first key from k on that rules can see.
func (o *object) visible(k jsondoc.Value) jsondoc.Value {
	end := o.doc.Next(o.at)
	for k < end && o.schema(o.doc.Key(k)) == nil {
		k = o.doc.Next(k + 1)
	}
	return k
}

type memberIterator struct {
	*object
	next jsondoc.Value
}

// HasNext implements traits.Iterator.
func (it *memberIterator) HasNext() ref.Val { return types.Bool(it.next < it.doc.Next(it.at)) }

// Next implements traits.Iterator.
func (it *memberIterator) Next() ref.Val {
	key := view(it.doc.Key(it.next))
	it.next = it.visible(it.doc.Next(it.next + 1))
	if it.fields() {
		if escaped := escape(key); escaped != "" {
			key = escaped
		}
	}
	return types.String(key)
}

// unknown is a value without a type, kept by
// x-kubernetes-preserve-unknown-fields. Rules cannot see it, but it counts when
// objects are compared.
type unknown struct {
	*reader
	at jsondoc.Value
}

// ConvertToNative implements ref.Val.
func (u *unknown) ConvertToNative(t reflect.Type) (any, error) {
	return nil, fmt.Errorf("type conversion to '%s' not supported for values preserved by x-kubernetes-preserve-unknown-fields", t)
}

// ConvertToType implements ref.Val.
func (u *unknown) ConvertToType(t ref.Type) ref.Val {
	return types.NewErr("type conversion to '%s' not supported for values preserved by x-kubernetes-preserve-unknown-fields", t.TypeName())
}

// Equal implements ref.Val.
func (u *unknown) Equal(other ref.Val) ref.Val {
	if w, ok := other.(*unknown); ok {
		return types.Bool(sameJSON(u.reader, u.at, w.reader, w.at))
	}
	return types.Bool(equality.Semantic.DeepEqual(u.Value(), other.Value()))
}

// Type implements ref.Val.
func (u *unknown) Type() ref.Type { return types.UnknownType }

// Value implements ref.Val.
func (u *unknown) Value() any { return u.doc.Any(u.at) }
