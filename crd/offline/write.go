package offline

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/validation"
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

// Create validates a new object. Namespace is the one of the request. The object is
// changed to what a server stores.
func (k *Kind) Create(obj runtime.Object, namespace string) Answer {
	k.fill(obj)
	m := kinds.Metadata(obj)
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
	w := k.prepare(obj, nil, (*kinds.Kind).Prepare)
	answer.Errors = append(validation.ValidateObjectMetaAccessor(m, k.Namespaced, k.name, field.NewPath("metadata")), w.errors("")...)
	if len(answer.Errors) == 0 {
		answer.Warnings = append(answer.Warnings, w.warnings()...)
	}
	return answer
}

// Update validates a change of an object. Subresource is the one that it is written
// through: "" or "status". Both objects are changed.
func (k *Kind) Update(obj, old runtime.Object, subresource, namespace string) Answer {
	k.fill(obj)
	k.fill(old)
	m, before := kinds.Metadata(obj), kinds.Metadata(old)
	answer := Answer{Warnings: request.ChangedMetadata(m, before, k.Namespaced, namespace)}
	steps := (*kinds.Kind).Prepare
	if subresource == "status" {
		steps = (*kinds.Kind).PrepareStatus
	}
	w := k.prepare(obj, old, steps)
	request.KeepMetadata(m, before)
	answer.Errors = append(request.UpdateErrors(m, before, k.Namespaced), w.errors(subresource)...)
	if len(answer.Errors) == 0 {
		answer.Warnings = append(answer.Warnings, w.warnings()...)
	}
	return answer
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
	m := kinds.Tree(obj)
	changed, err := k.data.Default(m)
	must(err)
	if changed {
		kinds.Assign(m, obj)
	}
}

// write is a prepared write as the rules read it.
type write struct {
	kind         *Kind
	obj          runtime.Object
	tree, before map[string]any // nil if the rules are not known; before is nil for new objects
}

// prepare takes the steps of crd/kinds before validation: Prepare or PrepareStatus.
func (k *Kind) prepare(obj, old runtime.Object, steps func(k *kinds.Kind, tree, old map[string]any) (bool, error)) write {
	w := write{kind: k, obj: obj}
	if k.data == nil {
		return w
	}
	w.tree = kinds.Tree(obj)
	if old != nil {
		w.before = kinds.Tree(old)
	}
	changed, err := steps(k.data, w.tree, w.before)
	must(err)
	if changed {
		kinds.Assign(w.tree, obj)
	}
	return w
}

// errors returns the errors of the rules of the kind.
func (w write) errors(subresource string) field.ErrorList {
	if w.tree == nil {
		return nil
	}
	errs := w.kind.data.Validate(w.tree, w.before, subresource)
	if !w.kind.data.AnyFinalizer {
		errs = append(errs, request.QualifiedFinalizers(kinds.Metadata(w.obj))...)
	}
	return errs
}

// warnings returns the texts for the client.
func (w write) warnings() []string {
	if w.tree == nil {
		return nil
	}
	return w.kind.data.Warnings(w.tree, w.before)
}
