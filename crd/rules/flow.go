package rules

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	flowv1 "k8s.io/api/flowcontrol/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/apis/flowcontrol/bootstrap"
	"k8s.io/apiserver/pkg/util/shufflesharding"

	"github.com/espalier-dev/espalier/crd/rules/words"
)

// FlowSchema and PriorityLevelConfiguration are the rules of flowcontrol.apiserver.k8s.io.
var (
	FlowSchema = WithStatus(Rules{
		GroupVersionKind: flowv1.SchemeGroupVersion.WithKind("FlowSchema"),
		Name:             validation.NameIsDNSSubdomain,
		Generation:       counted(func(s *flowv1.FlowSchema) any { return s.Spec }),
		Default: filled(func(s *flowv1.FlowSchema) {
			s.Spec.MatchingPrecedence = cmp.Or(s.Spec.MatchingPrecedence, 1000)
		}),
		Validate: validated(validateFlowSchema),
	}, validateFlowSchemaStatus, func(s *flowv1.FlowSchema) (*flowv1.FlowSchemaSpec, *flowv1.FlowSchemaStatus) {
		return &s.Spec, &s.Status
	})
	PriorityLevelConfiguration = WithStatus(Rules{
		GroupVersionKind: flowv1.SchemeGroupVersion.WithKind("PriorityLevelConfiguration"),
		Name:             validation.NameIsDNSSubdomain,
		Generation:       counted(func(l *flowv1.PriorityLevelConfiguration) any { return l.Spec }),
		Default:          filled(func(l *flowv1.PriorityLevelConfiguration) { defaultPriorityLevel(&l.Spec) }),
		Validate:         validated(validatePriorityLevel),
	}, validatePriorityLevelStatus, func(l *flowv1.PriorityLevelConfiguration) (*flowv1.PriorityLevelConfigurationSpec, *flowv1.PriorityLevelConfigurationStatus) {
		return &l.Spec, &l.Status
	})
)

func defaultPriorityLevel(spec *flowv1.PriorityLevelConfigurationSpec) {
	if exempt := spec.Exempt; exempt != nil {
		DefaultPointer(&exempt.NominalConcurrencyShares, 0)
		DefaultPointer(&exempt.LendablePercent, 0)
	}
	if limited := spec.Limited; limited != nil {
		DefaultPointer(&limited.NominalConcurrencyShares, 30)
		DefaultPointer(&limited.LendablePercent, 0)
		if q := limited.LimitResponse.Queuing; q != nil {
			q.HandSize, q.Queues, q.QueueLengthLimit = cmp.Or(q.HandSize, 8), cmp.Or(q.Queues, 64), cmp.Or(q.QueueLengthLimit, 50)
		}
	}
}

// maxQueues is the most that kube-apiserver accepts.
const maxQueues = 10_000_000

// In the order in which messages list them.
var (
	flowVerbs     = []string{"create", "delete", "deletecollection", "get", "list", "patch", "proxy", "update", "watch"}
	flowSubjects  = []flowv1.SubjectKind{flowv1.SubjectKindGroup, flowv1.SubjectKindServiceAccount, flowv1.SubjectKindUser}
	distinguisher = []flowv1.FlowDistinguisherMethodType{flowv1.FlowDistinguisherMethodByNamespaceType, flowv1.FlowDistinguisherMethodByUserType}
	enablements   = []flowv1.PriorityLevelEnablement{flowv1.PriorityLevelEnablementExempt, flowv1.PriorityLevelEnablementLimited}
	limitResponse = []flowv1.LimitResponseType{flowv1.LimitResponseTypeQueue, flowv1.LimitResponseTypeReject}
)

