package rules

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/admission/plugin/manifest"
	"k8s.io/utils/ptr"

	"github.com/espalier-dev/espalier/crd/rules/words"
)

// The rules of webhook configurations.
var (
	MutatingWebhookConfiguration = withHooks("MutatingWebhookConfiguration",
		func(c *admissionv1.MutatingWebhookConfiguration) []admissionv1.MutatingWebhook { return c.Webhooks }, mutatingHook, defaultMutatingWebhook)
	ValidatingWebhookConfiguration = withHooks("ValidatingWebhookConfiguration",
		func(c *admissionv1.ValidatingWebhookConfiguration) []admissionv1.ValidatingWebhook { return c.Webhooks }, validatingHook, defaultValidatingWebhook)
)

// withHooks are the rules of configurations P that list webhooks W.
func withHooks[P interface {
	comparable
	runtime.Object
}, W any](kind string, list func(P) []W, hookOf func(*W) hook, fill func(*W)) Rules {
	hooks := func(c P) []hook {
		all := make([]hook, len(list(c)))
		for i := range all {
			all[i] = hookOf(&list(c)[i])
		}
		return all
	}
	return Rules{
		GroupVersionKind: admissionv1.SchemeGroupVersion.WithKind(kind),
		Name:             admissionName, AnyFinalizer: true,
		// An empty list in place of none is a change, too, as in kube-apiserver.
		Generation: func(obj, old runtime.Object) bool { return !reflect.DeepEqual(list(obj.(P)), list(old.(P))) },
		Default: filled(func(c P) {
			for i := range list(c) {
				fill(&list(c)[i])
			}
		}),
		Validate: compared(func(c, old P) field.ErrorList {
			var none P
			if old == none {
				return validateHooks(hooks(c), nil)
			}
			return validateHooks(hooks(c), hooks(old))
		}),
	}
}

// admissionName rejects the names that are reserved for configurations in files, so
// that no client can imitate or hide these.
func admissionName(name string, prefix bool) []string {
	wrong := apivalidation.NameIsDNSSubdomain(name, prefix)
	if !prefix && strings.HasSuffix(name, manifest.StaticConfigSuffix) {
		wrong = append(wrong, "names that end with "+manifest.StaticConfigSuffix+" are reserved for configurations that are loaded from files")
	}
	return wrong
}

// The defaults of a webhook. sideEffects and admissionReviewVersions have none.

func defaultMutatingWebhook(w *admissionv1.MutatingWebhook) {
	DefaultPointer(&w.FailurePolicy, admissionv1.Fail)
	DefaultPointer(&w.MatchPolicy, admissionv1.Equivalent)
	DefaultPointer(&w.NamespaceSelector, metav1.LabelSelector{})
	DefaultPointer(&w.ObjectSelector, metav1.LabelSelector{})
	DefaultPointer(&w.TimeoutSeconds, 10)
	DefaultPointer(&w.ReinvocationPolicy, admissionv1.NeverReinvocationPolicy)
	defaultWebhook(&w.ClientConfig, w.Rules)
}

func defaultValidatingWebhook(w *admissionv1.ValidatingWebhook) {
	DefaultPointer(&w.FailurePolicy, admissionv1.Fail)
	DefaultPointer(&w.MatchPolicy, admissionv1.Equivalent)
	DefaultPointer(&w.NamespaceSelector, metav1.LabelSelector{})
	DefaultPointer(&w.ObjectSelector, metav1.LabelSelector{})
	DefaultPointer(&w.TimeoutSeconds, 10)
	defaultWebhook(&w.ClientConfig, w.Rules)
}

func defaultWebhook(c *admissionv1.WebhookClientConfig, ruleList []admissionv1.RuleWithOperations) {
	if c.Service != nil {
		DefaultPointer(&c.Service.Port, 443)
	}
	for i := range ruleList {
		DefaultPointer(&ruleList[i].Scope, admissionv1.AllScopes)
	}
}

// hook is what both kinds of webhooks have. Reinvocation is nil for those that
// only validate.
type hook struct {
	name         string
	client       *admissionv1.WebhookClientConfig
	rules        []admissionv1.RuleWithOperations
	failure      *admissionv1.FailurePolicyType
	match        *admissionv1.MatchPolicyType
	namespaces   *metav1.LabelSelector
	objects      *metav1.LabelSelector
	sideEffects  *admissionv1.SideEffectClass
	timeout      *int32
	versions     []string
	reinvocation *admissionv1.ReinvocationPolicyType
	conditions   []admissionv1.MatchCondition
}

func mutatingHook(w *admissionv1.MutatingWebhook) hook {
	return hook{
		w.Name, &w.ClientConfig, w.Rules, w.FailurePolicy, w.MatchPolicy, w.NamespaceSelector, w.ObjectSelector,
		w.SideEffects, w.TimeoutSeconds, w.AdmissionReviewVersions, w.ReinvocationPolicy, w.MatchConditions,
	}
}

