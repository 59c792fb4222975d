package rules

import (
	"fmt"
	"reflect"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	formats "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	plugincel "k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/client-go/util/jsonpath"

	"github.com/espalier-dev/espalier/crd/kinds"
	"github.com/espalier-dev/espalier/crd/rules/words"
)

// The rules of admission policies and their bindings.
var (
	ValidatingAdmissionPolicy = WithStatus(Rules{
		GroupVersionKind: admissionv1.SchemeGroupVersion.WithKind("ValidatingAdmissionPolicy"),
		Name:             admissionName, AnyFinalizer: true,
		Generation: counted(func(p *admissionv1.ValidatingAdmissionPolicy) any { return p.Spec }),
		Default: filled(func(p *admissionv1.ValidatingAdmissionPolicy) {
			DefaultPointer(&p.Spec.FailurePolicy, admissionv1.Fail)
			defaultMatchResources(p.Spec.MatchConstraints)
		}),
		Validate: compared(validateValidatingPolicy),
	}, validateValidatingPolicyStatus, func(p *admissionv1.ValidatingAdmissionPolicy) (*admissionv1.ValidatingAdmissionPolicySpec, *admissionv1.ValidatingAdmissionPolicyStatus) {
		return &p.Spec, &p.Status
	})
	MutatingAdmissionPolicy = Rules{
		GroupVersionKind: admissionv1.SchemeGroupVersion.WithKind("MutatingAdmissionPolicy"),
		Name:             admissionName, AnyFinalizer: true,
		Generation: counted(func(p *admissionv1.MutatingAdmissionPolicy) any { return p.Spec }),
		// The reinvocation policy has no default: authors must choose one.
		Default: filled(func(p *admissionv1.MutatingAdmissionPolicy) {
			DefaultPointer(&p.Spec.FailurePolicy, admissionv1.Fail)
			defaultMatchResources(p.Spec.MatchConstraints)
		}),
		Validate: compared(validateMutatingPolicy),
	}
	ValidatingAdmissionPolicyBinding = Rules{
		GroupVersionKind: admissionv1.SchemeGroupVersion.WithKind("ValidatingAdmissionPolicyBinding"),
		Name:             admissionName, AnyFinalizer: true,
		Generation: counted(func(b *admissionv1.ValidatingAdmissionPolicyBinding) any { return b.Spec }),
		Default:    filled(func(b *admissionv1.ValidatingAdmissionPolicyBinding) { defaultMatchResources(b.Spec.MatchResources) }),
		Validate:   validated(validateValidatingPolicyBinding),
	}
	MutatingAdmissionPolicyBinding = Rules{
		GroupVersionKind: admissionv1.SchemeGroupVersion.WithKind("MutatingAdmissionPolicyBinding"),
		Name:             admissionName, AnyFinalizer: true,
		Generation: counted(func(b *admissionv1.MutatingAdmissionPolicyBinding) any { return b.Spec }),
		Default:    filled(func(b *admissionv1.MutatingAdmissionPolicyBinding) { defaultMatchResources(b.Spec.MatchResources) }),
		Validate:   validated(validateMutatingPolicyBinding),
	}
)

func defaultMatchResources(m *admissionv1.MatchResources) {
	if m == nil {
		return
	}
	DefaultPointer(&m.MatchPolicy, admissionv1.Equivalent)
	DefaultPointer(&m.NamespaceSelector, metav1.LabelSelector{})
	DefaultPointer(&m.ObjectSelector, metav1.LabelSelector{})
	for i := range m.ResourceRules {
		DefaultPointer(&m.ResourceRules[i].Scope, admissionv1.AllScopes)
	}
	for i := range m.ExcludeResourceRules {
		DefaultPointer(&m.ExcludeResourceRules[i].Scope, admissionv1.AllScopes)
	}
}

const (
	maxAuditAnnotations = 20
	// maxAuditExpression is half of what a value may have: concatenation gives
	// values that are longer than their expressions.
	maxAuditExpression = 5 << 10
)

