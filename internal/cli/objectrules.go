package cli

import (
	"github.com/espalier-dev/espalier/finding"
)

// The rules for objects that are not about values.
const (
	ruleObjectType       finding.ID = "object-type"
	ruleObjectSkipped    finding.ID = "object-skipped"
	ruleObjectNew        finding.ID = "object-new"
	ruleCRDMissing       finding.ID = "crd-missing"
	ruleCRDInvalid       finding.ID = "crd-invalid"
	ruleVersionUnknown   finding.ID = "version-unknown"
	ruleVersionUnserved  finding.ID = "version-unserved"
	ruleVersionDeprecate finding.ID = "version-deprecated"
	ruleFieldUnknown     finding.ID = "field-unknown"
	ruleFieldDuplicate   finding.ID = "field-duplicate"
	ruleFieldNull        finding.ID = "field-null"
	ruleMetadataCoerced  finding.ID = "metadata-coerced"
	ruleMetadata         finding.ID = "value-metadata"
	ruleNamespaceIgnored finding.ID = "namespace-ignored"
	ruleStatusIgnored    finding.ID = "status-ignored"
	ruleResourceVersion  finding.ID = "resource-version-set"
	ruleFinalizer        finding.ID = "finalizer-unqualified"
	ruleOwnerTwice       finding.ID = "owner-duplicate"
	ruleNoSubresource    finding.ID = "subresource-missing"
	ruleScale            finding.ID = "value-scale"
)