func validateFlowSchema(schema *flowv1.FlowSchema) field.ErrorList {
	at, spec := field.NewPath("spec"), &schema.Spec
	errs := validatePrecedence(at.Child("matchingPrecedence"), spec.MatchingPrecedence, schema.Name)
	if method := spec.DistinguisherMethod; method != nil {
		errs = append(errs, words.OneOf(at.Child("distinguisherMethod", "type"), method.Type, distinguisher...)...)
	}
	level := at.Child("priorityLevelConfiguration", "name")
	if name := spec.PriorityLevelConfiguration.Name; name == "" {
		errs = append(errs, field.Required(level, "must reference a priority level"))
	} else {
		errs = append(errs, words.Named(level, name, validation.NameIsDNSSubdomain)...)
	}
	for i := range spec.Rules {
		errs = append(errs, validateFlowRule(at.Child("rules").Index(i), &spec.Rules[i])...)
	}
	for _, mandatory := range bootstrap.MandatoryFlowSchemas {
		if mandatory.Name == schema.Name && !equality.Semantic.DeepEqual(schema.Spec, mandatory.Spec) {
			errs = append(errs, field.Invalid(at, schema.Spec, fmt.Sprintf("spec of '%s' must equal the fixed value", schema.Name)))
		}
	}
	return append(errs, validateFlowSchemaStatus(&schema.Status)...)
}

func validateFlowSchemaStatus(status *flowv1.FlowSchemaStatus) field.ErrorList {
	return validateConditionTypes(status.Conditions, func(c flowv1.FlowSchemaCondition) string { return string(c.Type) })
}

func validatePriorityLevelStatus(status *flowv1.PriorityLevelConfigurationStatus) field.ErrorList {
	return validateConditionTypes(status.Conditions, func(c flowv1.PriorityLevelConfigurationCondition) string { return string(c.Type) })
}

func validateConditionTypes[C any](conditions []C, typeOf func(C) string) field.ErrorList {
	var errs field.ErrorList
	seen := words.Unique{}
	for i, c := range conditions {
		at, name := field.NewPath("status", "conditions").Index(i).Child("type"), typeOf(c)
		errs = append(errs, seen.Add(at, name)...)
		if name == "" {
			errs = append(errs, field.Required(at, "must not be empty"))
		}
	}
	return errs
}

func validatePrecedence(at *field.Path, precedence int32, name string) field.ErrorList {
	var why string
	switch {
	case precedence <= 0:
		why = "must be a positive value"
	case precedence > flowv1.FlowSchemaMaxMatchingPrecedence:
		why = fmt.Sprintf("must not be greater than %v", flowv1.FlowSchemaMaxMatchingPrecedence)
	case precedence == 1 && name != flowv1.FlowSchemaNameExempt:
		why = "only the schema named 'exempt' may have matchingPrecedence 1"
	default:
		return nil
	}
	return field.ErrorList{field.Invalid(at, precedence, why)}
}

func validateFlowRule(at *field.Path, rule *flowv1.PolicyRulesWithSubjects) field.ErrorList {
	var errs field.ErrorList
	if len(rule.Subjects) == 0 {
		errs = append(errs, field.Required(at.Child("subjects"), "subjects must contain at least one value"))
	}
	for i := range rule.Subjects {
		errs = append(errs, validateFlowSubject(at.Child("subjects").Index(i), &rule.Subjects[i])...)
	}
	if len(rule.ResourceRules)+len(rule.NonResourceRules) == 0 {
		errs = append(errs, field.Required(at, "at least one of resourceRules and nonResourceRules has to be non-empty"))
	}
	for i := range rule.ResourceRules {
		errs = append(errs, validateFlowResources(at.Child("resourceRules").Index(i), &rule.ResourceRules[i])...)
	}
	for i := range rule.NonResourceRules {
		errs = append(errs, validateFlowURLs(at.Child("nonResourceRules").Index(i), &rule.NonResourceRules[i])...)
	}
	return errs
}

