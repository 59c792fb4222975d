package cli

import (
	"github.com/espalier-dev/espalier/finding"
)

// The checks of objects that are not about values.
const (
	idObjectType       finding.ID = "object-type"
	idObjectSkipped    finding.ID = "object-skipped"
	idObjectNew        finding.ID = "object-new"
	idCRDMissing       finding.ID = "crd-missing"
	idCRDInvalid       finding.ID = "crd-invalid"
	idVersionUnknown   finding.ID = "version-unknown"
	idVersionUnserved  finding.ID = "version-unserved"
	idVersionDeprecate finding.ID = "version-deprecated"
	idFieldUnknown     finding.ID = "field-unknown"
	idFieldDuplicate   finding.ID = "field-duplicate"
	idFieldNull        finding.ID = "field-null"
	idMetadataCoerced  finding.ID = "metadata-coerced"
	idMetadata         finding.ID = "value-metadata"
	idNamespaceIgnored finding.ID = "namespace-ignored"
	idStatusIgnored    finding.ID = "status-ignored"
	idResourceVersion  finding.ID = "resource-version-set"
	idFinalizer        finding.ID = "finalizer-unqualified"
	idOwnerTwice       finding.ID = "owner-duplicate"
	idNoSubresource    finding.ID = "subresource-missing"
	idScale            finding.ID = "value-scale"
	idKindUnknown      finding.ID = "kind-unknown"
	idServerWarning    finding.ID = "server-warning"
	idInvalid          finding.ID = "value-invalid"
	idConversion       finding.ID = "conversion-failed"
)

// objectCheck is a check of objects.
type objectCheck struct {
	finding.Check
	Keywords []string // of violations that the check reports
}

const (
	sourceAPI       = "Kubernetes API conventions"
	sourceStructure = "KEP: structural schemas"
	sourcePruning   = "KEP: pruning of custom resources"
	sourceVersions  = "CRD versioning"
	sourceOpenAPI   = "OpenAPI v3"
	sourceFields    = "Kubernetes server-side field validation"
)

