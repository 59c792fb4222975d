package rules

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	content "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// ResourceQuota are the rules of quotas. All names that Kubernetes knows are accepted.
var ResourceQuota = WithStatus(Rules{
	GroupVersionKind: corev1.SchemeGroupVersion.WithKind("ResourceQuota"), Namespaced: true,
	Name:              validation.NameIsDNSSubdomain,
	LooseGenerateName: true,
	Default:           filled(roundQuota),
	Validate:          compared(validateQuota),
	Warn:              warnOfQuota,
}, validateQuotaStatus, func(q *corev1.ResourceQuota) (*corev1.ResourceQuotaSpec, *corev1.ResourceQuotaStatus) {
	return &q.Spec, &q.Status
})

// roundQuota rounds quantities up to thousandths: no component measures less.
func roundQuota(q *corev1.ResourceQuota) {
	for _, list := range []corev1.ResourceList{q.Spec.Hard, q.Status.Hard, q.Status.Used} {
		for name, quantity := range list {
			quantity.RoundUp(resource.Milli)
			list[name] = quantity
		}
	}
}

// The names that Kubernetes knows. quotaCounts are whole numbers.
var (
	quotaCounts = sets.New(corev1.ResourcePods, corev1.ResourceQuotas, corev1.ResourceServices, corev1.ResourceReplicationControllers, corev1.ResourceSecrets,
		corev1.ResourceConfigMaps, corev1.ResourcePersistentVolumeClaims, corev1.ResourceServicesNodePorts, corev1.ResourceServicesLoadBalancers)
	quotaCompute = sets.New(corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceRequestsCPU, corev1.ResourceRequestsMemory, corev1.ResourceLimitsCPU, corev1.ResourceLimitsMemory)
	quotaOther   = sets.New(corev1.ResourceEphemeralStorage, corev1.ResourceRequestsStorage, corev1.ResourceRequestsEphemeralStorage, corev1.ResourceLimitsEphemeralStorage)

	podScopes = sets.New(corev1.ResourceQuotaScopeTerminating, corev1.ResourceQuotaScopeNotTerminating, corev1.ResourceQuotaScopeNotBestEffort,
		corev1.ResourceQuotaScopePriorityClass, corev1.ResourceQuotaScopeCrossNamespacePodAffinity)
	existingScopes = sets.New(corev1.ResourceQuotaScopeBestEffort, corev1.ResourceQuotaScopeNotBestEffort, corev1.ResourceQuotaScopeTerminating,
		corev1.ResourceQuotaScopeNotTerminating, corev1.ResourceQuotaScopeCrossNamespacePodAffinity)
)

func standardQuotaName(name corev1.ResourceName) bool {
	return quotaCounts.Has(name) || quotaCompute.Has(name) || quotaOther.Has(name) ||
		strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix) || strings.HasPrefix(string(name), corev1.DefaultResourceRequestsPrefix+corev1.ResourceHugePagesPrefix)
}

// scopeFits reports whether a scope is about what a standard name counts.
func scopeFits(scope corev1.ResourceQuotaScope, name corev1.ResourceName) bool {
	switch {
	case podScopes.Has(scope):
		return name == corev1.ResourcePods || quotaCompute.Has(name)
	case scope == corev1.ResourceQuotaScopeBestEffort:
		return name == corev1.ResourcePods
	case scope == corev1.ResourceQuotaScopeVolumeAttributesClass:
		return name == corev1.ResourcePersistentVolumeClaims || name == corev1.ResourceRequestsStorage
	}
	return true
}

func standardScope(scope corev1.ResourceQuotaScope) bool {
	return podScopes.Has(scope) || scope == corev1.ResourceQuotaScopeBestEffort || scope == corev1.ResourceQuotaScopeVolumeAttributesClass
}

// validateQuota says what is wrong with a quota. Old is what it was before, if it
// was.
func validateQuota(q, old *corev1.ResourceQuota) field.ErrorList {
	at := field.NewPath("spec")
	errs := validateQuantities(at.Child("hard"), q.Spec.Hard)
	errs = append(errs, validateScopes(at.Child("scopes"), &q.Spec)...)
	if q.Spec.ScopeSelector != nil {
		errs = append(errs, validateScopeSelector(at.Child("scopeSelector", "matchExpressions"), &q.Spec)...)
	}
	if old != nil && !sets.New(q.Spec.Scopes...).Equal(sets.New(old.Spec.Scopes...)) {
		errs = append(errs, field.Invalid(at.Child("scopes"), q.Spec.Scopes, validation.FieldImmutableErrorMsg))
	}
	return errs
}

func validateQuotaStatus(s *corev1.ResourceQuotaStatus) field.ErrorList {
	at := field.NewPath("status")
	return append(validateQuantities(at.Child("hard"), s.Hard), validateQuantities(at.Child("used"), s.Used)...)
}

func validateQuantities(at *field.Path, list corev1.ResourceList) field.ErrorList {
	var errs field.ErrorList
	for _, name := range slices.Sorted(maps.Keys(list)) {
		path, value := at.Key(string(name)), list[name]
		errs = append(errs, validateQuotaName(path, name)...)
		if value.Cmp(resource.Quantity{}) < 0 {
			errs = append(errs, field.Invalid(path, value.String(), validation.IsNegativeErrorMsg).WithOrigin("minimum"))
		}
		if wholeNumber(name) && value.MilliValue()%1000 != 0 {
			errs = append(errs, field.Invalid(path, value, "must be an integer"))
		}
	}
	return errs
}

