package builtin

import (
	"context"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
)

// The policies of admissionregistration.k8s.io and their bindings.
//
// Expressions are compiled when a policy is written, with objects and parameters
// of unknown type. What kube-apiserver's controller does on top of that, which is
// to check expressions against the types that a policy matches and to leave
// warnings in status.typeChecking, is not done: they are hints for authors, and
// nothing waits for them. Who writes such a status finds it kept.

func validatingAdmissionPolicies() Resource {
	r := admissionResource("validatingadmissionpolicies", "validatingadmissionpolicy", "ValidatingAdmissionPolicy")
	r.New = func() runtime.Object { return &admissionv1.ValidatingAdmissionPolicy{} }
	r.NewList = func() runtime.Object { return &admissionv1.ValidatingAdmissionPolicyList{} }
	r.Columns = policyColumns("Validations", "Validations indicates the number of validation rules defined in this configuration")
	r.Row = func(obj runtime.Object) []any {
		p := obj.(*admissionv1.ValidatingAdmissionPolicy)
		return []any{p.Name, int64(len(p.Spec.Validations)), kindCell(p.Spec.ParamKind), created(p)}
	}
	r.Rules.Default = func(obj runtime.Object) {
		spec := &obj.(*admissionv1.ValidatingAdmissionPolicy).Spec
		defaultPointer(&spec.FailurePolicy, admissionv1.Fail)
		defaultMatchResources(spec.MatchConstraints)
	}
	r.Rules.Create = func(_ context.Context, obj runtime.Object) {
		obj.(*admissionv1.ValidatingAdmissionPolicy).Status = admissionv1.ValidatingAdmissionPolicyStatus{}
	}
	r.Rules.Update = func(_ context.Context, obj, old runtime.Object) {
		obj.(*admissionv1.ValidatingAdmissionPolicy).Status = old.(*admissionv1.ValidatingAdmissionPolicy).Status
	}
	r.Rules.Validate = func(_ context.Context, obj runtime.Object) field.ErrorList {
		return validateValidatingPolicy(obj.(*admissionv1.ValidatingAdmissionPolicy), nil)
	}
	r.Rules.ValidateUpdate = func(_ context.Context, obj, old runtime.Object) field.ErrorList {
		return validateValidatingPolicy(obj.(*admissionv1.ValidatingAdmissionPolicy), old.(*admissionv1.ValidatingAdmissionPolicy))
	}
	r.Rules.Generation = func(obj, old runtime.Object) bool {
		return !equality.Semantic.DeepEqual(obj.(*admissionv1.ValidatingAdmissionPolicy).Spec, old.(*admissionv1.ValidatingAdmissionPolicy).Spec)
	}
	r.Rules.Reset = ResetFields("admissionregistration.k8s.io/v1", "status")
	r.Subresources = map[string]func(*genericregistry.Store) rest.Storage{"status": Part(validatingPolicyStatus())}
	return r
}

// validatingPolicyStatus are the rules of the status, which changes nothing else.
func validatingPolicyStatus() Rules {
	return Rules{
		Update: func(_ context.Context, obj, old runtime.Object) {
			p, before := obj.(*admissionv1.ValidatingAdmissionPolicy), old.(*admissionv1.ValidatingAdmissionPolicy)
			p.Spec = before.Spec
			metav1.ResetObjectMetaForStatus(p, before)
		},
		ValidateUpdate: func(_ context.Context, obj, _ runtime.Object) field.ErrorList {
			return validateValidatingPolicyStatus(&obj.(*admissionv1.ValidatingAdmissionPolicy).Status)
		},
		Reset: ResetFields("admissionregistration.k8s.io/v1", "metadata", "spec"),
	}
}

func mutatingAdmissionPolicies() Resource {
	r := admissionResource("mutatingadmissionpolicies", "mutatingadmissionpolicy", "MutatingAdmissionPolicy")
	r.New = func() runtime.Object { return &admissionv1.MutatingAdmissionPolicy{} }
	r.NewList = func() runtime.Object { return &admissionv1.MutatingAdmissionPolicyList{} }
	r.Columns = policyColumns("Mutations", "Mutation indicates the number of mutations rules defined in this configuration")
	r.Row = func(obj runtime.Object) []any {
		p := obj.(*admissionv1.MutatingAdmissionPolicy)
		return []any{p.Name, int64(len(p.Spec.Mutations)), kindCell(p.Spec.ParamKind), created(p)}
	}
	// The reinvocation policy has no default: authors shall have thought of it.
	r.Rules.Default = func(obj runtime.Object) {
		spec := &obj.(*admissionv1.MutatingAdmissionPolicy).Spec
		defaultPointer(&spec.FailurePolicy, admissionv1.Fail)
		defaultMatchResources(spec.MatchConstraints)
	}
	r.Rules.Validate = func(_ context.Context, obj runtime.Object) field.ErrorList {
		return validateMutatingPolicy(obj.(*admissionv1.MutatingAdmissionPolicy), nil)
	}
	r.Rules.ValidateUpdate = func(_ context.Context, obj, old runtime.Object) field.ErrorList {
		return validateMutatingPolicy(obj.(*admissionv1.MutatingAdmissionPolicy), old.(*admissionv1.MutatingAdmissionPolicy))
	}
	r.Rules.Generation = func(obj, old runtime.Object) bool {
		return !equality.Semantic.DeepEqual(obj.(*admissionv1.MutatingAdmissionPolicy).Spec, old.(*admissionv1.MutatingAdmissionPolicy).Spec)
	}
	return r
}

