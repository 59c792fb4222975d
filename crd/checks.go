package crd

import "github.com/espalier-dev/espalier/finding"

const (
	upstream        = "apiextensions.k8s.io/v1 validation"
	objects         = "Kubernetes API conventions, metadata"
	fieldValidation = "Kubernetes server-side field validation"
	approval        = "KEP-1111 protection of community groups"
	engine          = "Espalier"
)

// checkID is the index of a check in Checks.
type checkID uint8

// Checks is the table of the checks of a CRD outside its schemas. The
// identifiers are stable: programs select and suppress findings
// by them.
var Checks []finding.Check

// declare adds a check to Checks.
func declare(id finding.ID, severity finding.Severity, explanation, source string) checkID {
	Checks = append(Checks, finding.New(id, severity, explanation, source))
	return checkID(len(Checks) - 1)
}

var (
	apiVersionRemoved = declare("api-version-removed", finding.Error, "CRDs must use apiextensions.k8s.io/v1. Kubernetes 1.22 removed v1beta1.", upstream)
	unknownField      = declare("unknown-field", finding.Warning, "A CRD must not have unknown fields. The API server drops them, or rejects the CRD if field validation is strict.", fieldValidation)
	objectMetadata    = declare("object-metadata", finding.Error, "The metadata of a CRD must be valid: names, labels, annotations and owner references. An update must not change immutable metadata.", objects)
	nameMismatch      = declare("name-mismatch", finding.Error, "metadata.name must be PLURAL.GROUP, from spec.names.plural and spec.group.", upstream)
	apiApproval       = declare("api-approval", finding.Error, "API groups below k8s.io and kubernetes.io need the annotation api-approved.kubernetes.io. Its value must be the URL of the approval, or a reason that begins with unapproved.", approval)

	groupRequired     = declare("group-required", finding.Error, "spec.group must be set.", upstream)
	groupDomain       = declare("group-domain", finding.Error, "spec.group must be a lower-case domain name with at least one dot.", upstream)
	scopeUnknown      = declare("scope-unknown", finding.Error, "spec.scope must be Cluster or Namespaced.", upstream)
	namesRequired     = declare("names-required", finding.Error, "spec.names.plural and spec.names.kind must be set. The API server derives singular and listKind from the kind.", upstream)
	namesInvalid      = declare("names-invalid", finding.Error, "Names of a resource must be DNS labels. Only kind and listKind may contain capital letters.", upstream)
	kindListKindEqual = declare("kind-list-kind-equal", finding.Error, "spec.names.listKind must differ from spec.names.kind.", upstream)

	versionName           = declare("version-name", finding.Error, "The name of a version must be a DNS label, such as v1beta1.", upstream)
	versionNameDuplicate  = declare("version-name-duplicate", finding.Error, "Each version must have a unique name.", upstream)
	versionsStorage       = declare("versions-storage", finding.Error, "Exactly one version must have storage: true.", upstream)
	deprecationWarning    = declare("deprecation-warning", finding.Error, "deprecationWarning must be one line of at most 256 printable characters. Only deprecated versions may set it.", upstream)
	schemaRequired        = declare("schema-required", finding.Error, "Every version must have a schema.", upstream)
	preserveUnknownFields = declare("preserve-unknown-fields", finding.Error, "spec.preserveUnknownFields must be false. Use x-kubernetes-preserve-unknown-fields in the schema instead.", upstream)
	preserveWithDefaults  = declare("preserve-with-defaults", finding.Error, "A CRD with defaults must not set spec.preserveUnknownFields: true.", upstream)

	printerColumn           = declare("printer-column", finding.Error, "A printer column must have a name, a known type and a jsonPath that begins with a dot. Its format, if set, must be known.", upstream)
	scalePath               = declare("scale-path", finding.Error, "specReplicasPath must be below .spec and statusReplicasPath below .status. labelSelectorPath must be below one of them.", upstream)
	selectableField         = declare("selectable-field", finding.Error, "A selectable field must be a string, boolean or integer that the schema specifies outside metadata. Each field may be listed once.", upstream)
	selectableFieldsSchema  = declare("selectable-fields-schema", finding.Error, "A version with selectableFields must have a schema. With several versions, both the schemas and the selectableFields must be the same in all versions, or both must differ.", upstream)
	selectableFieldsTooMany = declare("selectable-fields-too-many", finding.Error, "A version may have at most 8 selectable fields.", upstream)

	conversionStrategy       = declare("conversion-strategy", finding.Error, "spec.conversion.strategy must be None or Webhook.", upstream)
	conversionPreserve       = declare("conversion-preserve", finding.Error, "A CRD with a conversion webhook must not set spec.preserveUnknownFields: true.", upstream)
	conversionUnused         = declare("conversion-unused", finding.Error, "spec.conversion.webhook may only be set with strategy: Webhook.", upstream)
	conversionClientConfig   = declare("conversion-client-config", finding.Error, "clientConfig of a conversion webhook must set either url or service.", upstream)
	conversionURL            = declare("conversion-url", finding.Error, "The URL of a conversion webhook must have the form https://host[/path].", upstream)
	conversionService        = declare("conversion-service", finding.Error, "The service of a conversion webhook must have a name, a namespace and a valid port. Its path, if set, must be valid.", upstream)
	conversionBundle         = declare("conversion-ca-bundle", finding.Error, "caBundle must contain PEM certificates.", upstream)
	conversionReviewVersions = declare("conversion-review-versions", finding.Error, "conversionReviewVersions must contain v1 or v1beta1.", upstream)

	storedVersions = declare("stored-versions", finding.Error, "spec.versions must contain every version in status.storedVersions.", upstream)
	fieldImmutable = declare("field-immutable", finding.Error, "spec.group and spec.names.plural are immutable. spec.scope and spec.names.kind are immutable once the API server serves the resource.", upstream)

	tooManyFindings = declare("too-many-findings", finding.Warning, "Espalier stops collecting findings after 16 MiB of text. It checks only the first 200 owner references and the first 200 managers of fields.", engine)
)
