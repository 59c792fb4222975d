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

const (
	typeRequired checkID = iota
	rootTypeObject
	typeUnknown
	typeNull
	itemsRequired
	itemsTuple
	rootAdditionalProperties
	propertiesOrAdditional
	embeddedType
	embeddedAdditionalProperties
	embeddedProperties
	embeddedInMetadata
	typeMetaString
	metadataObject
	rootMetadata
	intOrStringExclusive
	patternInvalid
	preserveFalse
	uniqueItems
	rootNullable
	defaultForbidden
	defaultUnknownFields
	defaultMetadata
	defaultValue
	incomplete

	unsupportedID
	unsupportedSchemaURL
	unsupportedRef
	unsupportedPatternProperties
	unsupportedAdditionalItems
	unsupportedDefinitions
	unsupportedDependencies

	junctorType
	junctorAdditionalProperties
	junctorDefault
	junctorTitle
	junctorDescription
	junctorNullable
	junctorPreserve
	junctorEmbedded
	junctorIntOrString
	junctorListMapKeys
	junctorListType
	junctorMapType
	junctorValidations
	junctorMetadata

	mapTypeObject
	mapTypeUnknown
	listTypeArray
	listTypeUnknown
	listSetAtomic
	listMapKeysWithoutMap
	listMapKeysRequired
	listMapItemsRequired
	listMapItemsSingle
	listMapItemsObject
	listMapKeyScalar
	listMapKeyUnknown
	listMapKeyDuplicate
	listMapKeyOptional
	listMapKeyNullable
	listItemsNullable

	ruleEmpty
	ruleMessageEmpty
	ruleMessageLines
	ruleMessageRequired
	ruleMessageExpressionEmpty
	ruleReasonUnknown
	ruleFieldPathEmpty
	ruleFieldPathLines
	ruleFieldPathInvalid

	statusRootType
	statusRootKeyword

	defaultUnchecked
	formatUnrecognized
	formatArrays
	listSetObjects
	enumType
	enumNull
	enumConversion
	boundFraction
	boundOutOfRange
	incompleteBelowRoot
	oneStructure
	intOrStringUnmarked
	intOrStringOneOf
	intOrStringOrder
	itemsIgnored
	junctorAdditionalPropertiesFalse
	junctorReadOnly
	readOnlyMalformed
	unionMalformed
	unionInJunctor
	unionType
	unionEmpty
	unionDiscriminator
	unionField
	unionValue
	unionOverlap
	unknownKeyword
	duplicateKey
	tooManyFindings

	numChecks
)

