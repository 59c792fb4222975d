package offline

import (
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
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
	if p, ok := obj.(*corev1.Pod); ok {
		answer.Warnings = append(answer.Warnings, SyncAppArmor(p)...)
	}
	job, ok := obj.(*batchv1.Job)
	shared := ok && len(job.Labels) == 0
	if k.counted() {
		m.SetGeneration(1)
	}
	w := k.prepare(obj, nil, "")
	if shared {
		CopyJobLabels(job)
	}
	answer.Errors = w.errors()
	if len(answer.Errors) == 0 || !k.metadataLast() {
		errs := validation.ValidateObjectMetaAccessor(m, k.Namespaced, k.name, field.NewPath("metadata"))
		answer.Errors = append(errs, answer.Errors...)
	}
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
	w := k.prepare(obj, old, subresource)
	request.KeepMetadata(m, before)
	answer.Errors = append(request.UpdateErrors(m, before, k.Namespaced), w.errors()...)
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
	switch {
	case k.data != nil:
		m := kinds.Tree(obj)
		changed, err := k.data.Default(m)
		must(err)
		if changed {
			kinds.Assign(m, obj)
		}
	case k.code.Default != nil:
		k.code.Default(obj)
	}
}

// write is a prepared write.
type write struct {
	kind         *Kind
	subresource  string
	obj, old     runtime.Object // old is nil for new objects
	tree, before map[string]any // as crd/kinds reads them, nil if crd/rules has the rules
}

// prepare drops and sets the fields that clients may not set.
func (k *Kind) prepare(obj, old runtime.Object, subresource string) write {
	w := write{kind: k, subresource: subresource, obj: obj, old: old}
	switch {
	case k.data != nil:
		w.tree = kinds.Tree(obj)
		if old != nil {
			w.before = kinds.Tree(old)
		}
		steps := k.data.Prepare
		if subresource == "status" {
			steps = k.data.PrepareStatus
		}
		changed, err := steps(w.tree, w.before)
		must(err)
		if changed {
			kinds.Assign(w.tree, obj)
		}
	case subresource == "status":
		k.code.Status.Prepare(obj, old)
	case k.code.Prepare != nil:
		k.code.Prepare(obj, old)
	}
	return w
}

// errors returns the errors of the rules of the kind.
func (w write) errors() field.ErrorList {
	var errs field.ErrorList
	k := w.kind
	if k.qualifiedFinalizers(w.subresource) {
		errs = request.QualifiedFinalizers(kinds.Metadata(w.obj))
	}
	if w.old != nil && k.strictGenerateName(w.subresource) {
		errs = append(errs, request.GenerateNameErrors(kinds.Metadata(w.obj), k.name)...)
	}
	switch {
	case k.data != nil:
		errs = append(errs, k.data.Validate(w.tree, w.before, w.subresource)...)
	case w.subresource == "status":
		errs = append(errs, k.code.Status.Validate(w.obj, w.old)...)
	case k.code.Validate != nil:
		errs = append(errs, k.code.Validate(w.obj, w.old)...)
	}
	return errs
}

// counted reports whether changes are counted in metadata.generation.
func (k *Kind) counted() bool {
	if k.data != nil {
		return len(k.data.Generation) > 0
	}
	return k.code.Generation != nil
}

// metadataLast reports whether metadata is validated only in objects without other errors.
func (k *Kind) metadataLast() bool {
	if k.data != nil {
		return k.data.MetadataLast
	}
	return k.code.MetadataLast
}

// qualifiedFinalizers reports whether finalizers need a domain.
func (k *Kind) qualifiedFinalizers(subresource string) bool {
	if k.data != nil {
		return !k.data.AnyFinalizer
	}
	return !k.code.AnyFinalizer && subresource == ""
}

// strictGenerateName reports whether metadata.generateName of changed objects is validated.
func (k *Kind) strictGenerateName(subresource string) bool {
	if subresource != "" {
		return false
	}
	if k.data != nil {
		return k.data.GenerateName == "always"
	}
	return !k.code.LooseGenerateName
}

// warnings returns the texts for the client.
func (w write) warnings() []string {
	switch k := w.kind; {
	case w.subresource != "":
	case k.data != nil:
		return k.data.Warnings(w.tree, w.before)
	case k.code.Warn != nil:
		return k.code.Warn(w.obj)
	}
	return nil
}