// objectRule is a rule for objects.
type objectRule struct {
	finding.Check
	Keywords []string // of violations of the rule
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
	{finding.New(ruleObjectType, finding.Error, "An object says what it is: its apiVersion and its kind.", sourceAPI), nil},
	{finding.New(ruleObjectSkipped, finding.Info, "Kinds of Kubernetes itself have no CRD, and are not judged.", sourceAPI), nil},
	{finding.New(ruleObjectNew, finding.Info, "An object that is not among the old ones is judged as a new one.", sourceAPI), nil},
	{finding.New(ruleCRDMissing, finding.Error, "A server knows a custom resource only by its CRD.", sourceAPI), nil},
	{finding.New(ruleCRDInvalid, finding.Error, "Objects of a CRD that a server refuses cannot exist.", sourceStructure), nil},
	{finding.New(ruleVersionUnknown, finding.Error, "A CRD lists the versions that its objects can have.", sourceVersions), nil},
	{finding.New(ruleVersionUnserved, finding.Error, "A version that is not served cannot be written or read.", sourceVersions), nil},
	{finding.New(ruleVersionDeprecate, finding.Warning, "A deprecated version is served until its authors remove it.", sourceVersions), nil},
	{finding.New(ruleFieldUnknown, finding.Error, "A field that the schema does not specify is pruned: what it says is lost.", sourcePruning), nil},
	{finding.New(ruleFieldDuplicate, finding.Error, "A key counts once: of several only the last value is stored.", sourceFields), nil},
	{finding.New(ruleFieldNull, finding.Info, "A null that is not nullable and has no default is dropped.", "KEP: defaulting of custom resources"), nil},
	{finding.New(ruleMetadataCoerced, finding.Info, "Metadata is stored in the form of ObjectMeta, and what does not fit is dropped.", sourceAPI), nil},
	{finding.New(ruleNamespaceIgnored, finding.Warning, "Objects of cluster scope have no namespace: the server removes it.", sourceAPI), nil},
	{finding.New(ruleStatusIgnored, finding.Warning, "With the status subresource, status is written through that alone.", "Kubernetes subresources"), nil},
	{finding.New(ruleResourceVersion, finding.Error, "metadata.resourceVersion must be empty in a new object: the server sets it.", sourceAPI), nil},
	{finding.New(ruleOwnerTwice, finding.Warning, "Each owner must be listed once: the server removes the others.", sourceAPI), nil},
	{finding.New(ruleNoSubresource, finding.Error, "Only versions with a status subresource have a status that is written by itself.", "Kubernetes subresources"), nil},
	{finding.New(ruleFinalizer, finding.Warning, "Finalizers have the name of a domain, so that no two controllers use the same.", sourceAPI), nil},
	{finding.New(ruleScale, finding.Error, "What the scale subresource reads is a count of replicas, or a selector.", "Kubernetes subresources"), nil},
	{finding.New(ruleMetadata, finding.Error, "The metadata of objects follows the rules that hold for all of Kubernetes.", sourceAPI), []string{"metadata"}},
	{finding.New("value-type", finding.Error, "A value has the type that the schema states.", sourceStructure), []string{"type"}},
	{finding.New("value-required", finding.Error, "A required field is there, unless its default is filled in.", sourceOpenAPI), []string{"required"}},
	{finding.New("value-enum", finding.Error, "A value is one of those that the enum lists.", sourceOpenAPI), []string{"enum"}},
	{finding.New("value-format", finding.Error, "A string has the form that its format names.", sourceOpenAPI), []string{"format"}},
	{finding.New("value-pattern", finding.Error, "A string matches the pattern.", sourceOpenAPI), []string{"pattern"}},
	{finding.New("value-length", finding.Error, "A string is neither shorter than minLength nor longer than maxLength.", sourceOpenAPI), []string{"minLength", "maxLength"}},
	{finding.New("value-minimum", finding.Error, "A number is not below the minimum.", sourceOpenAPI), []string{"minimum", "exclusiveMinimum"}},
	{finding.New("value-maximum", finding.Error, "A number is not above the maximum.", sourceOpenAPI), []string{"maximum", "exclusiveMaximum"}},
	{finding.New("value-multiple", finding.Error, "A number is a multiple of what multipleOf says.", sourceOpenAPI), []string{"multipleOf"}},
	{finding.New("value-items", finding.Error, "A list has neither fewer items than minItems nor more than maxItems.", sourceOpenAPI), []string{"minItems", "maxItems"}},
	{finding.New("value-properties", finding.Error, "An object has neither fewer fields than minProperties nor more than maxProperties.", sourceOpenAPI),
		[]string{"minProperties", "maxProperties"}},
	{finding.New("value-forbidden", finding.Error, "additionalProperties: false forbids every field that is not specified.", sourceOpenAPI), []string{"additionalProperties"}},
	{finding.New("value-unique", finding.Error, "uniqueItems forbids equal items in a list.", sourceOpenAPI), []string{"uniqueItems"}},
	{finding.New("value-list-duplicate", finding.Error, "Lists of type set or map have no two items that are equal, or have equal keys.", "KEP: merge strategies of custom resources"),
		[]string{"x-kubernetes-list-type"}},
	{finding.New("value-any-of", finding.Error, "A value satisfies at least one branch of anyOf.", sourceOpenAPI), []string{"anyOf"}},
	{finding.New("value-one-of", finding.Error, "A value satisfies exactly one branch of oneOf.", sourceOpenAPI), []string{"oneOf"}},
	{finding.New("value-all-of", finding.Error, "A value satisfies all branches of allOf.", sourceOpenAPI), []string{"allOf"}},
	{finding.New("value-not", finding.Error, "A value does not satisfy the schema under not.", sourceOpenAPI), []string{"not"}},
	{finding.New("value-union", finding.Error, "Of the fields of a union at most one is set, and the discriminator names it.", sourceStructure), []string{"x-kubernetes-unions"}},
	{finding.New("value-rule", finding.Error, "An object satisfies the CEL rules that its CRD's authors have written.", "KEP-2876"), []string{"x-kubernetes-validations"}},
	{finding.New("value-read-only", finding.Info, "A read-only field is not for clients to change.", sourceOpenAPI), []string{"readOnly"}},
}

var ruleOfKeyword = func() map[string]finding.ID {
	rules := make(map[string]finding.ID)
	for _, r := range objectRules {
		for _, k := range r.Keywords {
			rules[k] = r.ID
		}
	}
	return rules
}()
