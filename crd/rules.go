package crd

import "github.com/espalier-dev/espalier/finding"

const (
	upstream = "apiextensions.k8s.io/v1 validation"
	objects  = "Kubernetes API conventions, metadata"
	approval = "KEP-1111 protection of community groups"
	engine   = "this engine"
)

// rule is a rule's place in Rules.
type rule uint8

const (
	apiVersionRemoved rule = iota
	unknownField
	objectMetadata
	nameMismatch
	apiApproval
	groupRequired
	groupDomain
	scopeUnknown
	namesRequired
	namesInvalid
	kindListKindEqual
	versionName
	versionNameDuplicate
	versionsStorage
	deprecationWarning
	schemaRequired
	preserveUnknownFields
	preserveWithDefaults
	printerColumn
	scalePath
	selectableField
	selectableFieldsSchema
	selectableFieldsTooMany
	conversionStrategy
	conversionPreserve
	conversionUnused
	conversionClientConfig
	conversionURL
	conversionService
	conversionBundle
	conversionReviewVersions
	storedVersions
	fieldImmutable
	tooManyFindings

	numRules
)

// Rules is the table of the rules for what is around the schemas of a
// definition. The identifiers are stable: programs select and suppress findings
// by them.
var Rules = [numRules]finding.Check{
	apiVersionRemoved: finding.New("api-version-removed", finding.Error, "CRDs must be written in apiextensions.k8s.io/v1. Kubernetes serves no v1beta1 since release 1.22.", upstream),
	unknownField:      finding.New("unknown-field", finding.Warning, "Servers drop fields of a definition that they do not know, or refuse the definition if field validation is strict.", objects),
	objectMetadata:    finding.New("object-metadata", finding.Error, "The metadata of a definition is valid, as that of every object: names, labels, annotations, owners; what must not change stays.", objects),
	nameMismatch:      finding.New("name-mismatch", finding.Error, "The name of a definition is its plural, a dot, and its group.", upstream),
	apiApproval:       finding.New("api-approval", finding.Error, "Groups below k8s.io and kubernetes.io belong to the community. The annotation api-approved.kubernetes.io has the URL of the approval, or a reason that begins with unapproved.", approval),

	groupRequired:     finding.New("group-required", finding.Error, "A resource has a group.", upstream),
	groupDomain:       finding.New("group-domain", finding.Error, "A group is a domain name in lower case, with a dot.", upstream),
	scopeUnknown:      finding.New("scope-unknown", finding.Error, "scope is Cluster or Namespaced.", upstream),
	namesRequired:     finding.New("names-required", finding.Error, "A resource has a plural and a kind; singular and listKind are made of the kind.", upstream),
	namesInvalid:      finding.New("names-invalid", finding.Error, "Names of a resource are DNS labels; kinds may have capitals.", upstream),
	kindListKindEqual: finding.New("kind-list-kind-equal", finding.Error, "Lists have another kind than what is in them.", upstream),

	versionName:           finding.New("version-name", finding.Error, "The name of a version is a DNS label, such as v1beta1.", upstream),
	versionNameDuplicate:  finding.New("version-name-duplicate", finding.Error, "Versions have different names.", upstream),
	versionsStorage:       finding.New("versions-storage", finding.Error, "Objects are stored in exactly one of the versions.", upstream),
	deprecationWarning:    finding.New("deprecation-warning", finding.Error, "A deprecationWarning is a line of at most 256 printable characters, for versions that are deprecated.", upstream),
	schemaRequired:        finding.New("schema-required", finding.Error, "Every version has a schema.", upstream),
	preserveUnknownFields: finding.New("preserve-unknown-fields", finding.Error, "spec.preserveUnknownFields is false. What a version preserves, its schema says.", upstream),
	preserveWithDefaults:  finding.New("preserve-with-defaults", finding.Error, "Defaults are for resources whose unknown fields are pruned.", upstream),

	printerColumn:           finding.New("printer-column", finding.Error, "A column has a name, a known type, if any a known format, and a path that begins with a dot.", upstream),
	scalePath:               finding.New("scale-path", finding.Error, "The scale subresource has paths to replicas in spec and in status; that of the selector is in either.", upstream),
	selectableField:         finding.New("selectable-field", finding.Error, "A selectable field is a string, boolean or integer that the schema specifies outside of metadata, and is listed once.", upstream),
	selectableFieldsSchema:  finding.New("selectable-fields-schema", finding.Error, "Selectable fields belong to a schema. Where some versions have equal ones and others have not, servers look for the schema in the wrong place.", upstream),
	selectableFieldsTooMany: finding.New("selectable-fields-too-many", finding.Error, "A version has at most 8 selectable fields.", upstream),

	conversionStrategy:       finding.New("conversion-strategy", finding.Error, "Versions are converted by None or Webhook.", upstream),
	conversionPreserve:       finding.New("conversion-preserve", finding.Error, "Webhooks convert resources whose unknown fields are pruned.", upstream),
	conversionUnused:         finding.New("conversion-unused", finding.Error, "What is said about a webhook is for the strategy Webhook.", upstream),
	conversionClientConfig:   finding.New("conversion-client-config", finding.Error, "A conversion webhook is reached at a URL or through a service.", upstream),
	conversionURL:            finding.New("conversion-url", finding.Error, "The URL of a conversion webhook is https://host[/path].", upstream),
	conversionService:        finding.New("conversion-service", finding.Error, "The service of a conversion webhook has a name, a namespace, a port and, if any, a proper path.", upstream),
	conversionBundle:         finding.New("conversion-ca-bundle", finding.Error, "A caBundle has certificates, in PEM.", upstream),
	conversionReviewVersions: finding.New("conversion-review-versions", finding.Error, "A conversion webhook understands ConversionReview v1 or v1beta1.", upstream),

	storedVersions: finding.New("stored-versions", finding.Error, "A version stays in the definition as long as objects may be stored in it.", upstream),
	fieldImmutable: finding.New("field-immutable", finding.Error, "Group and plural never change; scope and kind do not once the resource is served.", upstream),

	tooManyFindings: finding.New("too-many-findings", finding.Warning, "Findings beyond 16 MiB are left out, and those about more than 200 owners or managers of fields.", engine),
}