func validatingHook(w *admissionv1.ValidatingWebhook) hook {
	return hook{
		w.Name, &w.ClientConfig, w.Rules, w.FailurePolicy, w.MatchPolicy, w.NamespaceSelector, w.ObjectSelector,
		w.SideEffects, w.TimeoutSeconds, w.AdmissionReviewVersions, nil, w.MatchConditions,
	}
}

// hookLicence is the set of ratcheted errors: the stored configuration already has
// them, so an update may keep them.
type hookLicence struct {
	sideEffects, unknownVersions, equalNames, looseSelectors bool
}

func licenceOf(old []hook) hookLicence {
	var l hookLicence
	names := map[string]bool{}
	for i := range old {
		h := &old[i]
		l.sideEffects = l.sideEffects || h.sideEffects == nil || !slices.Contains(withoutSideEffects, *h.sideEffects)
		l.unknownVersions = l.unknownVersions || len(h.versions) > 0 && !knowsVersion(h.versions)
		l.equalNames = l.equalNames || names[h.name]
		strict := metavalidation.LabelSelectorValidationOptions{}
		l.looseSelectors = l.looseSelectors || len(words.Selects(nil, h.namespaces, strict))+len(words.Selects(nil, h.objects, strict)) > 0
		names[h.name] = true
	}
	return l
}

// In the order in which messages list them.
var (
	failurePolicies    = []admissionv1.FailurePolicyType{admissionv1.Fail, admissionv1.Ignore}
	matchPolicies      = []admissionv1.MatchPolicyType{admissionv1.Equivalent, admissionv1.Exact}
	withoutSideEffects = []admissionv1.SideEffectClass{admissionv1.SideEffectClassNone, admissionv1.SideEffectClassNoneOnDryRun}
	allSideEffects     = append(slices.Clip(withoutSideEffects), admissionv1.SideEffectClassSome, admissionv1.SideEffectClassUnknown)
	reinvocations      = []admissionv1.ReinvocationPolicyType{admissionv1.IfNeededReinvocationPolicy, admissionv1.NeverReinvocationPolicy}
	reviewVersions     = []string{"v1", "v1beta1"}
	operations         = []admissionv1.OperationType{admissionv1.OperationAll, admissionv1.Connect, admissionv1.Create, admissionv1.Delete, admissionv1.Update}
	scopes             = []admissionv1.ScopeType{admissionv1.AllScopes, admissionv1.ClusterScope, admissionv1.NamespacedScope}
)

// validateHooks validates the webhooks of a configuration. Old are those that it had before.
func validateHooks(hooks, old []hook) field.ErrorList {
	var errs field.ErrorList
	licence := licenceOf(old)
	cel := newExpressions(hookExpressions(old)...)
	names := words.Unique{}
	sameConditions := len(hooks) == len(old) && slices.EqualFunc(hooks, old, func(a, b hook) bool {
		return reflect.DeepEqual(a.conditions, b.conditions)
	})
	for i := range hooks {
		at, h := field.NewPath("webhooks").Index(i), &hooks[i]
		errs = append(errs, validateHook(at, h, licence)...)
		if !sameConditions {
			errs = append(errs, cel.matchConditions(at.Child("matchConditions"), h.conditions, false)...)
		}
		errs = append(errs, validateReviewVersions(at.Child("admissionReviewVersions"), h.versions, licence.unknownVersions)...)
		if h.name != "" && !licence.equalNames {
			errs = append(errs, names.Add(at.Child("name"), h.name)...)
		}
	}
	return errs
}

func hookExpressions(hooks []hook) []string {
	var all []string
	for i := range hooks {
		all = append(all, conditionExpressions(hooks[i].conditions)...)
	}
	return all
}

func validateHook(at *field.Path, h *hook, licence hookLicence) field.ErrorList {
	errs := validation.IsFullyQualifiedName(at.Child("name"), h.name)
	for i := range h.rules {
		errs = append(errs, validateRule(at.Child("rules").Index(i), &h.rules[i])...)
	}
	errs = append(errs, words.OneOfIfSet(at.Child("failurePolicy"), h.failure, failurePolicies...)...)
	errs = append(errs, words.OneOfIfSet(at.Child("matchPolicy"), h.match, matchPolicies...)...)
	errs = append(errs, validateSideEffects(at.Child("sideEffects"), h.sideEffects, licence.sideEffects)...)
	if h.timeout != nil && (*h.timeout < 1 || *h.timeout > 30) {
		errs = append(errs, field.Invalid(at.Child("timeoutSeconds"), *h.timeout, "the timeout value must be between 1 and 30 seconds"))
	}
	opts := metavalidation.LabelSelectorValidationOptions{AllowInvalidLabelValueInSelector: licence.looseSelectors}
	errs = append(errs, words.Selects(at.Child("namespaceSelector"), h.namespaces, opts)...)
	errs = append(errs, words.Selects(at.Child("objectSelector"), h.objects, opts)...)
	errs = append(errs, words.OneOfIfSet(at.Child("reinvocationPolicy"), h.reinvocation, reinvocations...)...)
	return append(errs, validateClient(at.Child("clientConfig"), h.client)...)
}