var (
	// mutableOperations leaves out DELETE: there is nothing left to mutate.
	mutableOperations = []admissionv1.OperationType{admissionv1.OperationAll, admissionv1.Connect, admissionv1.Create, admissionv1.Update}
	mutationTypes     = []admissionv1.PatchType{admissionv1.PatchTypeApplyConfiguration, admissionv1.PatchTypeJSONPatch}
	denialReasons     = []metav1.StatusReason{metav1.StatusReasonForbidden, metav1.StatusReasonInvalid, metav1.StatusReasonRequestEntityTooLarge}
	validationActions = []admissionv1.ValidationAction{admissionv1.Audit, admissionv1.Deny, admissionv1.Warn}
	notFoundActions   = []admissionv1.ParameterNotFoundActionType{admissionv1.DenyAction, admissionv1.AllowAction}
)

// policy is what both kinds of policies have.
type policy struct {
	paramKind   *admissionv1.ParamKind
	constraints *admissionv1.MatchResources
	conditions  []admissionv1.MatchCondition
	variables   []admissionv1.Variable
	failure     *admissionv1.FailurePolicyType
	operations  []admissionv1.OperationType
}

func validatingPolicy(spec *admissionv1.ValidatingAdmissionPolicySpec) *policy {
	return &policy{spec.ParamKind, spec.MatchConstraints, spec.MatchConditions, spec.Variables, spec.FailurePolicy, operations}
}

func mutatingPolicy(spec *admissionv1.MutatingAdmissionPolicySpec) *policy {
	return &policy{spec.ParamKind, spec.MatchConstraints, spec.MatchConditions, spec.Variables, spec.FailurePolicy, mutableOperations}
}

// declarations are the names that expressions of the policy see beside the
// variables.
func (p *policy) declarations() plugincel.OptionalVariableDeclarations {
	return plugincel.OptionalVariableDeclarations{HasParams: p.paramKind != nil, HasAuthorizer: true}
}

func validateValidatingPolicy(p, old *admissionv1.ValidatingAdmissionPolicy) field.ErrorList {
	at, spec, shared := field.NewPath("spec"), &p.Spec, validatingPolicy(&p.Spec)
	var before *policy
	var stored []string
	if old != nil {
		before, stored = validatingPolicy(&old.Spec), validatingExpressions(&old.Spec)
	}
	cel := newExpressions(stored...)
	errs := shared.validate(at, cel, before)
	if len(spec.Validations)+len(spec.AuditAnnotations) == 0 {
		const why = "validations or auditAnnotations must contain at least one item"
		return append(errs, field.Required(at.Child("validations"), why), field.Required(at.Child("auditAnnotations"), why))
	}
	for i := range spec.Validations {
		errs = append(errs, shared.validateValidation(at.Child("validations").Index(i), cel, &spec.Validations[i])...)
	}
	return append(errs, shared.validateAudit(at.Child("auditAnnotations"), cel, p.Name, spec.AuditAnnotations)...)
}

func validateMutatingPolicy(p, old *admissionv1.MutatingAdmissionPolicy) field.ErrorList {
	at, spec, shared := field.NewPath("spec"), &p.Spec, mutatingPolicy(&p.Spec)
	var before *policy
	var stored []string
	if old != nil {
		before, stored = mutatingPolicy(&old.Spec), mutatingExpressions(&old.Spec)
	}
	cel := newExpressions(stored...)
	errs := shared.validate(at, cel, before)
	if len(spec.Mutations) == 0 {
		errs = append(errs, field.Required(at.Child("mutations"), "mutations must contain at least one item"))
	}
	for i := range spec.Mutations {
		errs = append(errs, shared.validateMutation(at.Child("mutations").Index(i), cel, &spec.Mutations[i])...)
	}
	if spec.ReinvocationPolicy == "" {
		return append(errs, field.Required(at.Child("reinvocationPolicy"), ""))
	}
	return append(errs, words.OneOf(at.Child("reinvocationPolicy"), spec.ReinvocationPolicy, reinvocations...)...)
}

