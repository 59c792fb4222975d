package compile

import "github.com/espalier-dev/espalier/finding"

// The documents. Rules of the second kind are demanded by upstream's
// validation only.
const (
	kep2335  = "KEP-2335 structural schemas"
	kep2332  = "KEP-2332 pruning"
	blog     = "blog 2019-06-20, Future of CRDs: Structural Schemas"
	upstream = "apiextensions.k8s.io/v1 validation"
	celKEP   = "KEP-2876 validation rules"
	ssaKEP   = "KEP-555 server-side apply, list and map topology"
	engine   = "Espalier"
)

// checkID is the index of a check in Checks.
type checkID uint8

// Checks is the table of all checks. The identifiers are stable: programs select
// and suppress findings by them.
var Checks []finding.Check

// declare adds a check to Checks.
func declare(id finding.ID, severity finding.Severity, explanation, source string) checkID {
	Checks = append(Checks, finding.New(id, severity, explanation, source))
	return checkID(len(Checks) - 1)
}

var (
	typeRequired                 = declare("type-required", finding.Error, "Every field, array item and map value must have a type outside allOf, anyOf, oneOf and not.", kep2335)
	rootTypeObject               = declare("root-type-object", finding.Error, "The root of the schema must have type: object.", kep2335)
	typeUnknown                  = declare("type-unknown", finding.Error, "type must be one of array, boolean, integer, number, object and string.", upstream)
	typeNull                     = declare("type-null", finding.Error, "type must not be null. Use nullable: true instead.", upstream)
	itemsRequired                = declare("items-required", finding.Error, "A schema with type: array must have items.", kep2335)
	itemsTuple                   = declare("items-tuple", finding.Error, "items must be one schema for all items, not a list of schemas.", kep2335)
	rootAdditionalProperties     = declare("root-additional-properties", finding.Error, "The root of the schema must not have additionalProperties.", kep2335)
	propertiesOrAdditional       = declare("properties-or-additional-properties", finding.Error, "A schema must not have both properties and additionalProperties.", blog)
	embeddedType                 = declare("embedded-type", finding.Error, "A schema with x-kubernetes-embedded-resource must have type: object.", kep2335)
	embeddedAdditionalProperties = declare("embedded-additional-properties", finding.Error, "A schema with x-kubernetes-embedded-resource must not have additionalProperties.", kep2335)
	embeddedProperties           = declare("embedded-properties", finding.Error, "A schema with x-kubernetes-embedded-resource must have properties or x-kubernetes-preserve-unknown-fields: true.", kep2335)
	embeddedInMetadata           = declare("embedded-in-metadata", finding.Error, "x-kubernetes-embedded-resource is forbidden inside apiVersion, kind and metadata.", upstream)
	typeMetaString               = declare("type-meta-string", finding.Error, "The schemas of apiVersion and kind must have type: string.", kep2335)
	metadataObject               = declare("metadata-object", finding.Error, "The schema of metadata must have type: object.", kep2335)
	rootMetadata                 = declare("root-metadata", finding.Error, "The schema must not restrict metadata of the object, except name and generateName.", kep2335)
	intOrStringExclusive         = declare("int-or-string-exclusive", finding.Error, "x-kubernetes-int-or-string must not be combined with x-kubernetes-preserve-unknown-fields or x-kubernetes-embedded-resource.", upstream)
	patternInvalid               = declare("pattern-invalid", finding.Error, "pattern must be a regular expression in Go (RE2) syntax.", upstream)
	preserveFalse                = declare("preserve-unknown-fields-false", finding.Error, "x-kubernetes-preserve-unknown-fields must be true or absent.", kep2332)
	uniqueItems                  = declare("unique-items", finding.Error, "uniqueItems must not be true, because the check takes quadratic time. Use x-kubernetes-list-type: set instead.", upstream)
	rootNullable                 = declare("root-nullable", finding.Error, "The root of the schema must not have nullable: true.", upstream)
	defaultForbidden             = declare("default-forbidden", finding.Error, "Defaults are forbidden for apiVersion, kind and metadata of the object, and for maps inside metadata.", upstream)
	defaultUnknownFields         = declare("default-unknown-fields", finding.Error, "A default must not contain fields that the schema does not specify.", upstream)
	defaultMetadata              = declare("default-metadata", finding.Error, "A default for or inside an embedded resource must result in a valid apiVersion, kind and metadata.", upstream)
	defaultValue                 = declare("default-value", finding.Error, "A default must be valid against its own schema.", upstream)
	incomplete                   = declare("incomplete", finding.Error, "Every field in a root-level allOf, anyOf, oneOf or not must also be specified outside it.", kep2335)

	unsupportedID                = declare("unsupported-id", finding.Error, "id is not supported.", upstream)
	unsupportedSchemaURL         = declare("unsupported-schema", finding.Error, "$schema is not supported.", upstream)
	unsupportedRef               = declare("unsupported-ref", finding.Error, "$ref is not supported. Schemas must be self-contained.", upstream)
	unsupportedPatternProperties = declare("unsupported-pattern-properties", finding.Error, "patternProperties is not supported.", upstream)
	unsupportedAdditionalItems   = declare("unsupported-additional-items", finding.Error, "additionalItems is not supported.", upstream)
	unsupportedDefinitions       = declare("unsupported-definitions", finding.Error, "`definitions` is not supported. Schemas must be self-contained.", upstream)
	unsupportedDependencies      = declare("unsupported-dependencies", finding.Error, "dependencies is not supported.", upstream)

	junctorType                 = declare("junctor-type", finding.Error, "type is forbidden inside allOf, anyOf, oneOf and not, except in the two forms of x-kubernetes-int-or-string.", kep2335)
	junctorAdditionalProperties = declare("junctor-additional-properties", finding.Error, "additionalProperties is forbidden inside allOf, anyOf, oneOf and not.", kep2335)
	junctorDefault              = declare("junctor-default", finding.Error, "default is forbidden inside allOf, anyOf, oneOf and not.", kep2335)
	junctorTitle                = declare("junctor-title", finding.Error, "title is forbidden inside allOf, anyOf, oneOf and not.", kep2335)
	junctorDescription          = declare("junctor-description", finding.Error, "description is forbidden inside allOf, anyOf, oneOf and not.", kep2335)
	junctorNullable             = declare("junctor-nullable", finding.Error, "nullable is forbidden inside allOf, anyOf, oneOf and not.", kep2335)
	junctorPreserve             = declare("junctor-preserve-unknown-fields", finding.Error, "x-kubernetes-preserve-unknown-fields is forbidden inside allOf, anyOf, oneOf and not.", kep2335)
	junctorEmbedded             = declare("junctor-embedded-resource", finding.Error, "x-kubernetes-embedded-resource is forbidden inside allOf, anyOf, oneOf and not.", kep2335)
	junctorIntOrString          = declare("junctor-int-or-string", finding.Error, "x-kubernetes-int-or-string is forbidden inside allOf, anyOf, oneOf and not.", kep2335)
	junctorListMapKeys          = declare("junctor-list-map-keys", finding.Error, "x-kubernetes-list-map-keys is forbidden inside allOf, anyOf, oneOf and not.", ssaKEP)
	junctorListType             = declare("junctor-list-type", finding.Error, "x-kubernetes-list-type is forbidden inside allOf, anyOf, oneOf and not.", ssaKEP)
	junctorMapType              = declare("junctor-map-type", finding.Error, "x-kubernetes-map-type is forbidden inside allOf, anyOf, oneOf and not.", ssaKEP)
	junctorValidations          = declare("junctor-validations", finding.Error, "x-kubernetes-validations is forbidden inside allOf, anyOf, oneOf and not.", celKEP)
	junctorMetadata             = declare("junctor-metadata", finding.Error, "A field named metadata is forbidden inside allOf, anyOf, oneOf and not, at any depth.", kep2335)

	mapTypeObject         = declare("map-type-object", finding.Error, "x-kubernetes-map-type requires type: object.", ssaKEP)
	mapTypeUnknown        = declare("map-type-unknown", finding.Error, "x-kubernetes-map-type must be atomic or granular.", ssaKEP)
	listTypeArray         = declare("list-type-array", finding.Error, "x-kubernetes-list-type requires type: array.", ssaKEP)
	listTypeUnknown       = declare("list-type-unknown", finding.Error, "x-kubernetes-list-type must be atomic, set or map.", ssaKEP)
	listSetAtomic         = declare("list-set-atomic", finding.Error, "Items of a list of type set must be scalars or atomic.", ssaKEP)
	listMapKeysWithoutMap = declare("list-map-keys-without-map", finding.Error, "x-kubernetes-list-map-keys requires x-kubernetes-list-type: map.", ssaKEP)
	listMapKeysRequired   = declare("list-map-keys-required", finding.Error, "A list of type map must have x-kubernetes-list-map-keys.", ssaKEP)
	listMapItemsRequired  = declare("list-map-items-required", finding.Error, "A list of type map must have items.", ssaKEP)
	listMapItemsSingle    = declare("list-map-items-single", finding.Error, "items of a list of type map must be one schema, not a list of schemas.", ssaKEP)
	listMapItemsObject    = declare("list-map-items-object", finding.Error, "Items of a list of type map must have type: object.", ssaKEP)
	listMapKeyScalar      = declare("list-map-key-scalar", finding.Error, "Keys of a list of type map must be scalars.", ssaKEP)
	listMapKeyUnknown     = declare("list-map-key-unknown", finding.Error, "Keys of a list of type map must be properties of its items.", ssaKEP)
	listMapKeyDuplicate   = declare("list-map-key-duplicate", finding.Error, "x-kubernetes-list-map-keys must not contain duplicates.", ssaKEP)
	listMapKeyOptional    = declare("list-map-key-optional", finding.Error, "Keys of a list of type map must be required or have a default.", ssaKEP)
	listMapKeyNullable    = declare("list-map-key-nullable", finding.Error, "Keys of a list of type map must not be nullable.", ssaKEP)
	listItemsNullable     = declare("list-items-nullable", finding.Error, "Items of a list of type map or set must not be nullable.", ssaKEP)

	ruleEmpty                  = declare("rule-empty", finding.Error, "A CEL rule must have an expression.", celKEP)
	ruleMessageEmpty           = declare("rule-message-empty", finding.Error, "The message of a CEL rule must not be blank. Omit it instead.", celKEP)
	ruleMessageLines           = declare("rule-message-lines", finding.Error, "The message of a CEL rule must be one line.", celKEP)
	ruleMessageRequired        = declare("rule-message-required", finding.Error, "A CEL rule with a multi-line expression must have a message.", celKEP)
	ruleMessageExpressionEmpty = declare("rule-message-expression-empty", finding.Error, "The messageExpression of a CEL rule must not be blank. Omit it instead.", celKEP)
	ruleReasonUnknown          = declare("rule-reason-unknown", finding.Error, "The reason of a CEL rule must be FieldValueInvalid, FieldValueForbidden, FieldValueRequired or FieldValueDuplicate.", celKEP)
	ruleFieldPathEmpty         = declare("rule-field-path-empty", finding.Error, "The fieldPath of a CEL rule must not be blank. Omit it instead.", celKEP)
	ruleFieldPathLines         = declare("rule-field-path-lines", finding.Error, "The fieldPath of a CEL rule must be one line.", celKEP)
	ruleFieldPathInvalid       = declare("rule-field-path-invalid", finding.Error, "The fieldPath of a CEL rule must lead to a field of the schema.", celKEP)

	statusRootType    = declare("status-root-type", finding.Error, "With the status subresource, the root of the schema must have type: object.", upstream)
	statusRootKeyword = declare("status-root-keyword", finding.Error, "With the status subresource, the API server allows only some keywords at the root of the schema. allOf, anyOf, oneOf and not are not among them.", upstream)

	defaultUnchecked                 = declare("default-unchecked", finding.Warning, "Defaults below additionalProperties should be valid against their schemas. kube-apiserver does not validate them before it fills them in.", engine)
	formatUnrecognized               = declare("format-unrecognized", finding.Warning, "kube-apiserver ignores a format that it does not know for the type.", upstream)
	formatArrays                     = declare("format-arrays", finding.Warning, "kube-apiserver accepts arrays for a field with type: string and a known format. Espalier rejects them if it compiles the schema with Strict.", engine)
	listSetObjects                   = declare("list-set-objects", finding.Warning, "Items of a list of type set should be scalars. Server-side apply and CEL rules support nothing else.", upstream)
	enumType                         = declare("enum-type", finding.Warning, "Values of an enum should match the type of the schema. No object can use a value of another type.", engine)
	enumNull                         = declare("enum-null", finding.Warning, "kube-apiserver rejects null for a field with an enum, even if the field is nullable and the enum lists null. Espalier accepts it.", engine)
	enumConversion                   = declare("enum-conversion", finding.Warning, "kube-apiserver converts a number to the Go type of the enum value before it compares them: 1.5 matches [1], and 65 matches [\"A\"]. Espalier rejects such values if it compiles the schema with Strict.", engine)
	boundFraction                    = declare("bound-fraction", finding.Warning, "kube-apiserver truncates a bound before it compares an integer with it: minimum 2.5 accepts 2. Espalier rejects 2 if it compiles the schema with Strict.", engine)
	boundOutOfRange                  = declare("bound-out-of-range", finding.Warning, "A bound should be within the range of its type and format. Otherwise kube-apiserver rejects every number.", engine)
	incompleteBelowRoot              = declare("incomplete-below-root", finding.Warning, "Every field inside allOf, anyOf, oneOf or not should also be specified outside it. kube-apiserver checks this only at the root, and prunes such fields elsewhere.", kep2335)
	oneStructure                     = declare("one-structure", finding.Warning, "A schema should have only one of properties, additionalProperties and items.", blog)
	intOrStringUnmarked              = declare("int-or-string-unmarked", finding.Warning, "anyOf with the types integer and string should be combined with x-kubernetes-int-or-string: true. kube-apiserver also accepts it without.", kep2335)
	intOrStringOneOf                 = declare("int-or-string-oneof", finding.Warning, "kube-apiserver accepts x-kubernetes-int-or-string with anyOf, but not with oneOf of the types integer and string.", blog)
	intOrStringOrder                 = declare("int-or-string-order", finding.Warning, "In the anyOf of x-kubernetes-int-or-string, integer must come first. kube-apiserver accepts no other order.", kep2335)
	itemsIgnored                     = declare("items-ignored", finding.Warning, "items should be a schema. kube-apiserver ignores items that is neither a schema nor a list of schemas.", upstream)
	junctorAdditionalPropertiesFalse = declare("junctor-additional-properties-false", finding.Warning, "additionalProperties is forbidden inside allOf, anyOf, oneOf and not. kube-apiserver ignores the value false there.", kep2335)
	junctorReadOnly                  = declare("junctor-read-only", finding.Warning, "readOnly has no effect inside allOf, anyOf, oneOf and not. kube-apiserver ignores the keyword everywhere.", kep2335)
	readOnlyMalformed                = declare("read-only-malformed", finding.Warning, "readOnly must be a boolean. kube-apiserver ignores the keyword.", kep2335)
	unionMalformed                   = declare("union-malformed", finding.Warning, "x-kubernetes-unions must be a list of objects with discriminator and fields. kube-apiserver ignores the keyword.", kep2335)
	unionInJunctor                   = declare("union-in-junctor", finding.Warning, "x-kubernetes-unions must be outside allOf, anyOf, oneOf and not. kube-apiserver ignores the keyword.", kep2335)
	unionType                        = declare("union-type", finding.Warning, "x-kubernetes-unions requires type: object. kube-apiserver ignores the keyword.", kep2335)
	unionEmpty                       = declare("union-empty", finding.Warning, "A union must have fields. kube-apiserver ignores the keyword.", kep2335)
	unionDiscriminator               = declare("union-discriminator", finding.Warning, "The discriminator of a union must be a property of type string, and must not be a member of a union. kube-apiserver ignores the keyword.", kep2335)
	unionField                       = declare("union-field", finding.Warning, "Members of a union must be properties of the object. kube-apiserver ignores the keyword.", kep2335)
	unionValue                       = declare("union-value", finding.Warning, "With a discriminator, each member of a union must have its own discriminator value. Without one, members must have none. kube-apiserver ignores the keyword.", kep2335)
	unionOverlap                     = declare("union-overlap", finding.Warning, "A field must be a member of at most one union. kube-apiserver ignores the keyword.", kep2335)
	unknownKeyword                   = declare("unknown-keyword", finding.Warning, "kube-apiserver drops unknown schema keywords.", upstream)
	duplicateKey                     = declare("duplicate-key", finding.Warning, "If a key appears twice, the last value wins.", engine)
	tooManyFindings                  = declare("too-many-findings", finding.Warning, "Findings beyond 16 MiB are left out.", engine)
)