func validateQuotaName(at *field.Path, name corev1.ResourceName) field.ErrorList {
	var errs field.ErrorList
	for _, text := range content.IsQualifiedName(string(name)) {
		errs = append(errs, field.Invalid(at, name, text))
	}
	if strings.Contains(string(name), "/") || standardQuotaName(name) {
		return errs
	}
	if len(errs) == 0 && name != corev1.ResourceStorage {
		errs = append(errs, field.Invalid(at, name, "must be a standard resource type or fully qualified"))
	}
	return append(errs, field.Invalid(at, name, "must be a standard resource for quota"))
}

// wholeNumber reports whether a name counts: those with a domain of their own do.
func wholeNumber(name corev1.ResourceName) bool {
	text := string(name)
	if quotaCounts.Has(name) {
		return true
	}
	return strings.Contains(text, "/") && !strings.Contains(text, corev1.ResourceDefaultNamespacePrefix) && !strings.HasPrefix(text, corev1.DefaultResourceRequestsPrefix) &&
		len(content.IsQualifiedName(corev1.DefaultResourceRequestsPrefix+text)) == 0
}

func validateScopes(at *field.Path, spec *corev1.ResourceQuotaSpec) field.ErrorList {
	var errs field.ErrorList
	for _, scope := range spec.Scopes {
		if !standardScope(scope) {
			errs = append(errs, field.Invalid(at, spec.Scopes, "unsupported scope"))
		}
		for _, name := range slices.Sorted(maps.Keys(spec.Hard)) {
			if standardQuotaName(name) && !scopeFits(scope, name) {
				errs = append(errs, field.Invalid(at, spec.Scopes, "unsupported scope applied to resource"))
			}
		}
	}
	return append(errs, conflictingScopes(at, spec, spec.Scopes)...)
}

func conflictingScopes(at *field.Path, spec *corev1.ResourceQuotaSpec, scopes []corev1.ResourceQuotaScope) field.ErrorList {
	var errs field.ErrorList
	for _, pair := range [][2]corev1.ResourceQuotaScope{
		{corev1.ResourceQuotaScopeBestEffort, corev1.ResourceQuotaScopeNotBestEffort},
		{corev1.ResourceQuotaScopeTerminating, corev1.ResourceQuotaScopeNotTerminating},
	} {
		if slices.Contains(scopes, pair[0]) && slices.Contains(scopes, pair[1]) {
			errs = append(errs, field.Invalid(at, spec.Scopes, "conflicting scopes"))
		}
	}
	return errs
}

func validateScopeSelector(at *field.Path, spec *corev1.ResourceQuotaSpec) field.ErrorList {
	var errs field.ErrorList
	var scopes []corev1.ResourceQuotaScope
	for _, r := range spec.ScopeSelector.MatchExpressions {
		scopes = append(scopes, r.ScopeName)
		if !standardScope(r.ScopeName) {
			errs = append(errs, field.Invalid(at.Child("scopeName"), r.ScopeName, "unsupported scope"))
		}
		for _, name := range slices.Sorted(maps.Keys(spec.Hard)) {
			if standardQuotaName(name) && !scopeFits(r.ScopeName, name) {
				errs = append(errs, field.Invalid(at, untaggedSelector(spec.ScopeSelector), "unsupported scope applied to resource"))
			}
		}
		if existingScopes.Has(r.ScopeName) && r.Operator != corev1.ScopeSelectorOpExists {
			errs = append(errs, field.Invalid(at.Child("operator"), r.Operator, "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, "+
				"ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity"))
		}
		switch r.Operator {
		case corev1.ScopeSelectorOpIn, corev1.ScopeSelectorOpNotIn:
			if len(r.Values) == 0 {
				errs = append(errs, field.Required(at.Child("values"), "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector"))
			}
		case corev1.ScopeSelectorOpExists, corev1.ScopeSelectorOpDoesNotExist:
			if len(r.Values) != 0 {
				errs = append(errs, field.Invalid(at.Child("values"), r.Values, "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector"))
			}
		default:
			errs = append(errs, field.Invalid(at.Child("operator"), r.Operator, "not a valid selector operator"))
		}
	}
	return append(errs, conflictingScopes(at, spec, scopes)...)
}

// untaggedSelector has no names for JSON, so that messages show it as kube-apiserver does.
func untaggedSelector(selector *corev1.ScopeSelector) any {
	type requirement struct {
		ScopeName corev1.ResourceQuotaScope
		Operator  corev1.ScopeSelectorOperator
		Values    []string
	}
	var shown struct{ MatchExpressions []requirement }
	for _, r := range selector.MatchExpressions {
		shown.MatchExpressions = append(shown.MatchExpressions, requirement(r))
	}
	return shown
}

// warnOfQuota finds requests that are higher than limits.
func warnOfQuota(obj runtime.Object) []string {
	var warnings []string
	hard := obj.(*corev1.ResourceQuota).Spec.Hard
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceStorage, corev1.ResourceEphemeralStorage} {
		requests, limits := "requests."+name, "limits."+name
		request, ok := hard[requests]
		if !ok && (name == corev1.ResourceCPU || name == corev1.ResourceMemory) {
			requests = name
			request, ok = hard[name]
		}
		if limit, limited := hard[limits]; ok && limited && request.Cmp(limit) > 0 {
			warnings = append(warnings, fmt.Sprintf("ResourceQuota %s (%s) should be less than %s (%s)", requests, request.String(), limits, limit.String()))
		}
	}
	return warnings
}