func validatingExpressions(spec *admissionv1.ValidatingAdmissionPolicySpec) []string {
	all := validatingPolicy(spec).expressions()
	for _, v := range spec.Validations {
		all = append(all, v.Expression, v.MessageExpression)
	}
	for _, a := range spec.AuditAnnotations {
		all = append(all, strings.TrimSpace(a.ValueExpression))
	}
	return all
}

func mutatingExpressions(spec *admissionv1.MutatingAdmissionPolicySpec) []string {
	all := mutatingPolicy(spec).expressions()
	for _, m := range spec.Mutations {
		if m.ApplyConfiguration != nil {
			all = append(all, m.ApplyConfiguration.Expression)
		}
		if m.JSONPatch != nil {
			all = append(all, m.JSONPatch.Expression)
		}
	}
	return all
}

func (p *policy) expressions() []string {
	all := conditionExpressions(p.conditions)
	for _, v := range p.variables {
		all = append(all, v.Expression)
	}
	return all
}

// validate looks at everything that both kinds have, and declares the variables.
func (p *policy) validate(at *field.Path, cel *expressions, old *policy) field.ErrorList {
	errs := words.OneOfAlways(at.Child("failurePolicy"), p.failure, failurePolicies...)
	if p.paramKind != nil {
		errs = append(errs, validateParamKind(at.Child("paramKind"), p.paramKind)...)
	}
	if p.constraints == nil {
		errs = append(errs, field.Required(at.Child("matchConstraints"), ""))
	} else {
		errs = append(errs, validateMatchResources(at.Child("matchConstraints"), p.constraints, p.operations)...)
		// The rules are what the types of objects come from.
		errs = append(errs, words.AtLeastOne(at.Child("matchConstraints", "resourceRules"), p.constraints.ResourceRules)...)
	}
	same := old != nil && reflect.DeepEqual(p.paramKind, old.paramKind) && reflect.DeepEqual(p.conditions, old.conditions)
	if !same {
		errs = append(errs, cel.matchConditions(at.Child("matchConditions"), p.conditions, p.paramKind != nil)...)
	}
	return append(errs, p.declare(at.Child("variables"), cel)...)
}

func (p *policy) declare(at *field.Path, cel *expressions) field.ErrorList {
	if len(p.variables) == 0 {
		return nil
	}
	if err := cel.declareVariables(); err != nil {
		return field.ErrorList{field.InternalError(at, err)}
	}
	var errs field.ErrorList
	for i, v := range p.variables {
		here := at.Index(i)
		if strings.TrimSpace(v.Name) == "" {
			errs = append(errs, field.Required(here.Child("name"), "name is not specified"))
		} else if !isIdentifier(v.Name) {
			errs = append(errs, field.Invalid(here.Child("name"), v.Name, "must be a valid CEL identifier"))
		}
		if strings.TrimSpace(v.Expression) == "" {
			errs = append(errs, field.Required(here.Child("expression"), "expression is not specified"))
			continue
		}
		errs = append(errs, cel.declare(here.Child("expression"), variableOf(v), p.declarations())...)
	}
	return errs
}

func (p *policy) validateValidation(at *field.Path, cel *expressions, v *admissionv1.Validation) field.ErrorList {
	var errs field.ErrorList
	if strings.TrimSpace(v.Expression) == "" {
		errs = append(errs, field.Required(at.Child("expression"), "expression is not specified"))
	} else {
		// Not trimmed, so that the compiler's columns are those of the author.
		errs = append(errs, cel.compose(at.Child("expression"), expression{v.Expression, boolean}, p.declarations())...)
	}
	switch blank := strings.TrimSpace(v.MessageExpression) == ""; {
	case v.MessageExpression != "" && blank:
		errs = append(errs, field.Invalid(at.Child("messageExpression"), v.MessageExpression, "must be non-empty if specified"))
	case !blank:
		message := p.declarations()
		message.HasAuthorizer = false
		errs = append(errs, cel.compose(at.Child("messageExpression"), expression{v.MessageExpression, text}, message)...)
	}
	switch message := strings.TrimSpace(v.Message); {
	case v.Message != "" && message == "":
		errs = append(errs, field.Invalid(at.Child("message"), v.Message, "message must be non-empty if specified"))
	case strings.ContainsAny(message, "\n\r"):
		errs = append(errs, field.Invalid(at.Child("message"), v.Message, "message must not contain line breaks"))
	}
	return append(errs, words.OneOfIfSet(at.Child("reason"), v.Reason, denialReasons...)...)
}

