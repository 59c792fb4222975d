package crd

import "github.com/espalier-dev/espalier"

// RuleInfo describes a rule of the check of definitions.
type RuleInfo struct {
	ID          string // stable
	Severity    espalier.Severity
	Explanation string
	Source      string // where the rule comes from
}

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
var Rules = [numRules]RuleInfo{
	apiVersionRemoved: {"api-version-removed", espalier.Error, "CRDs must be written in apiextensions.k8s.io/v1. Kubernetes serves no v1beta1 since release 1.22.", upstream},
	unknownField:      {"unknown-field", espalier.Warning, "Servers drop fields of a definition that they do not know, or refuse the definition if field validation is strict.", objects},
	objectMetadata:    {"object-metadata", espalier.Error, "The metadata of a definition is valid, as that of every object: names, labels, annotations, owners; what must not change stays.", objects},
	nameMismatch:      {"name-mismatch", espalier.Error, "The name of a definition is its plural, a dot, and its group.", upstream},
	apiApproval:       {"api-approval", espalier.Error, "Groups below k8s.io and kubernetes.io belong to the community. The annotation api-approved.kubernetes.io has the URL of the approval, or a reason that begins with unapproved.", approval},

	groupRequired:     {"group-required", espalier.Error, "A resource has a group.", upstream},
	groupDomain:       {"group-domain", espalier.Error, "A group is a domain name in lower case, with a dot.", upstream},
	scopeUnknown:      {"scope-unknown", espalier.Error, "scope is Cluster or Namespaced.", upstream},
	namesRequired:     {"names-required", espalier.Error, "A resource has a plural and a kind; singular and listKind are made of the kind.", upstream},
	namesInvalid:      {"names-invalid", espalier.Error, "Names of a resource are DNS labels; kinds may have capitals.", upstream},
	kindListKindEqual: {"kind-list-kind-equal", espalier.Error, "Lists have another kind than what is in them.", upstream},

	versionName:           {"version-name", espalier.Error, "The name of a version is a DNS label, such as v1beta1.", upstream},
	versionNameDuplicate:  {"version-name-duplicate", espalier.Error, "Versions have different names.", upstream},
	versionsStorage:       {"versions-storage", espalier.Error, "Objects are stored in exactly one of the versions.", upstream},
	deprecationWarning:    {"deprecation-warning", espalier.Error, "A deprecationWarning is a line of at most 256 printable characters, for versions that are deprecated.", upstream},
	schemaRequired:        {"schema-required", espalier.Error, "Every version has a schema.", upstream},
	preserveUnknownFields: {"preserve-unknown-fields", espalier.Error, "spec.preserveUnknownFields is false. What a version preserves, its schema says.", upstream},
	preserveWithDefaults:  {"preserve-with-defaults", espalier.Error, "Defaults are for resources whose unknown fields are pruned.", upstream},

	printerColumn:           {"printer-column", espalier.Error, "A column has a name, a known type, if any a known format, and a path that begins with a dot.", upstream},
	scalePath:               {"scale-path", espalier.Error, "The scale subresource has paths to replicas in spec and in status; that of the selector is in either.", upstream},
	selectableField:         {"selectable-field", espalier.Error, "A selectable field is a string, boolean or integer that the schema specifies outside of metadata, and is listed once.", upstream},
	selectableFieldsSchema:  {"selectable-fields-schema", espalier.Error, "Selectable fields belong to a schema. Where some versions have equal ones and others have not, servers look for the schema in the wrong place.", upstream},
	selectableFieldsTooMany: {"selectable-fields-too-many", espalier.Error, "A version has at most 8 selectable fields.", upstream},

	conversionStrategy:       {"conversion-strategy", espalier.Error, "Versions are converted by None or Webhook.", upstream},
	conversionPreserve:       {"conversion-preserve", espalier.Error, "Webhooks convert resources whose unknown fields are pruned.", upstream},
	conversionUnused:         {"conversion-unused", espalier.Error, "What is said about a webhook is for the strategy Webhook.", upstream},
	conversionClientConfig:   {"conversion-client-config", espalier.Error, "A conversion webhook is reached at a URL or through a service.", upstream},
	conversionURL:            {"conversion-url", espalier.Error, "The URL of a conversion webhook is https://host[/path].", upstream},
	conversionService:        {"conversion-service", espalier.Error, "The service of a conversion webhook has a name, a namespace, a port and, if any, a proper path.", upstream},
	conversionBundle:         {"conversion-ca-bundle", espalier.Error, "A caBundle has certificates, in PEM.", upstream},
	conversionReviewVersions: {"conversion-review-versions", espalier.Error, "A conversion webhook understands ConversionReview v1 or v1beta1.", upstream},

	storedVersions: {"stored-versions", espalier.Error, "A version stays in the definition as long as objects may be stored in it.", upstream},
	fieldImmutable: {"field-immutable", espalier.Error, "Group and plural never change; scope and kind do not once the resource is served.", upstream},

	tooManyFindings: {"too-many-findings", espalier.Warning, "Findings beyond 16 MiB are left out, and those about more than 200 owners or managers of fields.", engine},
}
