package rules

import (
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/espalier-dev/espalier/crd/kinds"
	"github.com/espalier-dev/espalier/crd/rules/words"
)

// The rules of rbac.authorization.k8s.io. They do not check for privilege escalation.
var (
	Role = Rules{
		GroupVersionKind: rbacv1.SchemeGroupVersion.WithKind("Role"), Namespaced: true,
		Name: kinds.PathSegmentName, LooseGenerateName: true,
		Validate: validated(validateRole),
	}
	ClusterRole = Rules{
		GroupVersionKind: rbacv1.SchemeGroupVersion.WithKind("ClusterRole"),
		Name:             kinds.PathSegmentName, LooseGenerateName: true,
		Validate: validated(validateClusterRole),
	}
	RoleBinding = Rules{
		GroupVersionKind: rbacv1.SchemeGroupVersion.WithKind("RoleBinding"), Namespaced: true,
		Name: kinds.PathSegmentName, LooseGenerateName: true,
		Default:  filled(func(b *rbacv1.RoleBinding) { defaultBinding(&b.RoleRef, b.Subjects) }),
		Validate: compared(validateRoleBinding),
	}
	ClusterRoleBinding = Rules{
		GroupVersionKind: rbacv1.SchemeGroupVersion.WithKind("ClusterRoleBinding"),
		Name:             kinds.PathSegmentName, LooseGenerateName: true,
		Default:  filled(func(b *rbacv1.ClusterRoleBinding) { defaultBinding(&b.RoleRef, b.Subjects) }),
		Validate: compared(validateClusterRoleBinding),
	}
)

func defaultBinding(ref *rbacv1.RoleRef, subjects []rbacv1.Subject) {
	if ref.APIGroup == "" {
		ref.APIGroup = rbacv1.GroupName
	}
	for i := range subjects {
		s := &subjects[i]
		if s.APIGroup == "" && (s.Kind == rbacv1.UserKind || s.Kind == rbacv1.GroupKind) {
			s.APIGroup = rbacv1.GroupName
		}
	}
}

func validateRole(role *rbacv1.Role) field.ErrorList {
	return append(validatePolicyRules(role.Rules, true), validateVerbs(role.Rules)...)
}

func validateClusterRole(role *rbacv1.ClusterRole) field.ErrorList {
	errs := validatePolicyRules(role.Rules, false)
	if role.AggregationRule != nil {
		errs = append(errs, validateAggregation(role.AggregationRule.ClusterRoleSelectors)...)
	}
	return append(errs, validateVerbs(role.Rules)...)
}

func validateAggregation(selectors []metav1.LabelSelector) field.ErrorList {
	at := field.NewPath("aggregationRule", "clusterRoleSelectors")
	if len(selectors) == 0 {
		return field.ErrorList{field.Required(at, "at least one clusterRoleSelector required if aggregationRule is non-nil")}
	}
	var errs field.ErrorList
	for i := range selectors {
		errs = append(errs, words.Selects(at.Index(i), &selectors[i], metavalidation.LabelSelectorValidationOptions{})...)
		if _, err := metav1.LabelSelectorAsSelector(&selectors[i]); err != nil {
			errs = append(errs, field.Invalid(at.Index(i), nil, "invalid label selector."))
		}
	}
	return errs
}

func validateRoleBinding(binding, old *rbacv1.RoleBinding) field.ErrorList {
	errs := validateRoleRef(binding.RoleRef, "Role", "ClusterRole")
	errs = append(errs, validateSubjects(binding.Subjects, true)...)
	if old != nil {
		errs = append(errs, sameRoleRef(binding.RoleRef, old.RoleRef)...)
	}
	return append(errs, validateNamesPresent(binding.Subjects, binding.RoleRef)...)
}

func validateClusterRoleBinding(binding, old *rbacv1.ClusterRoleBinding) field.ErrorList {
	errs := validateRoleRef(binding.RoleRef, "ClusterRole")
	errs = append(errs, validateSubjects(binding.Subjects, false)...)
	if old != nil {
		errs = append(errs, sameRoleRef(binding.RoleRef, old.RoleRef)...)
	}
	return append(errs, validateNamesPresent(binding.Subjects, binding.RoleRef)...)
}

// validateNamesPresent comes last, as in kube-apiserver.
func validateNamesPresent(subjects []rbacv1.Subject, ref rbacv1.RoleRef) field.ErrorList {
	var errs field.ErrorList
	for i := range subjects {
		if subjects[i].Name == "" {
			errs = append(errs, field.Required(field.NewPath("subjects").Index(i).Child("name"), ""))
		}
	}
	if ref.Name == "" {
		errs = append(errs, field.Required(field.NewPath("roleRef", "name"), ""))
	}
	return errs
}