func (p *policy) validateAudit(at *field.Path, cel *expressions, policyName string, annotations []admissionv1.AuditAnnotation) field.ErrorList {
	if len(annotations) > maxAuditAnnotations {
		return field.ErrorList{field.Invalid(at, annotations, fmt.Sprintf("must not have more than %d auditAnnotations", maxAuditAnnotations))}
	}
	var errs field.ErrorList
	keys := words.Unique{}
	for i, a := range annotations {
		key, value := at.Index(i).Child("key"), at.Index(i).Child("valueExpression")
		if policyName == "" {
			errs = append(errs, field.Invalid(key, a.Key, "requires metadata.name be non-empty"))
		} else {
			errs = append(errs, qualified(key, policyName+"/"+a.Key)...)
		}
		switch source := strings.TrimSpace(a.ValueExpression); {
		case source == "":
			errs = append(errs, field.Required(value, "valueExpression is not specified"))
		case len(source) > maxAuditExpression:
			errs = append(errs, field.Required(value, fmt.Sprintf("must not exceed %d bytes in length", maxAuditExpression)))
		default:
			errs = append(errs, cel.compose(value, expression{source, optionalText}, p.declarations())...)
		}
		errs = append(errs, keys.Add(key, a.Key)...)
	}
	return errs
}

func (p *policy) validateMutation(at *field.Path, cel *expressions, m *admissionv1.Mutation) field.ErrorList {
	apply, jsonPatch := at.Child("applyConfiguration"), at.Child("jsonPatch")
	switch m.PatchType {
	case "":
		return field.ErrorList{field.Required(at.Child("patchType"), "")}
	case admissionv1.PatchTypeApplyConfiguration:
		errs := unwanted(jsonPatch, m.JSONPatch != nil, "{jsonPatch}", m.PatchType)
		if m.ApplyConfiguration == nil {
			return append(errs, field.Required(apply, "must be specified when patchType is ApplyConfiguration"))
		}
		return append(errs, p.validatePatch(apply.Child("expression"), cel, expression{m.ApplyConfiguration.Expression, applyConfiguration})...)
	case admissionv1.PatchTypeJSONPatch:
		errs := unwanted(apply, m.ApplyConfiguration != nil, "{applyConfiguration}", m.PatchType)
		if m.JSONPatch == nil {
			return append(errs, field.Required(jsonPatch, "must be specified when patchType is JSONPatch"))
		}
		return append(errs, p.validatePatch(jsonPatch.Child("expression"), cel, expression{m.JSONPatch.Expression, jsonPatches})...)
	}
	return words.OneOf(at.Child("patchType"), m.PatchType, mutationTypes...)
}

func unwanted(at *field.Path, present bool, value string, patchType admissionv1.PatchType) field.ErrorList {
	if !present {
		return nil
	}
	return field.ErrorList{field.Invalid(at, value, fmt.Sprintf("must not be specified when patchType is %s", patchType))}
}

func (p *policy) validatePatch(at *field.Path, cel *expressions, x expression) field.ErrorList {
	if strings.TrimSpace(x.source) == "" {
		return field.ErrorList{field.Required(at, "")}
	}
	declarations := p.declarations()
	declarations.HasPatchTypes = true
	return cel.compose(at, x, declarations)
}

