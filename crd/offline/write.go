package offline

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

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
	k.prepare(obj, nil)
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
		k.prepareStatus(obj, old)
	} else {
		k.prepare(obj, old)
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

// prepare drops and restores what clients may not write.
func (k *Kind) prepare(obj, old runtime.Object) {
	if k.data == nil {
		return
	}
	m, before := tree(obj), map[string]any(nil)
	if old != nil {
		before = tree(old)
	}
	switch {
	case k.Status && old != nil:
		restore(m, before, "status")
	case k.Status && !k.data.StatusOnCreate:
		delete(m, "status")
	}
	_, err := k.data.Prepare(m, before)
	must(err)
	assign(m, obj)
}

// prepareStatus restores what a write of the status may not change.
func (k *Kind) prepareStatus(obj, old runtime.Object) {
	if k.data == nil {
		return
	}
	m, before := tree(obj), tree(old)
	for name := range m {
		if name != "status" && name != "metadata" && name != "kind" && name != "apiVersion" {
			restore(m, before, name)
		}
	}
	for _, path := range k.data.StatusKeeps {
		if path != "metadata" {
			restore(m, before, path)
		}
	}
	_, err := k.data.PrepareStatus(m, before)
	must(err)
	assign(m, obj)
	if slices.Contains(k.data.StatusKeeps, "metadata") {
		metav1.ResetObjectMetaForStatus(Meta(obj), Meta(old))
	}
}

// restore sets a field, as metadata.labels, to what it was.
func restore(m, before map[string]any, path string) {
	name, rest, below := strings.Cut(path, ".")
	if !below {
		if value, ok := before[name]; ok {
			m[name] = value
		} else {
			delete(m, name)
		}
		return
	}
	inner, ok := m[name].(map[string]any)
	if !ok {
		inner = map[string]any{}
		m[name] = inner
	}
	innerBefore, _ := before[name].(map[string]any)
	restore(inner, innerBefore, rest)
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
	return append(k.data.Validate(tree(obj), before, subresource), QualifiedFinalizers(obj)...)
}

// QualifiedFinalizers returns errors for finalizers in the metadata that have no domain.
func QualifiedFinalizers(obj runtime.Object) field.ErrorList {
	var errs field.ErrorList
	for i, name := range Meta(obj).GetFinalizers() {
		if !strings.Contains(name, "/") && !slices.Contains(standardFinalizers, name) {
			errs = append(errs, field.Invalid(field.NewPath("metadata", "finalizers").Index(i), name, "name is neither a standard finalizer name nor is it fully qualified"))
		}
	}
	return errs
}

// standardFinalizers need no domain.
var standardFinalizers = []string{"kubernetes", metav1.FinalizerOrphanDependents, metav1.FinalizerDeleteDependents}