func validatePolicyRules(rules []rbacv1.PolicyRule, namespaced bool) field.ErrorList {
	var errs field.ErrorList
	for i := range rules {
		at := field.NewPath("rules").Index(i)
		if len(rules[i].NonResourceURLs) > 0 {
			errs = append(errs, validateURLRule(at.Child("nonResourceURLs"), &rules[i], namespaced)...)
		} else {
			errs = append(errs, validateResourceRule(at, &rules[i])...)
		}
	}
	return errs
}

// validateVerbs comes last, as in kube-apiserver.
func validateVerbs(rules []rbacv1.PolicyRule) field.ErrorList {
	var errs field.ErrorList
	for i := range rules {
		errs = append(errs, words.AtLeastOne(field.NewPath("rules").Index(i).Child("verbs"), rules[i].Verbs)...)
	}
	return errs
}

// validateURLRule looks at a rule that is about URLs: it is about nothing else,
// and URLs are in no namespace.
func validateURLRule(at *field.Path, rule *rbacv1.PolicyRule, namespaced bool) field.ErrorList {
	var errs field.ErrorList
	if namespaced {
		errs = append(errs, field.Invalid(at, rule.NonResourceURLs, "namespaced rules cannot apply to non-resource URLs"))
	}
	if len(rule.APIGroups)+len(rule.Resources)+len(rule.ResourceNames) > 0 {
		errs = append(errs, field.Invalid(at, rule.NonResourceURLs, "rules cannot apply to both regular resources and non-resource URLs"))
	}
	return errs
}

func validateResourceRule(at *field.Path, rule *rbacv1.PolicyRule) field.ErrorList {
	var errs field.ErrorList
	if len(rule.APIGroups) == 0 {
		errs = append(errs, field.Required(at.Child("apiGroups"), "resource rules must supply at least one api group"))
	}
	if len(rule.Resources) == 0 {
		errs = append(errs, field.Required(at.Child("resources"), "resource rules must supply at least one resource"))
	}
	return errs
}

func validateRoleRef(ref rbacv1.RoleRef, allowed ...string) field.ErrorList {
	at := field.NewPath("roleRef")
	errs := words.OneOf(at.Child("apiGroup"), ref.APIGroup, rbacv1.GroupName)
	errs = append(errs, words.OneOf(at.Child("kind"), ref.Kind, allowed...)...)
	if ref.Name == "" {
		return errs
	}
	return append(errs, words.Named(at.Child("name"), ref.Name, kinds.PathSegmentName)...)
}

// sameRoleRef makes roleRef immutable: the right to change the subjects of a binding
// must not include the right to give them another role.
func sameRoleRef(ref, old rbacv1.RoleRef) field.ErrorList {
	if ref == old {
		return nil
	}
	return field.ErrorList{field.Invalid(field.NewPath("roleRef"), struct{ APIGroup, Kind, Name string }(ref), validation.FieldImmutableErrorMsg)}
}

func validateSubjects(subjects []rbacv1.Subject, namespaced bool) field.ErrorList {
	var errs field.ErrorList
	for i := range subjects {
		at, subject := field.NewPath("subjects").Index(i), &subjects[i]
		switch subject.Kind {
		case rbacv1.ServiceAccountKind:
			errs = append(errs, validateAccountSubject(at, subject, namespaced)...)
		case rbacv1.UserKind, rbacv1.GroupKind:
			errs = append(errs, words.OneOf(at.Child("apiGroup"), subject.APIGroup, rbacv1.GroupName)...)
		default:
			errs = append(errs, field.NotSupported(at.Child("kind"), subject.Kind, []string{rbacv1.ServiceAccountKind, rbacv1.UserKind, rbacv1.GroupKind}))
		}
	}
	return errs
}

func validateAccountSubject(at *field.Path, subject *rbacv1.Subject, namespaced bool) field.ErrorList {
	var errs field.ErrorList
	if subject.Name != "" {
		errs = words.Named(at.Child("name"), subject.Name, validation.ValidateServiceAccountName)
	}
	errs = append(errs, words.OneOf(at.Child("apiGroup"), subject.APIGroup, "")...)
	if !namespaced && subject.Namespace == "" {
		errs = append(errs, field.Required(at.Child("namespace"), ""))
	}
	return errs
}
