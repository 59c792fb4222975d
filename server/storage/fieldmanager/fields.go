package fieldmanager

import (
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apiserver/pkg/endpoints/handlers"
	"k8s.io/apiserver/pkg/registry/rest"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
	"sigs.k8s.io/structured-merge-diff/v6/value"

	"github.com/espalier-dev/espalier/internal/jsondoc"
	"github.com/espalier-dev/espalier/internal/object"
)

// converter lets a TypeConverter for maps work on objects that are bytes.
type converter struct{ inner managedfields.TypeConverter }

// Converter returns inner for objects of type *[object.Object] as well as for
// those that it knows itself. What it makes of typed values is always an
// *[object.Object].
func Converter(inner managedfields.TypeConverter) managedfields.TypeConverter {
	return Limited(converter{inner})
}

// ObjectToTyped implements managedfields.TypeConverter. Errors are inner's own,
// unwrapped: the field manager recognizes some by their type.
func (c converter) ObjectToTyped(obj runtime.Object, opts ...typed.ValidationOptions) (*typed.TypedValue, error) {
	o, ok := obj.(*object.Object)
	if !ok {
		return c.inner.ObjectToTyped(obj, opts...)
	}
	if o.GetManagedFields() != nil {
		o = o.DeepCopy()
		o.SetManagedFields(nil)
	}
	doc, err := jsondoc.Parse(o.JSON(), jsondoc.Limits{})
	if err != nil {
		return nil, err
	}
	// The type is learnt with the help of an object that has nothing else.
	hollow := &unstructured.Unstructured{}
	hollow.SetGroupVersionKind(o.GroupVersionKind())
	kind, err := c.inner.ObjectToTyped(hollow, opts...)
	if err != nil {
		return nil, err
	}
	var v value.Value = &view{doc, jsondoc.Root}
	if !doc.Canonical() {
		v = value.NewValueInterface(v.Unstructured())
	}
	return typed.AsTyped(v, kind.Schema(), kind.TypeRef(), opts...)
}

// TypedToObject implements managedfields.TypeConverter.
func (c converter) TypedToObject(v *typed.TypedValue) (runtime.Object, error) {
	obj, err := c.inner.TypedToObject(v)
	if err != nil {
		return nil, err
	}
	u, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return nil, fmt.Errorf("an object of type %T where a map was expected", obj)
	}
	// Marshal of a map is canonical JSON; see package jsondoc.
	data, err := json.Marshal(u.Object)
	if err != nil {
		return nil, err
	}
	return object.FromJSON(data)
}

// Manager returns the field manager for the objects of a scope, whose Creater,
// Defaulter and Convertor work on objects of type *[object.Object]; types is
// what [Converter] returned. Fields that the scope's strategy resets have no
// manager.
func Manager(types managedfields.TypeConverter, scope *handlers.RequestScope, strategy rest.ResetFieldsStrategy) (*managedfields.FieldManager, error) {
	var reset map[fieldpath.APIVersion]fieldpath.Filter
	if strategy != nil {
		reset = fieldpath.NewExcludeFilterSetMap(strategy.GetResetFields())
	}
	convertor := scope.UnsafeConvertor
	if convertor == nil {
		convertor = scope.Convertor
	}
	return managedfields.NewDefaultCRDFieldManager(types, convertor, scope.Defaulter, scope.Creater, scope.Kind, scope.HubGroupVersion, scope.Subresource, reset)
}