func validateSideEffects(at *field.Path, class *admissionv1.SideEffectClass, licensed bool) field.ErrorList {
	allowed := withoutSideEffects
	if licensed {
		allowed = allSideEffects
	}
	if class == nil {
		return field.ErrorList{field.Required(at, "must specify one of "+join(allowed))}
	}
	return words.OneOf(at, *class, allowed...)
}

func join[T ~string](values []T) string {
	words := make([]string, len(values))
	for i, v := range values {
		words[i] = string(v)
	}
	return strings.Join(words, ", ")
}

func validateClient(at *field.Path, c *admissionv1.WebhookClientConfig) field.ErrorList {
	var errs field.ErrorList
	switch {
	case (c.URL == nil) == (c.Service == nil):
		errs = append(errs, field.Required(at, "exactly one of url or service is required"))
	case c.URL != nil:
		errs = words.URL(at.Child("url"), *c.URL)
	default:
		port := ptr.Deref(c.Service.Port, 0) // which is not valid; defaulting never leaves it
		errs = words.Service(at.Child("service"), c.Service.Namespace, c.Service.Name, c.Service.Path, port)
	}
	return errs
}

func knowsVersion(versions []string) bool {
	return slices.ContainsFunc(versions, func(v string) bool { return slices.Contains(reviewVersions, v) })
}

func validateReviewVersions(at *field.Path, versions []string, anyVersion bool) field.ErrorList {
	if len(versions) == 0 {
		return field.ErrorList{field.Required(at, "must specify one of "+join(reviewVersions))}
	}
	var errs field.ErrorList
	seen := map[string]bool{}
	for i, v := range versions {
		if seen[v] {
			errs = append(errs, field.Invalid(at.Index(i), v, "duplicate version"))
			continue
		}
		seen[v] = true
		for _, msg := range validation.IsDNS1035Label(v) {
			errs = append(errs, field.Invalid(at.Index(i), v, msg))
		}
	}
	if !anyVersion && !knowsVersion(versions) {
		errs = append(errs, field.Invalid(at, versions, "must include at least one of "+join(reviewVersions)))
	}
	return errs
}

// validateRule validates a rule of a webhook or policy.
func validateRule(at *field.Path, rule *admissionv1.RuleWithOperations) field.ErrorList {
	errs := words.AtLeastOne(at.Child("operations"), rule.Operations)
	errs = append(errs, words.LoneStar(at.Child("operations"), rule.Operations, "operations")...)
	for i, operation := range rule.Operations {
		errs = append(errs, words.OneOf(at.Child("operations").Index(i), operation, operations...)...)
	}
	errs = append(errs, words.AtLeastOne(at.Child("apiGroups"), rule.APIGroups)...)
	errs = append(errs, words.LoneStar(at.Child("apiGroups"), rule.APIGroups, "API groups")...)
	errs = append(errs, words.AtLeastOne(at.Child("apiVersions"), rule.APIVersions)...)
	errs = append(errs, words.LoneStar(at.Child("apiVersions"), rule.APIVersions, "API versions")...)
	for i, version := range rule.APIVersions {
		if version == "" {
			errs = append(errs, field.Required(at.Child("apiVersions").Index(i), ""))
		}
	}
	errs = append(errs, validateRuleResources(at.Child("resources"), rule.Resources)...)
	return append(errs, words.OneOfIfSet(at.Child("scope"), rule.Scope, scopes...)...)
}

// validateRuleResources looks for resources that are named although a pattern
// before them has them already.
func validateRuleResources(at *field.Path, resources []string) field.ErrorList {
	errs := words.AtLeastOne(at, resources)
	patterns := map[string]bool{} // "pods/*", "*/status"
	plain := false                // whether the last one without subresource was a name
	for i, resource := range resources {
		if resource == "" {
			errs = append(errs, field.Required(at.Index(i), ""))
			continue
		}
		name, sub, found := strings.Cut(resource, "/")
		if !found {
			plain = resource != "*"
			continue
		}
		for _, pattern := range []string{name + "/*", "*/" + sub} {
			if patterns[pattern] {
				errs = append(errs, field.Invalid(at.Index(i), resource, fmt.Sprintf("if '%s' is present, must not specify %s", pattern, resource)))
			}
		}
		if name == "*" || sub == "*" {
			patterns[resource] = true
		}
	}
	if len(resources) > 1 && slices.Contains(resources, "*/*") {
		errs = append(errs, field.Invalid(at, resources, "if '*/*' is present, must not specify other resources"))
	}
	if plain && slices.Contains(resources, "*") {
		errs = append(errs, field.Invalid(at, resources, "if '*' is present, must not specify other resources without subresources"))
	}
	return errs
}
