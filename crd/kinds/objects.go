package kinds

import (
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Metadata is the metadata of an object of k8s.io/api. All of them have metadata.
func Metadata(obj runtime.Object) metav1.Object {
	m, err := meta.Accessor(obj)
	if err != nil {
		panic(fmt.Sprintf("kinds: a %T has no metadata: %v", obj, err))
	}
	return m
}

// Tree is an object of k8s.io/api as rules read it, without managed fields: no rule reads
// them, and they are mostly larger than the rest.
func Tree(obj runtime.Object) map[string]any {
	own := reflect.New(reflect.TypeOf(obj).Elem())
	own.Elem().Set(reflect.ValueOf(obj).Elem()) // a copy that shares everything below its fields
	Metadata(own.Interface().(runtime.Object)).SetManagedFields(nil)
	return Part(own.Interface())
}

// Part is the tree of a part of an object, given as a pointer to a struct.
func Part(part any) map[string]any {
	m, err := runtime.DefaultUnstructuredConverter.ToUnstructured(part)
	if err != nil {
		panic(fmt.Sprintf("kinds: a %T cannot be converted to a tree: %v", part, err)) // all types of k8s.io/api can
	}
	return m
}

// Assign sets an object to a tree that was made of one like it. Its managed fields stay.
// A time that text cannot have becomes the nearest one that it can: see [boundTimes].
func Assign(tree map[string]any, obj runtime.Object) {
	t := reflect.TypeOf(obj).Elem()
	fresh := reflect.New(t)
	err := runtime.DefaultUnstructuredConverter.FromUnstructured(tree, fresh.Interface())
	if err != nil {
		boundTimes(t, tree)
		fresh = reflect.New(t)
		err = runtime.DefaultUnstructuredConverter.FromUnstructured(tree, fresh.Interface())
	}
	if err != nil {
		panic(fmt.Sprintf("kinds: a tree cannot be converted to a %T: %v", obj, err))
	}
	Metadata(fresh.Interface().(runtime.Object)).SetManagedFields(Metadata(obj).GetManagedFields())
	reflect.ValueOf(obj).Elem().Set(fresh.Elem())
}