// objectChecks are all checks of objects.
var objectChecks = []objectCheck{
	{finding.New(idObjectType, finding.Error, "An object must have apiVersion and kind.", sourceAPI), nil},
	{finding.New(idObjectSkipped, finding.Info, "Espalier does not validate files that configure tools, and versions of built-in kinds that are off by default.", sourceAPI), nil},
	{finding.New(idKindUnknown, finding.Error, "The API server must have the kind.", sourceAPI), nil},
	{finding.New(idServerWarning, finding.Warning, "The API server accepts the object, and sends this warning to the client.", "KEP-1693"), nil},
	{finding.New(idInvalid, finding.Error, "Objects of a built-in kind must satisfy the rules of the kind.", sourceAPI), nil},
	{finding.New(idObjectNew, finding.Info, "Espalier validates an object without an old object as a create.", sourceAPI), nil},
	{finding.New(idConversion, finding.Error, "The CRD must have a way to convert its objects to other versions.", sourceVersions), nil},
	{finding.New(idCRDMissing, finding.Error, "The API server knows a custom resource only if its CRD exists.", sourceAPI), nil},
	{finding.New(idCRDInvalid, finding.Error, "The API server would reject the CRD of this object.", sourceStructure), nil},
	{finding.New(idVersionUnknown, finding.Error, "The version in apiVersion must be one that the API server has for the kind.", sourceVersions), nil},
	{finding.New(idVersionUnserved, finding.Error, "Clients cannot read or write a version that is not served.", sourceVersions), nil},
	{finding.New(idVersionDeprecate, finding.Warning, "The version is deprecated. The API server serves it until the authors of the CRD remove it.", sourceVersions), nil},
	{finding.New(idFieldUnknown, finding.Error, "The schema does not specify this field. The API server prunes it, and its value is lost.", sourcePruning), nil},
	{finding.New(idFieldDuplicate, finding.Error, "A key must appear only once. The API server stores only the last value.", sourceFields), nil},
	{finding.New(idFieldNull, finding.Info, "The API server drops null if the field is not nullable and has no default.", "KEP: defaulting of custom resources"), nil},
	{finding.New(idMetadataCoerced, finding.Info, "The API server converts metadata to ObjectMeta, so the stored metadata can differ from the manifest.", sourceAPI), nil},
	{finding.New(idNamespaceIgnored, finding.Warning, "A cluster-scoped object has no namespace. The API server removes metadata.namespace.", sourceAPI), nil},
	{finding.New(idStatusIgnored, finding.Warning, "With the status subresource, only writes to /status change status.", "Kubernetes subresources"), nil},
	{finding.New(idResourceVersion, finding.Error, "metadata.resourceVersion must be empty in a new object. The API server sets it.", sourceAPI), nil},
	{finding.New(idOwnerTwice, finding.Warning, "metadata.ownerReferences should list each owner once. The API server removes duplicates.", sourceAPI), nil},
	{finding.New(idNoSubresource, finding.Error, "An update of /status requires the status subresource in the CRD version.", "Kubernetes subresources"), nil},
	{finding.New(idFinalizer, finding.Warning, "A finalizer should be qualified with a domain, so that no two controllers use the same name.", sourceAPI), nil},
	{finding.New(idScale, finding.Error, "The fields of the scale subresource must contain a replica count or a label selector.", "Kubernetes subresources"), nil},
	{finding.New(idMetadata, finding.Error, "metadata must satisfy the requirements of Kubernetes for all objects.", sourceAPI), []string{"metadata"}},
	{finding.New("value-type", finding.Error, "A value must have the type in the schema.", sourceStructure), []string{"type"}},
	{finding.New("value-required", finding.Error, "A required field must be set, unless it has a default.", sourceOpenAPI), []string{"required"}},
	{finding.New("value-enum", finding.Error, "A value must be one of the values in the enum.", sourceOpenAPI), []string{"enum"}},
	{finding.New("value-format", finding.Error, "A string must match its format.", sourceOpenAPI), []string{"format"}},
	{finding.New("value-pattern", finding.Error, "A string must match the pattern.", sourceOpenAPI), []string{"pattern"}},
	{finding.New("value-length", finding.Error, "The length of a string must be between minLength and maxLength.", sourceOpenAPI), []string{"minLength", "maxLength"}},
	{finding.New("value-minimum", finding.Error, "A number must not be below the minimum.", sourceOpenAPI), []string{"minimum", "exclusiveMinimum"}},
	{finding.New("value-maximum", finding.Error, "A number must not be above the maximum.", sourceOpenAPI), []string{"maximum", "exclusiveMaximum"}},
	{finding.New("value-multiple", finding.Error, "A number must be a multiple of multipleOf.", sourceOpenAPI), []string{"multipleOf"}},
	{finding.New("value-items", finding.Error, "The number of items in a list must be between minItems and maxItems.", sourceOpenAPI), []string{"minItems", "maxItems"}},
	{finding.New("value-properties", finding.Error, "The number of fields of an object must be between minProperties and maxProperties.", sourceOpenAPI),
		[]string{"minProperties", "maxProperties"}},
	{finding.New("value-forbidden", finding.Error, "With additionalProperties: false, the API server rejects fields that the schema does not specify.", sourceOpenAPI), []string{"additionalProperties"}},
	{finding.New("value-unique", finding.Error, "With uniqueItems: true, a list must not contain equal items.", sourceOpenAPI), []string{"uniqueItems"}},
	{finding.New("value-list-duplicate", finding.Error, "A list of type set must not contain equal items. A list of type map must not contain two items with the same keys.", "KEP: merge strategies of custom resources"),
		[]string{"x-kubernetes-list-type"}},
	{finding.New("value-any-of", finding.Error, "A value must match at least one branch of anyOf.", sourceOpenAPI), []string{"anyOf"}},
	{finding.New("value-one-of", finding.Error, "A value must match exactly one branch of oneOf.", sourceOpenAPI), []string{"oneOf"}},
	{finding.New("value-all-of", finding.Error, "A value must match all branches of allOf.", sourceOpenAPI), []string{"allOf"}},
	{finding.New("value-not", finding.Error, "A value must not match the schema under not.", sourceOpenAPI), []string{"not"}},
	{finding.New("value-union", finding.Error, "At most one field of a union may be set, and the discriminator must name it.", sourceStructure), []string{"x-kubernetes-unions"}},
	{finding.New("value-rule", finding.Error, "Objects must satisfy the CRD's CEL rules.", "KEP-2876"), []string{"x-kubernetes-validations"}},
	{finding.New("value-read-only", finding.Info, "Clients should not change a read-only field.", sourceOpenAPI), []string{"readOnly"}},
}

var checkOfKeyword = func() map[string]finding.ID {
	checks := make(map[string]finding.ID)
	for _, r := range objectChecks {
		for _, k := range r.Keywords {
			checks[k] = r.ID
		}
	}
	return checks
}()