func validateParamKind(at *field.Path, kind *admissionv1.ParamKind) field.ErrorList {
	var errs field.ErrorList
	if kind.APIVersion == "" {
		errs = append(errs, field.Required(at.Child("apiVersion"), ""))
	} else {
		errs = append(errs, validateGroupVersion(at.Child("apiVersion"), kind.APIVersion)...)
	}
	if kind.Kind == "" {
		return append(errs, field.Required(at.Child("kind"), ""))
	}
	if msgs := formats.IsDNS1035Label(strings.ToLower(kind.Kind)); len(msgs) > 0 {
		errs = append(errs, field.Invalid(at.Child("kind"), kind.Kind, "may have mixed case, but should otherwise match: "+strings.Join(msgs, ",")))
	}
	return errs
}

func validateGroupVersion(at *field.Path, apiVersion string) field.ErrorList {
	if strings.Count(apiVersion, "/") > 1 {
		return field.ErrorList{field.Invalid(at, apiVersion, "unexpected GroupVersion string: "+apiVersion)}
	}
	group, version, found := strings.Cut(apiVersion, "/")
	if !found {
		group, version = "", apiVersion
	}
	var errs field.ErrorList
	if msgs := formats.IsDNS1123Subdomain(group); group != "" && len(msgs) > 0 {
		errs = append(errs, field.Invalid(at, group, strings.Join(msgs, ",")))
	}
	if version == "" {
		return append(errs, field.Invalid(at, apiVersion, "version must be specified"))
	}
	if msgs := formats.IsDNS1035Label(version); len(msgs) > 0 {
		errs = append(errs, field.Invalid(at, version, strings.Join(msgs, ",")))
	}
	return errs
}

func validateMatchResources(at *field.Path, m *admissionv1.MatchResources, allowed []admissionv1.OperationType) field.ErrorList {
	if m == nil {
		return nil
	}
	errs := words.OneOfAlways(at.Child("matchPolicy"), m.MatchPolicy, matchPolicies...)
	errs = append(errs, selectsAlways(at.Child("namespaceSelector"), m.NamespaceSelector)...)
	errs = append(errs, selectsAlways(at.Child("objectSelector"), m.ObjectSelector)...)
	for i := range m.ResourceRules {
		errs = append(errs, validateNamedRule(at.Child("resourceRules").Index(i), &m.ResourceRules[i])...)
	}
	for i := range m.ExcludeResourceRules {
		errs = append(errs, validateNamedRule(at.Child("excludeResourceRules").Index(i), &m.ExcludeResourceRules[i])...)
	}
	if len(allowed) == len(operations) {
		return errs
	}
	for i := range m.ResourceRules {
		for _, operation := range m.ResourceRules[i].Operations {
			// Without an index, as in kube-apiserver.
			errs = append(errs, words.OneOf(at.Child("resourceRules", "operations"), operation, allowed...)...)
		}
	}
	return errs
}

// selectsAlways is for selectors that defaulting fills in.
func selectsAlways(at *field.Path, selector *metav1.LabelSelector) field.ErrorList {
	if selector == nil {
		return field.ErrorList{field.Required(at, "")}
	}
	return words.Selects(at, selector, metavalidation.LabelSelectorValidationOptions{})
}

func validateNamedRule(at *field.Path, rule *admissionv1.NamedRuleWithOperations) field.ErrorList {
	var errs field.ErrorList
	names := words.Unique{}
	for i, name := range rule.ResourceNames {
		here := at.Child("resourceNames").Index(i)
		errs = append(errs, words.Named(here, name, kinds.PathSegmentName)...)
		errs = append(errs, names.Add(here, name)...)
	}
	return append(errs, validateRule(at, &rule.RuleWithOperations)...)
}

func validateValidatingPolicyBinding(b *admissionv1.ValidatingAdmissionPolicyBinding) field.ErrorList {
	at, spec := field.NewPath("spec"), &b.Spec
	errs := validateBinding(at, spec.PolicyName, spec.ParamRef)
	errs = append(errs, validateMatchResources(at.Child("matchResources"), spec.MatchResources, operations)...)
	errs = append(errs, validateActions(at.Child("validationActions"), spec.ValidationActions)...)
	if spec.PolicyName == "" {
		errs = append(errs, field.Required(at.Child("policyName"), ""))
	}
	return append(errs, words.AtLeastOne(at.Child("validationActions"), spec.ValidationActions)...)
}