// validateFlowSubject looks at a union: the field of the kind is there, and no other.
func validateFlowSubject(at *field.Path, subject *flowv1.Subject) field.ErrorList {
	errs := words.OneOf(at.Child("kind"), subject.Kind, flowSubjects...)
	if errs != nil {
		return errs
	}
	user, group, account := at.Child("user"), at.Child("group"), at.Child("serviceAccount")
	errs = append(errs, member(user, subject.Kind, flowv1.SubjectKindUser, subject.User != nil)...)
	errs = append(errs, member(group, subject.Kind, flowv1.SubjectKindGroup, subject.Group != nil)...)
	errs = append(errs, member(account, subject.Kind, flowv1.SubjectKindServiceAccount, subject.ServiceAccount != nil)...)
	switch {
	case len(errs) > 0:
	case subject.User != nil && subject.User.Name == "":
		errs = append(errs, field.Required(user.Child("name"), ""))
	case subject.Group != nil && subject.Group.Name == "":
		errs = append(errs, field.Required(group.Child("name"), ""))
	case subject.ServiceAccount != nil:
		errs = validateFlowAccount(account, subject.ServiceAccount)
	}
	return errs
}

func member(at *field.Path, have, kind flowv1.SubjectKind, present bool) field.ErrorList {
	name := strings.ToLower(string(kind[:1])) + string(kind[1:])
	switch {
	case have == kind && !present:
		return field.ErrorList{field.Required(at, fmt.Sprintf("%s is required when subject kind is '%s'", name, kind))}
	case have != kind && present:
		return field.ErrorList{field.Forbidden(at, fmt.Sprintf("%s is forbidden when subject kind is not '%s'", name, kind))}
	}
	return nil
}

func validateFlowAccount(at *field.Path, account *flowv1.ServiceAccountSubject) field.ErrorList {
	var errs field.ErrorList
	if account.Name == "" {
		errs = append(errs, field.Required(at.Child("name"), ""))
	} else if account.Name != flowv1.NameAll {
		errs = append(errs, words.Named(at.Child("name"), account.Name, validation.ValidateServiceAccountName)...)
	}
	if account.Namespace == "" {
		return append(errs, field.Required(at.Child("namespace"), "must specify namespace for service account"))
	}
	return append(errs, words.Named(at.Child("namespace"), account.Namespace, validation.ValidateNamespaceName)...)
}

func validateFlowVerbs(at *field.Path, verbs []string) field.ErrorList {
	switch {
	case len(verbs) == 0:
		return field.ErrorList{field.Required(at, "verbs must contain at least one value")}
	case slices.Contains(verbs, flowv1.VerbAll):
		return words.LoneStar(at, verbs, "verbs")
	case slices.ContainsFunc(verbs, func(verb string) bool { return !slices.Contains(flowVerbs, verb) }):
		return field.ErrorList{field.NotSupported(at, verbs, flowVerbs)}
	}
	return nil
}

func validateFlowResources(at *field.Path, rule *flowv1.ResourcePolicyRule) field.ErrorList {
	errs := validateFlowVerbs(at.Child("verbs"), rule.Verbs)
	if len(rule.APIGroups) == 0 {
		errs = append(errs, field.Required(at.Child("apiGroups"), "resource rules must supply at least one api group"))
	}
	errs = append(errs, words.LoneStar(at.Child("apiGroups"), rule.APIGroups, "api groups")...)
	if len(rule.Resources) == 0 {
		errs = append(errs, field.Required(at.Child("resources"), "resource rules must supply at least one resource"))
	}
	errs = append(errs, words.LoneStar(at.Child("resources"), rule.Resources, "resources")...)
	return append(errs, validateFlowNamespaces(at.Child("namespaces"), rule)...)
}

func validateFlowNamespaces(at *field.Path, rule *flowv1.ResourcePolicyRule) field.ErrorList {
	if len(rule.Namespaces) == 0 && !rule.ClusterScope {
		return field.ErrorList{field.Required(at, "resource rules that are not cluster scoped must supply at least one namespace")}
	}
	if slices.Contains(rule.Namespaces, flowv1.NamespaceEvery) {
		return words.LoneStar(at, rule.Namespaces, "namespaces")
	}
	var errs field.ErrorList
	for i, namespace := range rule.Namespaces {
		for _, msg := range validation.ValidateNamespaceName(namespace, false) {
			errs = append(errs, field.Invalid(at.Index(i), namespace, "each member of this list must be '*' or a DNS-1123 label; "+msg))
		}
	}
	return errs
}

