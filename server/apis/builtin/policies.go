package builtin

import (
	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/espalier-dev/espalier/crd/rules"
)

// The policies of admissionregistration.k8s.io and their bindings.
//
// Expressions are compiled when a policy is written, with objects and parameters
// of unknown type. kube-apiserver's controller also checks expressions against the
// types that a policy matches, and writes warnings to status.typeChecking. This server
// does not: the warnings are hints for authors, and nothing waits for them. A status
// that a client writes is kept.

func validatingAdmissionPolicies() Resource {
	type policy = admissionv1.ValidatingAdmissionPolicy
	r := admissionResource("validatingadmissionpolicies", "validatingadmissionpolicy", &rules.ValidatingAdmissionPolicy)
	r.New, r.NewList = empty[policy], empty[admissionv1.ValidatingAdmissionPolicyList]
	r.Columns = policyColumns("Validations", "Validations indicates the number of validation rules defined in this configuration")
	r.Row = row(func(p *policy) []any {
		return []any{p.Name, int64(len(p.Spec.Validations)), kindCell(p.Spec.ParamKind), created(p)}
	})
	withStatus(&r, rules.ValidatingAdmissionPolicy.Status)
	return r
}

func mutatingAdmissionPolicies() Resource {
	type policy = admissionv1.MutatingAdmissionPolicy
	r := admissionResource("mutatingadmissionpolicies", "mutatingadmissionpolicy", &rules.MutatingAdmissionPolicy)
	r.New, r.NewList = empty[policy], empty[admissionv1.MutatingAdmissionPolicyList]
	r.Columns = policyColumns("Mutations", "Mutation indicates the number of mutations rules defined in this configuration")
	r.Row = row(func(p *policy) []any {
		return []any{p.Name, int64(len(p.Spec.Mutations)), kindCell(p.Spec.ParamKind), created(p)}
	})
	return r
}

func validatingAdmissionPolicyBindings() Resource {
	type binding = admissionv1.ValidatingAdmissionPolicyBinding
	r := admissionResource("validatingadmissionpolicybindings", "validatingadmissionpolicybinding", &rules.ValidatingAdmissionPolicyBinding)
	r.New, r.NewList = empty[binding], empty[admissionv1.ValidatingAdmissionPolicyBindingList]
	r.Columns, r.Row = policyBindingColumns, row(func(b *binding) []any {
		return []any{b.Name, b.Spec.PolicyName, paramCell(b.Spec.ParamRef), created(b)}
	})
	return r
}

func mutatingAdmissionPolicyBindings() Resource {
	type binding = admissionv1.MutatingAdmissionPolicyBinding
	r := admissionResource("mutatingadmissionpolicybindings", "mutatingadmissionpolicybinding", &rules.MutatingAdmissionPolicyBinding)
	r.New, r.NewList = empty[binding], empty[admissionv1.MutatingAdmissionPolicyBindingList]
	r.Columns, r.Row = policyBindingColumns, row(func(b *binding) []any {
		return []any{b.Name, b.Spec.PolicyName, paramCell(b.Spec.ParamRef), created(b)}
	})
	return r
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
	{Name: "ParamRef", Type: "string", Description: "ParamRef indicates the param resource which sets the configuration param"},
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
