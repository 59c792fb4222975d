package chain

import (
	"context"
	"errors"
	"fmt"
	"io"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/initializer"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// ownersName is what the plugin is called in Kubernetes.
const ownersName = "OwnerReferencesPermissionEnforcement"

// owners prevents privilege escalation by owner references. A user who changes them
// needs the right to delete the object. A user who blocks the deletion of an owner
// (blockOwnerDeletion) needs the right to set finalizers on the owner.
//
// Without owner references it costs a read of the metadata; with unchanged ones, a
// comparison.
type owners struct {
	*admission.Handler
	authorizer authorizer.UnconditionalAuthorizer
	mapper     meta.RESTMapper
}

var (
	_ admission.ValidationInterface            = (*owners)(nil)
	_ initializer.WantsUnconditionalAuthorizer = (*owners)(nil)
	_ initializer.WantsRESTMapper              = (*owners)(nil)
)

func newOwners(io.Reader) (admission.Interface, error) {
	return &owners{Handler: admission.NewHandler(admission.Create, admission.Update)}, nil
}

// SetUnconditionalAuthorizer implements initializer.WantsUnconditionalAuthorizer.
func (p *owners) SetUnconditionalAuthorizer(a authorizer.UnconditionalAuthorizer) { p.authorizer = a }

// SetRESTMapper implements initializer.WantsRESTMapper.
func (p *owners) SetRESTMapper(m meta.RESTMapper) { p.mapper = m }

// ValidateInitialization implements admission.InitializationValidator.
func (p *owners) ValidateInitialization() error {
	if p.authorizer == nil || p.mapper == nil {
		return errors.New("the admission plugin " + ownersName + " needs an authorizer and a mapper")
	}
	return nil
}

// Validate implements admission.ValidationInterface.
func (p *owners) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	now, ok := ownersIn(a.GetObject())
	if !ok {
		return nil
	}
	before, ok := ownersIn(a.GetOldObject())
	if !ok && a.GetOldObject() != nil || len(now) == 0 && len(before) == 0 || equality.Semantic.DeepEqual(now, before) {
		return nil
	}
	// A create needs no right to delete: owner references of a new object delete nothing
	// that existed before.
	if a.GetOperation() != admission.Create {
		decision, reason, err := p.authorizer.Authorize(ctx, authorizer.AttributesRecord{
			User: a.GetUserInfo(), Verb: "delete", ResourceRequest: true,
			APIGroup: a.GetResource().Group, APIVersion: a.GetResource().Version, Resource: a.GetResource().Resource,
			Subresource: a.GetSubresource(), Namespace: a.GetNamespace(), Name: a.GetName(),
		})
		if decision != authorizer.DecisionAllow {
			return admission.NewForbidden(a, fmt.Errorf("cannot set an ownerRef on a resource you can't delete: %v, %v", reason, err))
		}
	}
	if blocking := newlyBlocking(now, before); len(blocking) > 0 {
		return p.finalize(ctx, a, blocking)
	}
	return nil
}

// finalize refuses references to owners on which the user may not set finalizers.
func (p *owners) finalize(ctx context.Context, a admission.Attributes, blocking []metav1.OwnerReference) error {
	right := authorizer.AttributesRecord{
		User: a.GetUserInfo(), Verb: "update", ResourceRequest: true,
		APIGroup: "*", APIVersion: "*", Resource: "*", Subresource: "finalizers", Name: "*",
	}
	// Controllers with rights to all resources need no lookup of kinds.
	if decision, _, _ := p.authorizer.Authorize(ctx, right); decision == authorizer.DecisionAllow {
		return nil
	}
	for _, ref := range blocking {
		mappings, err := p.mappings(ref)
		if err != nil {
			return admission.NewForbidden(a, fmt.Errorf("cannot set blockOwnerDeletion in this case because cannot find RESTMapping for APIVersion %s Kind %s: %w", ref.APIVersion, ref.Kind, err))
		}
		for _, m := range mappings {
			right.APIGroup, right.APIVersion, right.Resource = m.Resource.Group, m.Resource.Version, m.Resource.Resource
			right.Name, right.Namespace = ref.Name, ""
			if m.Scope.Name() == meta.RESTScopeNameNamespace {
				right.Namespace = a.GetNamespace() // an owner is in the namespace of what it owns
			}
			decision, reason, err := p.authorizer.Authorize(ctx, right)
			if decision != authorizer.DecisionAllow {
				return admission.NewForbidden(a, fmt.Errorf("cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't set finalizers on: %v, %v", reason, err))
			}
		}
	}
	return nil
}

func (p *owners) mappings(ref metav1.OwnerReference) ([]*meta.RESTMapping, error) {
	version, err := schema.ParseGroupVersion(ref.APIVersion)
	if err != nil {
		return nil, err
	}
	return p.mapper.RESTMappings(schema.GroupKind{Group: version.Group, Kind: ref.Kind}, version.Version)
}

// ownersIn returns the owner references of an object that has metadata.
func ownersIn(obj runtime.Object) ([]metav1.OwnerReference, bool) {
	if obj == nil {
		return nil, false
	}
	m, err := meta.Accessor(obj)
	if err != nil {
		return nil, false
	}
	return m.GetOwnerReferences(), true
}

// newlyBlocking returns the references that block the deletion of their owner and
// did not before.
func newlyBlocking(now, before []metav1.OwnerReference) []metav1.OwnerReference {
	was := map[string]bool{}
	for _, ref := range before {
		was[string(ref.UID)] = blocks(ref) // as in Kubernetes, the last of several counts
	}
	var list []metav1.OwnerReference
	for _, ref := range now {
		if blocks(ref) && !was[string(ref.UID)] {
			list = append(list, ref)
		}
	}
	return list
}

func blocks(ref metav1.OwnerReference) bool {
	return ref.BlockOwnerDeletion != nil && *ref.BlockOwnerDeletion
}