func validateFlowURLs(at *field.Path, rule *flowv1.NonResourcePolicyRule) field.ErrorList {
	errs := validateFlowVerbs(at.Child("verbs"), rule.Verbs)
	urls := at.Child("nonResourceURLs")
	switch {
	case len(rule.NonResourceURLs) == 0:
		return append(errs, field.Required(urls, "nonResourceURLs must contain at least one value"))
	case slices.Contains(rule.NonResourceURLs, flowv1.NonResourceAll):
		return append(errs, words.LoneStar(urls, rule.NonResourceURLs, "non-resource URLs")...)
	}
	for i, url := range rule.NonResourceURLs {
		if why := wrongWithURL(url); why != "" {
			errs = append(errs, field.Invalid(urls.Index(i), url, why))
		}
	}
	return errs
}

// wrongWithURL validates a path, or one that ends in "/*".
func wrongWithURL(url string) string {
	switch {
	case url == "":
		return "must not be empty"
	case url[0] != '/':
		return "must start with slash"
	case strings.Contains(url, " "):
		return "must not contain white-space"
	case strings.Contains(url, "//"):
		return "must not contain double slash"
	case strings.Contains(strings.TrimSuffix(url, "/*"), "*"):
		return "wildcard can only do suffix matching"
	}
	return ""
}

// validatePriorityLevel looks at the values first, and then at the unions, as
// kube-apiserver does.
func validatePriorityLevel(level *flowv1.PriorityLevelConfiguration) field.ErrorList {
	at, spec := field.NewPath("spec"), &level.Spec
	var errs field.ErrorList
	exempt := spec.Type == flowv1.PriorityLevelEnablementExempt
	if exempt != (level.Name == flowv1.PriorityLevelConfigurationNameExempt) {
		errs = append(errs, field.Invalid(at.Child("type"), spec.Type, "must be 'Exempt' if and only if `name` is 'exempt'"))
	}
	switch {
	case exempt && spec.Exempt != nil:
		errs = append(errs, validateExempt(at.Child("exempt"), spec.Exempt)...)
	case spec.Type == flowv1.PriorityLevelEnablementLimited && spec.Limited != nil:
		errs = append(errs, validateLimited(at.Child("limited"), spec.Limited)...)
	case spec.Type != "":
		errs = append(errs, words.OneOf(at.Child("type"), spec.Type, enablements...)...)
	}
	errs = append(errs, validateFixedLevel(at, level)...)
	errs = append(errs, validatePriorityLevelStatus(&level.Status)...)
	if spec.Exempt != nil && !exempt {
		errs = append(errs, field.Forbidden(at.Child("exempt"), ""))
	}
	errs = append(errs, onlyIf(at.Child("limited"), spec.Type == flowv1.PriorityLevelEnablementLimited, spec.Limited != nil)...)
	if spec.Type == "" {
		errs = append(errs, field.Required(at.Child("type"), ""))
	}
	if spec.Limited == nil {
		return errs
	}
	at, response := at.Child("limited", "limitResponse"), &spec.Limited.LimitResponse
	errs = append(errs, onlyIf(at.Child("queuing"), response.Type == flowv1.LimitResponseTypeQueue, response.Queuing != nil)...)
	if response.Type == "" {
		errs = append(errs, field.Required(at.Child("type"), ""))
	}
	return errs
}

// onlyIf complains about a member of a union that is missing or not wanted.
func onlyIf(at *field.Path, wanted, present bool) field.ErrorList {
	switch {
	case wanted && !present:
		return field.ErrorList{field.Required(at, "")}
	case present && !wanted:
		return field.ErrorList{field.Forbidden(at, "")}
	}
	return nil
}