func validatingAdmissionPolicyBindings() Resource {
	r := admissionResource("validatingadmissionpolicybindings", "validatingadmissionpolicybinding", "ValidatingAdmissionPolicyBinding")
	r.New = func() runtime.Object { return &admissionv1.ValidatingAdmissionPolicyBinding{} }
	r.NewList = func() runtime.Object { return &admissionv1.ValidatingAdmissionPolicyBindingList{} }
	r.Columns = policyBindingColumns
	r.Row = func(obj runtime.Object) []any {
		b := obj.(*admissionv1.ValidatingAdmissionPolicyBinding)
		return []any{b.Name, b.Spec.PolicyName, paramCell(b.Spec.ParamRef), created(b)}
	}
	r.Rules.Default = func(obj runtime.Object) {
		spec := &obj.(*admissionv1.ValidatingAdmissionPolicyBinding).Spec
		defaultPolicyBinding(spec.ParamRef, spec.MatchResources)
	}
	r.Rules.Validate = func(_ context.Context, obj runtime.Object) field.ErrorList {
		return validateValidatingPolicyBinding(obj.(*admissionv1.ValidatingAdmissionPolicyBinding))
	}
	r.Rules.ValidateUpdate = func(_ context.Context, obj, _ runtime.Object) field.ErrorList {
		return validateValidatingPolicyBinding(obj.(*admissionv1.ValidatingAdmissionPolicyBinding))
	}
	r.Rules.Generation = func(obj, old runtime.Object) bool {
		return !equality.Semantic.DeepEqual(obj.(*admissionv1.ValidatingAdmissionPolicyBinding).Spec, old.(*admissionv1.ValidatingAdmissionPolicyBinding).Spec)
	}
	return r
}

func mutatingAdmissionPolicyBindings() Resource {
	r := admissionResource("mutatingadmissionpolicybindings", "mutatingadmissionpolicybinding", "MutatingAdmissionPolicyBinding")
	r.New = func() runtime.Object { return &admissionv1.MutatingAdmissionPolicyBinding{} }
	r.NewList = func() runtime.Object { return &admissionv1.MutatingAdmissionPolicyBindingList{} }
	r.Columns = policyBindingColumns
	r.Row = func(obj runtime.Object) []any {
		b := obj.(*admissionv1.MutatingAdmissionPolicyBinding)
		return []any{b.Name, b.Spec.PolicyName, paramCell(b.Spec.ParamRef), created(b)}
	}
	r.Rules.Default = func(obj runtime.Object) {
		spec := &obj.(*admissionv1.MutatingAdmissionPolicyBinding).Spec
		defaultPolicyBinding(spec.ParamRef, spec.MatchResources)
	}
	r.Rules.Validate = func(_ context.Context, obj runtime.Object) field.ErrorList {
		return validateMutatingPolicyBinding(obj.(*admissionv1.MutatingAdmissionPolicyBinding))
	}
	r.Rules.ValidateUpdate = func(_ context.Context, obj, _ runtime.Object) field.ErrorList {
		return validateMutatingPolicyBinding(obj.(*admissionv1.MutatingAdmissionPolicyBinding))
	}
	r.Rules.Generation = func(obj, old runtime.Object) bool {
		return !equality.Semantic.DeepEqual(obj.(*admissionv1.MutatingAdmissionPolicyBinding).Spec, old.(*admissionv1.MutatingAdmissionPolicyBinding).Spec)
	}
	return r
}

func defaultMatchResources(m *admissionv1.MatchResources) {
	if m == nil {
		return
	}
	defaultPointer(&m.MatchPolicy, admissionv1.Equivalent)
	defaultPointer(&m.NamespaceSelector, metav1.LabelSelector{})
	defaultPointer(&m.ObjectSelector, metav1.LabelSelector{})
	for i := range m.ResourceRules {
		defaultPointer(&m.ResourceRules[i].Scope, admissionv1.AllScopes)
	}
	for i := range m.ExcludeResourceRules {
		defaultPointer(&m.ExcludeResourceRules[i].Scope, admissionv1.AllScopes)
	}
}

func defaultPolicyBinding(ref *admissionv1.ParamRef, m *admissionv1.MatchResources) {
	if ref != nil {
		defaultPointer(&ref.ParameterNotFoundAction, admissionv1.DenyAction)
	}
	defaultMatchResources(m)
}

func policyColumns(name, description string) []metav1.TableColumnDefinition {
	return []metav1.TableColumnDefinition{
		nameColumn,
		{Name: name, Type: "integer", Description: description},
		{Name: "ParamKind", Type: "string", Description: "ParamKind specifies the kind of resources used to parameterize this policy"},
		ageColumn,
	}
}

var policyBindingColumns = []metav1.TableColumnDefinition{
	nameColumn,
	{Name: "PolicyName", Type: "string", Description: "PolicyName indicates the policy definition which the policy binding binded to"},
	{Name: "ParamRef", Type: "string", Description: "ParamRef indicates the param resource which sets the configration param"}, //nolint:misspell // as Kubernetes spells it
	ageColumn,
}

func kindCell(kind *admissionv1.ParamKind) string {
	if kind == nil {
		return "<unset>"
	}
	return kind.APIVersion + "/" + kind.Kind
}

// paramCell names the parameter. One without a namespace is in the namespace of
// the object, or in none: the binding does not say.
func paramCell(ref *admissionv1.ParamRef) string {
	switch {
	case ref == nil:
		return "<unset>"
	case ref.Name != "" && ref.Namespace != "":
		return ref.Namespace + "/" + ref.Name
	case ref.Name != "":
		return "*/" + ref.Name
	case ref.Selector != nil:
		return ref.Selector.String()
	}
	return "<unset>"
}
