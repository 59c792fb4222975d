package cli

import "github.com/espalier-dev/espalier/internal/report"

// The rules for objects that are not about values.
const (
	ruleObjectType       = "object-type"
	ruleObjectSkipped    = "object-skipped"
	ruleObjectNew        = "object-new"
	ruleCRDMissing       = "crd-missing"
	ruleCRDInvalid       = "crd-invalid"
	ruleVersionUnknown   = "version-unknown"
	ruleVersionUnserved  = "version-unserved"
	ruleVersionDeprecate = "version-deprecated"
	ruleFieldUnknown     = "field-unknown"
	ruleFieldDuplicate   = "field-duplicate"
	ruleFieldNull        = "field-null"
	ruleMetadataCoerced  = "metadata-coerced"
	ruleMetadata         = "value-metadata"
	ruleNamespaceIgnored = "namespace-ignored"
	ruleStatusIgnored    = "status-ignored"
	ruleResourceVersion  = "resource-version-set"
	ruleFinalizer        = "finalizer-unqualified"
	ruleScale            = "value-scale"
)

// objectRule is a rule for objects.
type objectRule struct {
	ID          string
	Severity    report.Severity
	Explanation string
	Source      string
	Keywords    []string // of violations of the rule
}

const (
	sourceAPI       = "Kubernetes API conventions"
	sourceStructure = "KEP: structural schemas"
	sourcePruning   = "KEP: pruning of custom resources"
	sourceVersions  = "CRD versioning"
	sourceOpenAPI   = "OpenAPI v3"
	sourceFields    = "Kubernetes server-side field validation"
)

// objectRules are all rules for objects.
var objectRules = []objectRule{
	{ruleObjectType, report.Error, "An object says what it is: its apiVersion and its kind.", sourceAPI, nil},
	{ruleObjectSkipped, report.Info, "Kinds of Kubernetes itself have no CRD, and are not judged.", sourceAPI, nil},
	{ruleObjectNew, report.Info, "An object that is not among the old ones is judged as a new one.", sourceAPI, nil},
	{ruleCRDMissing, report.Error, "A server knows a custom resource only by its CRD.", sourceAPI, nil},
	{ruleCRDInvalid, report.Error, "Objects of a CRD that a server refuses cannot exist.", sourceStructure, nil},
	{ruleVersionUnknown, report.Error, "A CRD lists the versions that its objects can have.", sourceVersions, nil},
	{ruleVersionUnserved, report.Error, "A version that is not served cannot be written or read.", sourceVersions, nil},
	{ruleVersionDeprecate, report.Warning, "A deprecated version is served until its authors remove it.", sourceVersions, nil},
	{ruleFieldUnknown, report.Error, "A field that the schema does not specify is pruned: what it says is lost.", sourcePruning, nil},
	{ruleFieldDuplicate, report.Error, "A key counts once: of several only the last value is stored.", sourceFields, nil},
	{ruleFieldNull, report.Info, "A null that is not nullable and has no default is dropped.", "KEP: defaulting of custom resources", nil},
	{ruleMetadataCoerced, report.Info, "Metadata is stored in the form of ObjectMeta, and what does not fit is dropped.", sourceAPI, nil},
	{ruleNamespaceIgnored, report.Warning, "Objects of cluster scope have no namespace: the server removes it.", sourceAPI, nil},
	{ruleStatusIgnored, report.Warning, "With the status subresource, status is written through that alone.", "Kubernetes subresources", nil},
	{ruleResourceVersion, report.Warning, "A new object has no resourceVersion: a server does not create one that has.", sourceAPI, nil},
	{ruleFinalizer, report.Warning, "Finalizers have the name of a domain, so that no two controllers use the same.", sourceAPI, nil},
	{ruleScale, report.Error, "What the scale subresource reads is a count of replicas, or a selector.", "Kubernetes subresources", nil},
	{ruleMetadata, report.Error, "The metadata of objects follows the rules that hold for all of Kubernetes.", sourceAPI, []string{"metadata"}},
	{"value-type", report.Error, "A value has the type that the schema states.", sourceStructure, []string{"type"}},
	{"value-required", report.Error, "A required field is there, unless its default is filled in.", sourceOpenAPI, []string{"required"}},
	{"value-enum", report.Error, "A value is one of those that the enum lists.", sourceOpenAPI, []string{"enum"}},
	{"value-format", report.Error, "A string has the form that its format names.", sourceOpenAPI, []string{"format"}},
	{"value-pattern", report.Error, "A string matches the pattern.", sourceOpenAPI, []string{"pattern"}},
	{"value-length", report.Error, "A string is neither shorter than minLength nor longer than maxLength.", sourceOpenAPI, []string{"minLength", "maxLength"}},
	{"value-minimum", report.Error, "A number is not below the minimum.", sourceOpenAPI, []string{"minimum", "exclusiveMinimum"}},
	{"value-maximum", report.Error, "A number is not above the maximum.", sourceOpenAPI, []string{"maximum", "exclusiveMaximum"}},
	{"value-multiple", report.Error, "A number is a multiple of what multipleOf says.", sourceOpenAPI, []string{"multipleOf"}},
	{"value-items", report.Error, "A list has neither fewer items than minItems nor more than maxItems.", sourceOpenAPI, []string{"minItems", "maxItems"}},
	{"value-properties", report.Error, "An object has neither fewer fields than minProperties nor more than maxProperties.", sourceOpenAPI,
		[]string{"minProperties", "maxProperties"}},
	{"value-forbidden", report.Error, "additionalProperties: false forbids every field that is not specified.", sourceOpenAPI, []string{"additionalProperties"}},
	{"value-unique", report.Error, "uniqueItems forbids equal items in a list.", sourceOpenAPI, []string{"uniqueItems"}},
	{"value-list-duplicate", report.Error, "Lists of type set or map have no two items that are equal, or have equal keys.", "KEP: merge strategies of custom resources",
		[]string{"x-kubernetes-list-type"}},
	{"value-any-of", report.Error, "A value satisfies at least one branch of anyOf.", sourceOpenAPI, []string{"anyOf"}},
	{"value-one-of", report.Error, "A value satisfies exactly one branch of oneOf.", sourceOpenAPI, []string{"oneOf"}},
	{"value-all-of", report.Error, "A value satisfies all branches of allOf.", sourceOpenAPI, []string{"allOf"}},
	{"value-not", report.Error, "A value does not satisfy the schema under not.", sourceOpenAPI, []string{"not"}},
	{"value-union", report.Error, "Of the fields of a union at most one is set, and the discriminator names it.", sourceStructure, []string{"x-kubernetes-unions"}},
	{"value-rule", report.Error, "An object satisfies the CEL rules that its CRD's authors have written.", "KEP-2876", []string{"x-kubernetes-validations"}},
	{"value-read-only", report.Info, "A read-only field is not for clients to change.", sourceOpenAPI, []string{"readOnly"}},
}

var ruleOfKeyword = func() map[string]string {
	rules := make(map[string]string)
	for _, r := range objectRules {
		for _, k := range r.Keywords {
			rules[k] = r.ID
		}
	}
	return rules
}()