func validateMutatingPolicyBinding(b *admissionv1.MutatingAdmissionPolicyBinding) field.ErrorList {
	at, spec := field.NewPath("spec"), &b.Spec
	var errs field.ErrorList
	if spec.PolicyName == "" {
		errs = append(errs, field.Required(at.Child("policyName"), ""))
	}
	errs = append(errs, validateBinding(at, spec.PolicyName, spec.ParamRef)...)
	return append(errs, validateMatchResources(at.Child("matchResources"), spec.MatchResources, mutableOperations)...)
}

func validateBinding(at *field.Path, policyName string, ref *admissionv1.ParamRef) field.ErrorList {
	var errs field.ErrorList
	if policyName != "" {
		errs = words.Named(at.Child("policyName"), policyName, validation.NameIsDNSSubdomain)
	}
	if ref == nil {
		return errs
	}
	return append(errs, validateParamRef(at.Child("paramRef"), ref)...)
}

func validateParamRef(at *field.Path, ref *admissionv1.ParamRef) field.ErrorList {
	var errs field.ErrorList
	if ref.Name != "" {
		errs = append(errs, words.Named(at.Child("name"), ref.Name, kinds.PathSegmentName)...)
	}
	errs = append(errs, words.Selects(at.Child("selector"), ref.Selector, metavalidation.LabelSelectorValidationOptions{})...)
	switch {
	case ref.Name == "" && ref.Selector == nil:
		errs = append(errs, field.Required(at, "one of name or selector must be specified"))
	case ref.Name != "" && ref.Selector != nil:
		const why = "name and selector are mutually exclusive"
		errs = append(errs, field.Forbidden(at.Child("name"), why), field.Forbidden(at.Child("selector"), why))
	}
	if ref.ParameterNotFoundAction == nil || *ref.ParameterNotFoundAction == "" {
		return append(errs, field.Required(at.Child("parameterNotFoundAction"), ""))
	}
	return append(errs, words.OneOf(at.Child("parameterNotFoundAction"), *ref.ParameterNotFoundAction, notFoundActions...)...)
}

func validateActions(at *field.Path, actions []admissionv1.ValidationAction) field.ErrorList {
	var errs field.ErrorList
	seen := words.Unique{}
	for i, action := range actions {
		errs = append(errs, words.OneOf(at.Index(i), action, validationActions...)...)
		errs = append(errs, seen.Add(at.Index(i), string(action))...)
	}
	if seen[string(admissionv1.Deny)] && seen[string(admissionv1.Warn)] {
		errs = append(errs, field.Invalid(at, actions, "must not contain both Deny and Warn (repeating the same validation failure information in the API response and headers serves no purpose)"))
	}
	return errs
}

func validateValidatingPolicyStatus(status *admissionv1.ValidatingAdmissionPolicyStatus) field.ErrorList {
	at := field.NewPath("status")
	errs := metavalidation.ValidateConditions(status.Conditions, at.Child("conditions"))
	if status.TypeChecking == nil {
		return errs
	}
	for i, warning := range status.TypeChecking.ExpressionWarnings {
		here := at.Child("typeChecking", "expressionWarnings").Index(i)
		if warning.Warning == "" {
			errs = append(errs, field.Required(here.Child("warning"), ""))
		}
		errs = append(errs, validateFieldRef(here.Child("fieldRef"), strings.TrimSpace(warning.FieldRef))...)
	}
	return errs
}

func validateFieldRef(at *field.Path, ref string) field.ErrorList {
	if ref == "" {
		return field.ErrorList{field.Required(at, "")}
	}
	if err := jsonpath.New("spec").Parse("{" + ref + "}"); err != nil {
		return field.ErrorList{field.Invalid(at, ref, fmt.Sprintf("invalid JSONPath: %v", err))}
	}
	return nil
}