// Checks is the table of all checks. The identifiers are stable: programs select
// and suppress findings by them.
var Checks = [numChecks]finding.Check{
	typeRequired:                 finding.New("type-required", finding.Error, "Every field, array item and map value must have a type outside allOf, anyOf, oneOf and not.", kep2335),
	rootTypeObject:               finding.New("root-type-object", finding.Error, "The root of the schema must have type: object.", kep2335),
	typeUnknown:                  finding.New("type-unknown", finding.Error, "type must be one of array, boolean, integer, number, object and string.", upstream),
	typeNull:                     finding.New("type-null", finding.Error, "type must not be null. Use nullable: true instead.", upstream),
	itemsRequired:                finding.New("items-required", finding.Error, "A schema with type: array must have items.", kep2335),
	itemsTuple:                   finding.New("items-tuple", finding.Error, "items must be one schema for all items, not a list of schemas.", kep2335),
	rootAdditionalProperties:     finding.New("root-additional-properties", finding.Error, "The root of the schema must not have additionalProperties.", kep2335),
	propertiesOrAdditional:       finding.New("properties-or-additional-properties", finding.Error, "A schema must not have both properties and additionalProperties.", blog),
	embeddedType:                 finding.New("embedded-type", finding.Error, "A schema with x-kubernetes-embedded-resource must have type: object.", kep2335),
	embeddedAdditionalProperties: finding.New("embedded-additional-properties", finding.Error, "A schema with x-kubernetes-embedded-resource must not have additionalProperties.", kep2335),
	embeddedProperties:           finding.New("embedded-properties", finding.Error, "A schema with x-kubernetes-embedded-resource must have properties or x-kubernetes-preserve-unknown-fields: true.", kep2335),
	embeddedInMetadata:           finding.New("embedded-in-metadata", finding.Error, "x-kubernetes-embedded-resource is forbidden inside apiVersion, kind and metadata.", upstream),
	typeMetaString:               finding.New("type-meta-string", finding.Error, "The schemas of apiVersion and kind must have type: string.", kep2335),
	metadataObject:               finding.New("metadata-object", finding.Error, "The schema of metadata must have type: object.", kep2335),
	rootMetadata:                 finding.New("root-metadata", finding.Error, "The schema must not restrict metadata of the object, except name and generateName.", kep2335),
	intOrStringExclusive:         finding.New("int-or-string-exclusive", finding.Error, "x-kubernetes-int-or-string must not be combined with x-kubernetes-preserve-unknown-fields or x-kubernetes-embedded-resource.", upstream),
	patternInvalid:               finding.New("pattern-invalid", finding.Error, "pattern must be a regular expression in Go (RE2) syntax.", upstream),
	preserveFalse:                finding.New("preserve-unknown-fields-false", finding.Error, "x-kubernetes-preserve-unknown-fields must be true or absent.", kep2332),
	uniqueItems:                  finding.New("unique-items", finding.Error, "uniqueItems must not be true, because the check takes quadratic time. Use x-kubernetes-list-type: set instead.", upstream),
	rootNullable:                 finding.New("root-nullable", finding.Error, "The root of the schema must not have nullable: true.", upstream),
	defaultForbidden:             finding.New("default-forbidden", finding.Error, "Defaults are forbidden for apiVersion, kind and metadata of the object, and for maps inside metadata.", upstream),
	defaultUnknownFields:         finding.New("default-unknown-fields", finding.Error, "A default must not contain fields that the schema does not specify.", upstream),
	defaultMetadata:              finding.New("default-metadata", finding.Error, "A default for or inside an embedded resource must result in a valid apiVersion, kind and metadata.", upstream),
	defaultValue:                 finding.New("default-value", finding.Error, "A default must be valid against its own schema.", upstream),
	incomplete:                   finding.New("incomplete", finding.Error, "Every field in a root-level allOf, anyOf, oneOf or not must also be specified outside it.", kep2335),

	unsupportedID:                finding.New("unsupported-id", finding.Error, "id is not supported.", upstream),
	unsupportedSchemaURL:         finding.New("unsupported-schema", finding.Error, "$schema is not supported.", upstream),
	unsupportedRef:               finding.New("unsupported-ref", finding.Error, "$ref is not supported. Schemas must be self-contained.", upstream),
	unsupportedPatternProperties: finding.New("unsupported-pattern-properties", finding.Error, "patternProperties is not supported.", upstream),
	unsupportedAdditionalItems:   finding.New("unsupported-additional-items", finding.Error, "additionalItems is not supported.", upstream),
	unsupportedDefinitions:       finding.New("unsupported-definitions", finding.Error, "`definitions` is not supported. Schemas must be self-contained.", upstream),
	unsupportedDependencies:      finding.New("unsupported-dependencies", finding.Error, "dependencies is not supported.", upstream),

	junctorType:                 finding.New("junctor-type", finding.Error, "type is forbidden inside allOf, anyOf, oneOf and not, except in the two forms of x-kubernetes-int-or-string.", kep2335),
	junctorAdditionalProperties: finding.New("junctor-additional-properties", finding.Error, "additionalProperties is forbidden inside allOf, anyOf, oneOf and not.", kep2335),
	junctorDefault:              finding.New("junctor-default", finding.Error, "default is forbidden inside allOf, anyOf, oneOf and not.", kep2335),
	junctorTitle:                finding.New("junctor-title", finding.Error, "title is forbidden inside allOf, anyOf, oneOf and not.", kep2335),
	junctorDescription:          finding.New("junctor-description", finding.Error, "description is forbidden inside allOf, anyOf, oneOf and not.", kep2335),
	junctorNullable:             finding.New("junctor-nullable", finding.Error, "nullable is forbidden inside allOf, anyOf, oneOf and not.", kep2335),
	junctorPreserve:             finding.New("junctor-preserve-unknown-fields", finding.Error, "x-kubernetes-preserve-unknown-fields is forbidden inside allOf, anyOf, oneOf and not.", kep2335),
	junctorEmbedded:             finding.New("junctor-embedded-resource", finding.Error, "x-kubernetes-embedded-resource is forbidden inside allOf, anyOf, oneOf and not.", kep2335),
	junctorIntOrString:          finding.New("junctor-int-or-string", finding.Error, "x-kubernetes-int-or-string is forbidden inside allOf, anyOf, oneOf and not.", kep2335),
	junctorListMapKeys:          finding.New("junctor-list-map-keys", finding.Error, "x-kubernetes-list-map-keys is forbidden inside allOf, anyOf, oneOf and not.", ssaKEP),
	junctorListType:             finding.New("junctor-list-type", finding.Error, "x-kubernetes-list-type is forbidden inside allOf, anyOf, oneOf and not.", ssaKEP),
	junctorMapType:              finding.New("junctor-map-type", finding.Error, "x-kubernetes-map-type is forbidden inside allOf, anyOf, oneOf and not.", ssaKEP),
	junctorValidations:          finding.New("junctor-validations", finding.Error, "x-kubernetes-validations is forbidden inside allOf, anyOf, oneOf and not.", celKEP),
	junctorMetadata:             finding.New("junctor-metadata", finding.Error, "A field named metadata is forbidden inside allOf, anyOf, oneOf and not, at any depth.", kep2335),

	mapTypeObject:         finding.New("map-type-object", finding.Error, "x-kubernetes-map-type requires type: object.", ssaKEP),
	mapTypeUnknown:        finding.New("map-type-unknown", finding.Error, "x-kubernetes-map-type must be atomic or granular.", ssaKEP),
	listTypeArray:         finding.New("list-type-array", finding.Error, "x-kubernetes-list-type requires type: array.", ssaKEP),
	listTypeUnknown:       finding.New("list-type-unknown", finding.Error, "x-kubernetes-list-type must be atomic, set or map.", ssaKEP),
	listSetAtomic:         finding.New("list-set-atomic", finding.Error, "Items of a list of type set must be scalars or atomic.", ssaKEP),
	listMapKeysWithoutMap: finding.New("list-map-keys-without-map", finding.Error, "x-kubernetes-list-map-keys requires x-kubernetes-list-type: map.", ssaKEP),
	listMapKeysRequired:   finding.New("list-map-keys-required", finding.Error, "A list of type map must have x-kubernetes-list-map-keys.", ssaKEP),
	listMapItemsRequired:  finding.New("list-map-items-required", finding.Error, "A list of type map must have items.", ssaKEP),
	listMapItemsSingle:    finding.New("list-map-items-single", finding.Error, "items of a list of type map must be one schema, not a list of schemas.", ssaKEP),
	listMapItemsObject:    finding.New("list-map-items-object", finding.Error, "Items of a list of type map must have type: object.", ssaKEP),
	listMapKeyScalar:      finding.New("list-map-key-scalar", finding.Error, "Keys of a list of type map must be scalars.", ssaKEP),
	listMapKeyUnknown:     finding.New("list-map-key-unknown", finding.Error, "Keys of a list of type map must be properties of its items.", ssaKEP),
	listMapKeyDuplicate:   finding.New("list-map-key-duplicate", finding.Error, "x-kubernetes-list-map-keys must not contain duplicates.", ssaKEP),
	listMapKeyOptional:    finding.New("list-map-key-optional", finding.Error, "Keys of a list of type map must be required or have a default.", ssaKEP),
	listMapKeyNullable:    finding.New("list-map-key-nullable", finding.Error, "Keys of a list of type map must not be nullable.", ssaKEP),
	listItemsNullable:     finding.New("list-items-nullable", finding.Error, "Items of a list of type map or set must not be nullable.", ssaKEP),

	ruleEmpty:                  finding.New("rule-empty", finding.Error, "A CEL rule must have an expression.", celKEP),
	ruleMessageEmpty:           finding.New("rule-message-empty", finding.Error, "The message of a CEL rule must not be blank. Omit it instead.", celKEP),
	ruleMessageLines:           finding.New("rule-message-lines", finding.Error, "The message of a CEL rule must be one line.", celKEP),
	ruleMessageRequired:        finding.New("rule-message-required", finding.Error, "A CEL rule with a multi-line expression must have a message.", celKEP),
	ruleMessageExpressionEmpty: finding.New("rule-message-expression-empty", finding.Error, "The messageExpression of a CEL rule must not be blank. Omit it instead.", celKEP),
	ruleReasonUnknown:          finding.New("rule-reason-unknown", finding.Error, "The reason of a CEL rule must be FieldValueInvalid, FieldValueForbidden, FieldValueRequired or FieldValueDuplicate.", celKEP),
	ruleFieldPathEmpty:         finding.New("rule-field-path-empty", finding.Error, "The fieldPath of a CEL rule must not be blank. Omit it instead.", celKEP),
	ruleFieldPathLines:         finding.New("rule-field-path-lines", finding.Error, "The fieldPath of a CEL rule must be one line.", celKEP),
	ruleFieldPathInvalid:       finding.New("rule-field-path-invalid", finding.Error, "The fieldPath of a CEL rule must lead to a field of the schema.", celKEP),

	statusRootType:    finding.New("status-root-type", finding.Error, "With the status subresource, the root of the schema must have type: object.", upstream),
	statusRootKeyword: finding.New("status-root-keyword", finding.Error, "With the status subresource, the API server allows only some keywords at the root of the schema. allOf, anyOf, oneOf and not are not among them.", upstream),

	defaultUnchecked:                 finding.New("default-unchecked", finding.Warning, "Defaults below additionalProperties should be valid against their schemas. kube-apiserver does not validate them before it fills them in.", engine),
	formatUnrecognized:               finding.New("format-unrecognized", finding.Warning, "kube-apiserver ignores a format that it does not know for the type.", upstream),
	formatArrays:                     finding.New("format-arrays", finding.Warning, "kube-apiserver accepts arrays for a field with type: string and a known format. Espalier rejects them if it compiles the schema with Strict.", engine),
	listSetObjects:                   finding.New("list-set-objects", finding.Warning, "Items of a list of type set should be scalars. Server-side apply and CEL rules support nothing else.", upstream),
	enumType:                         finding.New("enum-type", finding.Warning, "Values of an enum should match the type of the schema. No object can use a value of another type.", engine),
	enumNull:                         finding.New("enum-null", finding.Warning, "kube-apiserver rejects null for a field with an enum, even if the field is nullable and the enum lists null. Espalier accepts it.", engine),
	enumConversion:                   finding.New("enum-conversion", finding.Warning, "kube-apiserver converts a number to the Go type of the enum value before it compares them: 1.5 matches [1], and 65 matches [\"A\"]. Espalier rejects such values if it compiles the schema with Strict.", engine),
	boundFraction:                    finding.New("bound-fraction", finding.Warning, "kube-apiserver truncates a bound before it compares an integer with it: minimum 2.5 accepts 2. Espalier rejects 2 if it compiles the schema with Strict.", engine),
	boundOutOfRange:                  finding.New("bound-out-of-range", finding.Warning, "A bound should be within the range of its type and format. Otherwise kube-apiserver rejects every number.", engine),
	incompleteBelowRoot:              finding.New("incomplete-below-root", finding.Warning, "Every field inside allOf, anyOf, oneOf or not should also be specified outside it. kube-apiserver checks this only at the root, and prunes such fields elsewhere.", kep2335),
	oneStructure:                     finding.New("one-structure", finding.Warning, "A schema should have only one of properties, additionalProperties and items.", blog),
	intOrStringUnmarked:              finding.New("int-or-string-unmarked", finding.Warning, "anyOf with the types integer and string should be combined with x-kubernetes-int-or-string: true. kube-apiserver also accepts it without.", kep2335),
	intOrStringOneOf:                 finding.New("int-or-string-oneof", finding.Warning, "kube-apiserver accepts x-kubernetes-int-or-string with anyOf, but not with oneOf of the types integer and string.", blog),
	intOrStringOrder:                 finding.New("int-or-string-order", finding.Warning, "In the anyOf of x-kubernetes-int-or-string, integer must come first. kube-apiserver accepts no other order.", kep2335),
	itemsIgnored:                     finding.New("items-ignored", finding.Warning, "items should be a schema. kube-apiserver ignores items that is neither a schema nor a list of schemas.", upstream),
	junctorAdditionalPropertiesFalse: finding.New("junctor-additional-properties-false", finding.Warning, "additionalProperties is forbidden inside allOf, anyOf, oneOf and not. kube-apiserver ignores the value false there.", kep2335),
	junctorReadOnly:                  finding.New("junctor-read-only", finding.Warning, "readOnly has no effect inside allOf, anyOf, oneOf and not. kube-apiserver ignores the keyword everywhere.", kep2335),
	readOnlyMalformed:                finding.New("read-only-malformed", finding.Warning, "readOnly must be a boolean. kube-apiserver ignores the keyword.", kep2335),
	unionMalformed:                   finding.New("union-malformed", finding.Warning, "x-kubernetes-unions must be a list of objects with discriminator and fields. kube-apiserver ignores the keyword.", kep2335),
	unionInJunctor:                   finding.New("union-in-junctor", finding.Warning, "x-kubernetes-unions must be outside allOf, anyOf, oneOf and not. kube-apiserver ignores the keyword.", kep2335),
	unionType:                        finding.New("union-type", finding.Warning, "x-kubernetes-unions requires type: object. kube-apiserver ignores the keyword.", kep2335),
	unionEmpty:                       finding.New("union-empty", finding.Warning, "A union must have fields. kube-apiserver ignores the keyword.", kep2335),
	unionDiscriminator:               finding.New("union-discriminator", finding.Warning, "The discriminator of a union must be a property of type string, and must not be a member of a union. kube-apiserver ignores the keyword.", kep2335),
	unionField:                       finding.New("union-field", finding.Warning, "Members of a union must be properties of the object. kube-apiserver ignores the keyword.", kep2335),
	unionValue:                       finding.New("union-value", finding.Warning, "With a discriminator, each member of a union must have its own discriminator value. Without one, members must have none. kube-apiserver ignores the keyword.", kep2335),
	unionOverlap:                     finding.New("union-overlap", finding.Warning, "A field must be a member of at most one union. kube-apiserver ignores the keyword.", kep2335),
	unknownKeyword:                   finding.New("unknown-keyword", finding.Warning, "kube-apiserver drops unknown schema keywords.", upstream),
	duplicateKey:                     finding.New("duplicate-key", finding.Warning, "If a key appears twice, the last value wins.", engine),
	tooManyFindings:                  finding.New("too-many-findings", finding.Warning, "Findings beyond 16 MiB are left out.", engine),
}

// CheckByID returns the check with the identifier id.
func CheckByID(id finding.ID) (finding.Check, bool) {
	for _, r := range Checks {
		if r.ID == id {
			return r, true
		}
	}
	return finding.Check{}, false
}