// validateFixedLevel makes the mandatory levels immutable, except for the concurrency
// that `exempt` lends.
func validateFixedLevel(at *field.Path, level *flowv1.PriorityLevelConfiguration) field.ErrorList {
	for _, mandatory := range bootstrap.MandatoryPriorityLevelConfigurations {
		if mandatory.Name != level.Name {
			continue
		}
		have, why := level.Spec, "spec of '%s' must equal the fixed value"
		if level.Name == flowv1.PriorityLevelConfigurationNameExempt {
			have.Exempt, why = mandatory.Spec.Exempt, "spec of '%s' except the 'spec.exempt' field must equal the fixed value"
		}
		if !equality.Semantic.DeepEqual(have, mandatory.Spec) {
			return field.ErrorList{field.Invalid(at, level.Spec, fmt.Sprintf(why, level.Name))}
		}
	}
	return nil
}

func validateExempt(at *field.Path, exempt *flowv1.ExemptPriorityLevelConfiguration) field.ErrorList {
	errs := atLeastZero(at.Child("nominalConcurrencyShares"), exempt.NominalConcurrencyShares, "must be a non-negative integer")
	return append(errs, percent(at.Child("lendablePercent"), exempt.LendablePercent)...)
}

func validateLimited(at *field.Path, limited *flowv1.LimitedPriorityLevelConfiguration) field.ErrorList {
	errs := atLeastZero(at.Child("nominalConcurrencyShares"), limited.NominalConcurrencyShares, "must be a non-negative integer")
	switch response, here := &limited.LimitResponse, at.Child("limitResponse"); {
	case response.Type == flowv1.LimitResponseTypeQueue && response.Queuing != nil:
		errs = append(errs, validateQueuing(here.Child("queuing"), response.Queuing)...)
	case response.Type != "":
		errs = append(errs, words.OneOf(here.Child("type"), response.Type, limitResponse...)...)
	}
	errs = append(errs, percent(at.Child("lendablePercent"), limited.LendablePercent)...)
	return append(errs, atLeastZero(at.Child("borrowingLimitPercent"), limited.BorrowingLimitPercent, "if specified, must be a non-negative integer")...)
}

func validateQueuing(at *field.Path, q *flowv1.QueuingConfiguration) field.ErrorList {
	var errs field.ErrorList
	if q.QueueLengthLimit <= 0 {
		errs = append(errs, field.Invalid(at.Child("queueLengthLimit"), q.QueueLengthLimit, "must be positive"))
	}
	if q.Queues <= 0 {
		errs = append(errs, field.Invalid(at.Child("queues"), q.Queues, "must be positive"))
	} else if q.Queues > maxQueues {
		errs = append(errs, field.Invalid(at.Child("queues"), q.Queues, fmt.Sprintf("must not be greater than %d", maxQueues)))
	}
	var why string
	switch hand := int(q.HandSize); {
	case hand <= 0:
		why = "must be positive"
	case q.HandSize > q.Queues:
		why = fmt.Sprintf("should not be greater than queues (%d)", q.Queues)
	case shufflesharding.RequiredEntropyBits(int(q.Queues), hand) > shufflesharding.MaxHashBits:
		why = fmt.Sprintf("required entropy bits of deckSize %d and handSize %d should not be greater than %d", q.Queues, q.HandSize, shufflesharding.MaxHashBits)
	default:
		return errs
	}
	return append(errs, field.Invalid(at.Child("handSize"), q.HandSize, why))
}

func atLeastZero(at *field.Path, value *int32, why string) field.ErrorList {
	if value == nil || *value >= 0 {
		return nil
	}
	return field.ErrorList{field.Invalid(at, *value, why)}
}

func percent(at *field.Path, value *int32) field.ErrorList {
	if value == nil || *value >= 0 && *value <= 100 {
		return nil
	}
	return field.ErrorList{field.Invalid(at, *value, "must be between 0 and 100, inclusive")}
}
