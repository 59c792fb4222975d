package offline

import (
	"fmt"
	"reflect"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/espalier-dev/espalier/crd/kinds"
	"github.com/espalier-dev/espalier/crd/request"
)

// Answer is what an API server answers to a write.
type Answer struct {
	Errors field.ErrorList
	// Warnings are texts for the client of an object without errors.
	Warnings []string
}

// Meta is the metadata of an object of k8s.io/api. All of them have metadata.
func Meta(obj runtime.Object) metav1.Object {
	m, err := meta.Accessor(obj)
	if err != nil {
		panic(fmt.Sprintf("offline: a %T has no metadata: %v", obj, err))
	}
	return m
}

// Create validates a new object. Namespace is the one of the request. The object is
// changed to what a server stores.
func (k *Kind) Create(obj runtime.Object, namespace string) Answer {
	k.fill(obj)
	m := Meta(obj)
	answer := Answer{Warnings: request.NewMetadata(m, k.Namespaced, namespace)}
	if s, ok := obj.(*corev1.Service); ok {
		SyncServiceIPs(s)
		if answer.Errors = ServiceAddressErrors(s); len(answer.Errors) == 0 && s.Spec.Type != corev1.ServiceTypeExternalName {
			answer.Errors = ServicePolicyErrors(s)
		}
		if len(answer.Errors) > 0 {
			return answer // before anything else is validated
		}
	}
	k.prepare(obj, nil, (*kinds.Kind).Prepare)
	path := field.NewPath("metadata")
	answer.Errors = append(validation.ValidateObjectMetaAccessor(m, k.Namespaced, k.name, path), k.validate(obj, nil, "")...)
	if len(answer.Errors) == 0 && k.data != nil {
		answer.Warnings = append(answer.Warnings, k.data.Warnings(tree(obj), nil)...)
	}
	return answer
}

// Update validates a change of an object. Subresource is the one that it is written
// through: "" or "status". Both objects are changed.
func (k *Kind) Update(obj, old runtime.Object, subresource, namespace string) Answer {
	k.fill(obj)
	k.fill(old)
	m, before := Meta(obj), Meta(old)
	answer := Answer{Warnings: request.ChangedMetadata(m, before, k.Namespaced, namespace)}
	if subresource == "status" {
		k.prepare(obj, old, (*kinds.Kind).PrepareStatus)
	} else {
		k.prepare(obj, old, (*kinds.Kind).Prepare)
	}
	request.KeepMetadata(m, before)
	answer.Errors = append(request.UpdateErrors(m, before, k.Namespaced), k.validate(obj, old, subresource)...)
	if len(answer.Errors) == 0 && k.data != nil {
		answer.Warnings = append(answer.Warnings, k.data.Warnings(tree(obj), tree(old))...)
	}
	return answer
}

// tree is an object as crd/kinds has it.
func tree(obj runtime.Object) map[string]any {
	m, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		panic(fmt.Sprintf("offline: a %T cannot be converted to a tree: %v", obj, err)) // all types of k8s.io/api can
	}
	return m
}

// assign sets an object to a tree that was made of one like it.
func assign(m map[string]any, obj runtime.Object) {
	fresh := reflect.New(reflect.TypeOf(obj).Elem())
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(m, fresh.Interface()); err != nil {
		panic(fmt.Sprintf("offline: a tree cannot be converted to a %T: %v", obj, err))
	}
	reflect.ValueOf(obj).Elem().Set(fresh.Elem())
}

// must is for expressions of the files of crd/kinds: a test evaluates all of them.
func must(err error) {
	if err != nil {
		panic(fmt.Sprintf("offline: %v", err))
	}
}

// fill sets defaults.
func (k *Kind) fill(obj runtime.Object) {
	if k.data == nil {
		return
	}
	m := tree(obj)
	changed, err := k.data.Default(m)
	must(err)
	if changed {
		assign(m, obj)
	}
}

// prepare takes the steps of crd/kinds before validation: Prepare or PrepareStatus.
func (k *Kind) prepare(obj, old runtime.Object, steps func(k *kinds.Kind, tree, old map[string]any) (bool, error)) {
	if k.data == nil {
		return
	}
	m, before := tree(obj), map[string]any(nil)
	if old != nil {
		before = tree(old)
	}
	changed, err := steps(k.data, m, before)
	must(err)
	if changed {
		assign(m, obj)
	}
}

// validate returns the errors of the rules of the kind.
func (k *Kind) validate(obj, old runtime.Object, subresource string) field.ErrorList {
	if k.data == nil {
		return nil
	}
	var before map[string]any
	if old != nil {
		before = tree(old)
	}
	errs := k.data.Validate(tree(obj), before, subresource)
	if !k.data.AnyFinalizer {
		errs = append(errs, request.QualifiedFinalizers(Meta(obj))...)
	}
	return errs
}
