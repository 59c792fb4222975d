package cel

import (
	"fmt"
	"reflect"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"

	"github.com/espalier-dev/espalier/internal/jsondoc"
	"github.com/espalier-dev/espalier/internal/plan"
)

// list is a JSON array.
type list struct {
	*reader
	at   jsondoc.Value
	node *plan.Node // of the array; it has items
}

var (
	_ traits.Lister   = (*list)(nil)
	_ traits.Foldable = (*list)(nil)
)

// Get implements traits.Indexer.
func (l *list) Get(index ref.Val) ref.Val {
	i, ok := index.(types.Int)
	if !ok {
		return types.ValOrErr(index, "unsupported index: %v", index)
	}
	if i < 0 || int(i) >= l.len() {
		return types.NewErr("index out of bounds: %v", index)
	}
	return l.value(l.item(l.at, int(i)), l.node.Items)
}

func (l *list) len() int { return l.doc.Len(l.at) }

// Size implements traits.Sizer.
func (l *list) Size() ref.Val { return types.Int(l.len()) }

// Type implements ref.Val.
func (l *list) Type() ref.Type { return types.ListType }

// Value implements ref.Val.
func (l *list) Value() any { return l.doc.Any(l.at) }

// String is the list as errors show it.
func (l *list) String() string { return string(l.doc.AppendCanonical(nil, l.at)) }

// ConvertToNative implements ref.Val. Lists of strings become such in Go, as
// functions of the libraries expect.
func (l *list) ConvertToNative(t reflect.Type) (any, error) {
	if t.Kind() != reflect.Slice {
		return nil, fmt.Errorf("type conversion error from '%s' to '%s'", l.Type(), t)
	}
	if l.node.Items.Type != plan.String {
		return l.Value(), nil
	}
	var texts []string
	for _, v := range l.doc.Items(l.at) {
		if l.doc.Kind(v) != jsondoc.String {
			return nil, fmt.Errorf("expected all elements to be of type string, but got %s", goType(l.doc, v))
		}
		texts = append(texts, l.text(v))
	}
	return texts, nil
}

// ConvertToType implements ref.Val.
func (l *list) ConvertToType(t ref.Type) ref.Val {
	switch t {
	case types.ListType:
		return l
	case types.TypeType:
		return types.ListType
	}
	return types.NewErr("type conversion error from '%s' to '%s'", l.Type(), t.TypeName())
}

// Equal implements ref.Val.
func (l *list) Equal(other ref.Val) ref.Val {
	o, ok := other.(traits.Lister)
	if !ok {
		return types.MaybeNoSuchOverloadErr(other)
	}
	if l.Size() != o.Size() {
		return types.False
	}
	for i, v := range l.doc.Items(l.at) {
		if eq := l.value(v, l.node.Items).Equal(o.Get(types.Int(i))); eq != types.True {
			return eq
		}
	}
	return types.True
}

// Contains implements traits.Container.
func (l *list) Contains(val ref.Val) ref.Val {
	if types.IsUnknownOrError(val) {
		return val
	}
	var err ref.Val
	for _, v := range l.doc.Items(l.at) {
		switch eq := l.value(v, l.node.Items).Equal(val).(type) {
		case types.Bool:
			if eq {
				return types.True
			}
		default:
			if err == nil {
				err = types.MaybeNoSuchOverloadErr(eq)
			}
		}
	}
	if err != nil {
		return err
	}
	return types.False
}

// Add implements traits.Adder.
func (l *list) Add(other ref.Val) ref.Val {
	o, ok := other.(traits.Lister)
	if !ok {
		return types.MaybeNoSuchOverloadErr(other)
	}
	values := l.values()
	for it := o.Iterator(); it.HasNext() == types.True; {
		values = append(values, it.Next())
	}
	return types.NewRefValList(types.DefaultTypeAdapter, values)
}

// values returns the items.
func (l *list) values() []ref.Val {
	values := make([]ref.Val, 0, l.len())
	for _, v := range l.doc.Items(l.at) {
		values = append(values, l.value(v, l.node.Items))
	}
	return values
}

// Fold implements traits.Foldable.
func (l *list) Fold(f traits.Folder) {
	for i, v := range l.doc.Items(l.at) {
		if !f.FoldEntry(types.Int(i), l.value(v, l.node.Items)) {
			return
		}
	}
}

// Iterator implements traits.Iterable.
func (l *list) Iterator() traits.Iterator {
	return &itemIterator{list: l, next: l.at + 1, end: l.doc.Next(l.at)}
}

type itemIterator struct {
	*list
	next, end jsondoc.Value
}

// HasNext implements traits.Iterator.
func (it *itemIterator) HasNext() ref.Val { return types.Bool(it.next < it.end) }

// Next implements traits.Iterator.
func (it *itemIterator) Next() ref.Val {
	v := it.next
	it.next = it.doc.Next(v)
	return it.value(v, it.node.Items)
}
