package rules

import (
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Rules are the rules of a kind. All functions but Name may be nil. Old is nil for new
// objects.
type Rules struct {
	schema.GroupVersionKind
	Namespaced bool
	// Name validates a name, or the prefix of one.
	Name func(name string, prefix bool) []string
	// AnyFinalizer accepts finalizers without a domain. LooseGenerateName accepts any
	// metadata.generateName in changed objects.
	AnyFinalizer, LooseGenerateName bool
	// MetadataLast is whether the metadata of new objects is validated only if they have
	// no other errors.
	MetadataLast bool
	// Generation reports whether an update increments metadata.generation. If nil, objects
	// have none.
	Generation func(obj, old runtime.Object) bool
	// Default sets defaults in objects from clients and from storage.
	Default func(obj runtime.Object)
	// Prepare drops and sets the fields that clients may not set.
	Prepare func(obj, old runtime.Object)
	// Validate validates an object without its metadata.
	Validate func(obj, old runtime.Object) field.ErrorList
	// Warn returns warnings for the client.
	Warn func(obj runtime.Object) []string
	// Status are the rules of writes through the subresource status, nil if there is none.
	Status *StatusRules
}

// StatusRules are the rules of writes of a status.
type StatusRules struct {
	Prepare  func(obj, old runtime.Object)
	Validate func(obj, old runtime.Object) field.ErrorList
}

// All returns the rules of all kinds.
func All() []*Rules {
	return []*Rules{
		&ConfigMap, &Secret, &ServiceAccount, &Namespace, &ResourceQuota, &CoreEvent, &Event, &Lease,
		&Role, &RoleBinding, &ClusterRole, &ClusterRoleBinding, &FlowSchema, &PriorityLevelConfiguration, &CertificateSigningRequest, &APIService,
		&ValidatingAdmissionPolicy, &ValidatingAdmissionPolicyBinding, &ValidatingWebhookConfiguration,
		&MutatingAdmissionPolicy, &MutatingAdmissionPolicyBinding, &MutatingWebhookConfiguration,
	}
}

// filled makes a value for Rules.Default from a function of the kind's Go type.
func filled[P runtime.Object](fill func(obj P)) func(runtime.Object) {
	return func(obj runtime.Object) { fill(obj.(P)) }
}

// validated makes a value for Rules.Validate. What an object was before does not matter.
func validated[P runtime.Object](validate func(obj P) field.ErrorList) func(obj, old runtime.Object) field.ErrorList {
	return func(obj, _ runtime.Object) field.ErrorList { return validate(obj.(P)) }
}

// compared makes a value for Rules.Validate. A new object is compared with nil.
func compared[P runtime.Object](validate func(obj, old P) field.ErrorList) func(obj, old runtime.Object) field.ErrorList {
	return func(obj, old runtime.Object) field.ErrorList {
		before, _ := old.(P)
		return validate(obj.(P), before)
	}
}

// counted makes a value for Rules.Generation: it counts the changes of a part.
func counted[P runtime.Object](part func(obj P) any) func(obj, old runtime.Object) bool {
	return func(obj, old runtime.Object) bool {
		return !equality.Semantic.DeepEqual(part(obj.(P)), part(old.(P)))
	}
}

// WithStatus completes the rules of a kind with a status: through the subresource nothing
// but the status is written, and elsewhere everything but the status.
func WithStatus[P interface {
	runtime.Object
	metav1.Object
}, Spec, Status any](r Rules, validate func(*Status) field.ErrorList, parts func(obj P) (*Spec, *Status)) Rules {
	spec := func(obj runtime.Object) *Spec { s, _ := parts(obj.(P)); return s }
	status := func(obj runtime.Object) *Status { _, s := parts(obj.(P)); return s }
	r.Prepare = func(obj, old runtime.Object) {
		if old == nil {
			*status(obj) = *new(Status)
		} else {
			*status(obj) = *status(old)
		}
	}
	r.Status = &StatusRules{
		Prepare: func(obj, old runtime.Object) {
			*spec(obj) = *spec(old)
			metav1.ResetObjectMetaForStatus(obj.(P), old.(P))
		},
		Validate: func(obj, _ runtime.Object) field.ErrorList { return validate(status(obj)) },
	}
	return r
}

// KeepMetadata restores the metadata of an object that is written through a subresource:
// rights on it must not allow to delete an object by an owner reference, to block its
// deletion with a finalizer, or to change its labels. Annotations may change:
// Kubernetes' conformance tests write one with the status.
func KeepMetadata(o, old metav1.Object) {
	annotations := o.GetAnnotations()
	metav1.ResetObjectMetaForStatus(o, old)
	o.SetAnnotations(annotations)
}

// DefaultPointer fills in a value that is left out.
func DefaultPointer[T any](p **T, value T) {
	if *p == nil {
		*p = &value
	}
}
