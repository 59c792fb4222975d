package builtin

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/conversion"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
)

// newScheme returns the kinds of resources. Each Go type is registered twice:
// in the version that is served, and as the internal version of the group, which
// handlers and field managers convert to and from.
func newScheme(resources []Resource) (*runtime.Scheme, error) {
	s := runtime.NewScheme()
	metav1.AddToGroupVersion(s, metav1.Unversioned)
	for i := range resources {
		r := &resources[i]
		metav1.AddToGroupVersion(s, r.version())
		register(s, r.version().WithKind(r.Kind), r.New)
		if r.NewList != nil {
			register(s, r.version().WithKind(r.Kind+"List"), r.NewList)
		}
		switch fill := r.Strategy.fill; {
		case fill != nil:
			s.AddTypeDefaultingFunc(r.New(), func(obj any) { fill(obj.(runtime.Object)) })
		case r.Strategy.Default != nil:
			s.AddTypeDefaultingFunc(r.New(), func(obj any) { r.Strategy.Default(obj.(runtime.Object)) })
		}
	}
	for i := range resources {
		if r := &resources[i]; r.Alias.Empty() {
			internalize(s, r, r)
			if err := addSelectors(s, r, r); err != nil {
				return nil, err
			}
		}
	}
	return s, addAliases(s, resources)
}

// addAliases makes the types of resources the internal ones of their aliases.
// They come last: the first of the kinds of a type is what errors speak of.
func addAliases(s *runtime.Scheme, resources []Resource) error {
	for i := range resources {
		r := &resources[i]
		if r.Alias.Empty() {
			continue
		}
		of := find(resources, r.Alias)
		if of == nil || !of.stored() {
			return fmt.Errorf("%s is an alias of %s, which is not a stored resource", r.resource(), r.Alias)
		}
		internalize(s, r, of)
		if err := r.convert(s); err != nil {
			return err
		}
		if err := addSelectors(s, r, of); err != nil {
			return err
		}
	}
	return nil
}

// find returns a resource, nil if there is none. Of several versions it is the one that
// is stored.
func find(resources []Resource, name schema.GroupResource) *Resource {
	var found *Resource
	for i := range resources {
		if r := &resources[i]; r.resource() == name && (found == nil || r.stored()) {
			found = r
		}
	}
	return found
}

// register makes a kind known, with a conversion to itself: admission converts
// objects even if there is nothing to convert.
func register(s *runtime.Scheme, kind schema.GroupVersionKind, create func() runtime.Object) {
	s.AddKnownTypeWithName(kind, create())
	if err := s.AddConversionFunc(create(), create(), same); err != nil {
		panic(err) // the arguments are pointers to structs, or AddKnownType had panicked
	}
}

// same converts an object into one of the same type. As other conversions it
// shares what the fields point to.
func same(in, out any, _ conversion.Scope) error {
	reflect.ValueOf(out).Elem().Set(reflect.ValueOf(in).Elem())
	return nil
}

// addConversions adds those between an alias and what it stands for, and between their
// lists.
func addConversions[Of, Alias, OfList, AliasList any](s *runtime.Scheme,
	to func(*Of, *Alias), from func(*Alias, *Of), toList func(*OfList, *AliasList), fromList func(*AliasList, *OfList),
) error {
	return errors.Join(addConversion(s, to), addConversion(s, from), addConversion(s, toList), addConversion(s, fromList))
}

func addConversion[In, Out any](s *runtime.Scheme, convert func(*In, *Out)) error {
	return s.AddConversionFunc((*In)(nil), (*Out)(nil), func(in, out any, _ conversion.Scope) error {
		convert(in.(*In), out.(*Out))
		return nil
	})
}

func convertAll[From, To any](items []From, convert func(*From, *To)) []To {
	if items == nil {
		return nil
	}
	out := make([]To, len(items))
	for i := range items {
		convert(&items[i], &out[i])
	}
	return out
}

// internal is the internal version of a group.
func internal(group string) schema.GroupVersion {
	return schema.GroupVersion{Group: group, Version: runtime.APIVersionInternal}
}

// internalize makes the types of one resource the internal ones of another.
func internalize(s *runtime.Scheme, r, types *Resource) {
	s.AddKnownTypeWithName(internal(r.Group).WithKind(r.Kind), types.New())
	if types.NewList != nil {
		s.AddKnownTypeWithName(internal(r.Group).WithKind(r.Kind+"List"), types.NewList())
	}
}

// addSelectors says which fields of r can be selected by, and what they are
// called in the resource that holds its objects. Without any of its own, a
// resource has those that all have.
func addSelectors(s *runtime.Scheme, r, of *Resource) error {
	if of.Fields == nil {
		return nil
	}
	// Found out with the first selector: the fields of an empty object are expressions,
	// and compiling those of all kinds takes longer than serving them.
	names := sync.OnceValue(func() map[string]string {
		names := map[string]string{"metadata.name": "metadata.name"}
		if r.Namespaced {
			names["metadata.namespace"] = "metadata.namespace"
		}
		if r.selectors != nil {
			maps.Copy(names, r.selectors)
			return names
		}
		for name := range of.Fields(of.New()) {
			names[name] = name
		}
		return names
	})
	return s.AddFieldLabelConversionFunc(r.version().WithKind(r.Kind), func(label, value string) (string, string, error) {
		if name, ok := names()[label]; ok {
			return name, value, nil
		}
		return "", "", fmt.Errorf("field label not supported: %s", label)
	})
}

// newCodecs returns what requests are read and answers are written with.
func newCodecs(s *runtime.Scheme) serializer.CodecFactory {
	return serializer.NewCodecFactory(s,
		serializer.WithStreamingCollectionEncodingToJSON(), serializer.WithStreamingCollectionEncodingToProtobuf())
}
