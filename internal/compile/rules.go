package compile

// RuleInfo describes a rule of the check.
type RuleInfo struct {
	ID          string // stable
	Severity    Severity
	Explanation string
	Source      string // the document the rule comes from
}

// The documents. Rules of the second kind are demanded by upstream's
// validation only.
const (
	kep2335  = "KEP-2335 structural schemas"
	kep2332  = "KEP-2332 pruning"
	blog     = "blog 2019-06-20, Future of CRDs: Structural Schemas"
	upstream = "apiextensions.k8s.io/v1 validation"
	celKEP   = "KEP-2876 validation rules"
	ssaKEP   = "KEP-555 server-side apply, list and map topology"
	engine   = "this engine"
)

// rule is a rule's place in Rules.
type rule uint8

const (
	typeRequired rule = iota
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

	numRules
)

// Rules is the table of all rules. The identifiers are stable: programs select
// and suppress findings by them.
var Rules = [numRules]RuleInfo{
	typeRequired:                 {"type-required", Error, "Every field, array item and map value has a type outside of junctors, unless x-kubernetes-int-or-string or x-kubernetes-preserve-unknown-fields is true.", kep2335},
	rootTypeObject:               {"root-type-object", Error, "The root of the schema is of type object.", kep2335},
	typeUnknown:                  {"type-unknown", Error, "type is one of array, boolean, integer, number, object and string.", upstream},
	typeNull:                     {"type-null", Error, "There is no type null; nullable takes its place.", upstream},
	itemsRequired:                {"items-required", Error, "An array says what its items are.", kep2335},
	itemsTuple:                   {"items-tuple", Error, "items is one schema for all items, not a list of schemas.", kep2335},
	rootAdditionalProperties:     {"root-additional-properties", Error, "The root of the schema is no map.", kep2335},
	propertiesOrAdditional:       {"properties-or-additional-properties", Error, "An object has given fields or is a map, not both.", blog},
	embeddedType:                 {"embedded-type", Error, "An embedded resource is of type object.", kep2335},
	embeddedAdditionalProperties: {"embedded-additional-properties", Error, "An embedded resource is no map.", kep2335},
	embeddedProperties:           {"embedded-properties", Error, "An embedded resource specifies properties or preserves unknown fields.", kep2335},
	embeddedInMetadata:           {"embedded-in-metadata", Error, "There are no embedded resources inside of apiVersion, kind and metadata.", upstream},
	typeMetaString:               {"type-meta-string", Error, "apiVersion and kind of a resource are strings.", kep2335},
	metadataObject:               {"metadata-object", Error, "metadata of a resource is an object.", kep2335},
	rootMetadata:                 {"root-metadata", Error, "The schema restricts nothing of the object's metadata but name and generateName.", kep2335},
	intOrStringExclusive:         {"int-or-string-exclusive", Error, "x-kubernetes-int-or-string does not go with x-kubernetes-preserve-unknown-fields or x-kubernetes-embedded-resource.", upstream},
	patternInvalid:               {"pattern-invalid", Error, "pattern is a regular expression that Go (RE2) accepts.", upstream},
	preserveFalse:                {"preserve-unknown-fields-false", Error, "x-kubernetes-preserve-unknown-fields is true or left out.", kep2332},
	uniqueItems:                  {"unique-items", Error, "uniqueItems is not true: checking it takes quadratic time. x-kubernetes-list-type: set takes its place.", upstream},
	rootNullable:                 {"root-nullable", Error, "An object as a whole is never null.", upstream},
	defaultForbidden:             {"default-forbidden", Error, "Some places take no default: the object's own apiVersion, kind and metadata, and maps inside of metadata.", upstream},
	defaultUnknownFields:         {"default-unknown-fields", Error, "A default has no fields that would be pruned.", upstream},
	defaultMetadata:              {"default-metadata", Error, "Defaults with or inside of embedded resources result in valid type information and metadata.", upstream},
	defaultValue:                 {"default-value", Error, "A default is valid by its own schema.", upstream},
	incomplete:                   {"incomplete", Error, "Every path that a junctor of the root mentions is also specified outside of junctors.", kep2335},

	unsupportedID:                {"unsupported-id", Error, "id is not supported.", upstream},
	unsupportedSchemaURL:         {"unsupported-schema", Error, "$schema is not supported.", upstream},
	unsupportedRef:               {"unsupported-ref", Error, "$ref is not supported: schemas are self-contained.", upstream},
	unsupportedPatternProperties: {"unsupported-pattern-properties", Error, "patternProperties is not supported.", upstream},
	unsupportedAdditionalItems:   {"unsupported-additional-items", Error, "additionalItems is not supported.", upstream},
	unsupportedDefinitions:       {"unsupported-definitions", Error, "definitions is not supported: schemas are self-contained.", upstream},
	unsupportedDependencies:      {"unsupported-dependencies", Error, "dependencies is not supported.", upstream},

	junctorType:                 {"junctor-type", Error, "Types are stated outside of junctors, except in the two forms of int-or-string.", kep2335},
	junctorAdditionalProperties: {"junctor-additional-properties", Error, "additionalProperties is stated outside of junctors.", kep2335},
	junctorDefault:              {"junctor-default", Error, "Defaults are stated outside of junctors.", kep2335},
	junctorTitle:                {"junctor-title", Error, "Titles are stated outside of junctors.", kep2335},
	junctorDescription:          {"junctor-description", Error, "Descriptions are stated outside of junctors.", kep2335},
	junctorNullable:             {"junctor-nullable", Error, "nullable is stated outside of junctors.", kep2335},
	junctorPreserve:             {"junctor-preserve-unknown-fields", Error, "x-kubernetes-preserve-unknown-fields is stated outside of junctors.", kep2335},
	junctorEmbedded:             {"junctor-embedded-resource", Error, "x-kubernetes-embedded-resource is stated outside of junctors.", kep2335},
	junctorIntOrString:          {"junctor-int-or-string", Error, "x-kubernetes-int-or-string is stated outside of junctors.", kep2335},
	junctorListMapKeys:          {"junctor-list-map-keys", Error, "x-kubernetes-list-map-keys is stated outside of junctors.", ssaKEP},
	junctorListType:             {"junctor-list-type", Error, "x-kubernetes-list-type is stated outside of junctors.", ssaKEP},
	junctorMapType:              {"junctor-map-type", Error, "x-kubernetes-map-type is stated outside of junctors.", ssaKEP},
	junctorValidations:          {"junctor-validations", Error, "x-kubernetes-validations is stated outside of junctors.", celKEP},
	junctorMetadata:             {"junctor-metadata", Error, "No junctor mentions a field called metadata, at any depth.", kep2335},

	mapTypeObject:         {"map-type-object", Error, "x-kubernetes-map-type is for objects.", ssaKEP},
	mapTypeUnknown:        {"map-type-unknown", Error, "x-kubernetes-map-type is atomic or granular.", ssaKEP},
	listTypeArray:         {"list-type-array", Error, "x-kubernetes-list-type is for arrays.", ssaKEP},
	listTypeUnknown:       {"list-type-unknown", Error, "x-kubernetes-list-type is atomic, set or map.", ssaKEP},
	listSetAtomic:         {"list-set-atomic", Error, "Items of a set are scalars, or atomic.", ssaKEP},
	listMapKeysWithoutMap: {"list-map-keys-without-map", Error, "x-kubernetes-list-map-keys is for lists of type map.", ssaKEP},
	listMapKeysRequired:   {"list-map-keys-required", Error, "A list of type map names its keys.", ssaKEP},
	listMapItemsRequired:  {"list-map-items-required", Error, "A list of type map says what its items are.", ssaKEP},
	listMapItemsSingle:    {"list-map-items-single", Error, "A list of type map has one schema for all items.", ssaKEP},
	listMapItemsObject:    {"list-map-items-object", Error, "Items of a list of type map are objects.", ssaKEP},
	listMapKeyScalar:      {"list-map-key-scalar", Error, "Keys of a list of type map are scalars.", ssaKEP},
	listMapKeyUnknown:     {"list-map-key-unknown", Error, "Keys of a list of type map are properties of its items.", ssaKEP},
	listMapKeyDuplicate:   {"list-map-key-duplicate", Error, "A list of type map names each key once.", ssaKEP},
	listMapKeyOptional:    {"list-map-key-optional", Error, "Keys of a list of type map are required or have a default.", ssaKEP},
	listMapKeyNullable:    {"list-map-key-nullable", Error, "Keys of a list of type map are not nullable.", ssaKEP},
	listItemsNullable:     {"list-items-nullable", Error, "Items of a list of type map or set are not nullable.", ssaKEP},

	ruleEmpty:                  {"rule-empty", Error, "A validation rule has an expression.", celKEP},
	ruleMessageEmpty:           {"rule-message-empty", Error, "A rule's message is left out rather than blank.", celKEP},
	ruleMessageLines:           {"rule-message-lines", Error, "A rule's message is one line.", celKEP},
	ruleMessageRequired:        {"rule-message-required", Error, "A rule of several lines has a message.", celKEP},
	ruleMessageExpressionEmpty: {"rule-message-expression-empty", Error, "A rule's messageExpression is left out rather than blank.", celKEP},
	ruleReasonUnknown:          {"rule-reason-unknown", Error, "A rule's reason is one of the four known ones.", celKEP},
	ruleFieldPathEmpty:         {"rule-field-path-empty", Error, "A rule's fieldPath is left out rather than blank.", celKEP},
	ruleFieldPathLines:         {"rule-field-path-lines", Error, "A rule's fieldPath is one line.", celKEP},
	ruleFieldPathInvalid:       {"rule-field-path-invalid", Error, "A rule's fieldPath leads to a field of the schema.", celKEP},

	statusRootType:    {"status-root-type", Error, "With the status subresource, the root is of type object.", upstream},
	statusRootKeyword: {"status-root-keyword", Error, "With the status subresource, the root has only keywords that say nothing about status and the rest together.", upstream},

	defaultUnchecked:                 {"default-unchecked", Warning, "Defaults below additionalProperties fit their schemas, too. Clusters fill them in without having checked them.", engine},
	formatUnrecognized:               {"format-unrecognized", Warning, "format is one that clusters know for the type; they ignore others.", upstream},
	formatArrays:                     {"format-arrays", Warning, "Beside a format that clusters know, they accept arrays for the type string. Compiling with Strict refuses them.", engine},
	listSetObjects:                   {"list-set-objects", Warning, "Items of a set are scalars. Server-side apply and rules do not support others.", upstream},
	enumType:                         {"enum-type", Warning, "Values in an enum are of the type beside it; others can never be.", engine},
	enumNull:                         {"enum-null", Warning, "Clusters refuse null beside an enum, even if it is nullable and listed. Here it is accepted.", engine},
	enumConversion:                   {"enum-conversion", Warning, "Clusters convert a number to the Go type of a listed value before they compare the two: they find 1.5 in [1], and 65 in [\"A\"]. Compiling with Strict refuses such values.", engine},
	boundFraction:                    {"bound-fraction", Warning, "Clusters cut off the fraction of a bound before they compare an integer with it: minimum 2.5 admits 2. Compiling with Strict does not.", engine},
	boundOutOfRange:                  {"bound-out-of-range", Warning, "A bound is a number of the type and format beside it. Otherwise clusters refuse every number.", engine},
	incompleteBelowRoot:              {"incomplete-below-root", Warning, "Every path that a junctor mentions is also specified outside of junctors. Clusters check this at the root only; elsewhere such fields are pruned.", kep2335},
	oneStructure:                     {"one-structure", Warning, "A schema has only one of properties, additionalProperties and items.", blog},
	intOrStringUnmarked:              {"int-or-string-unmarked", Warning, "anyOf with the types integer and string is meant for x-kubernetes-int-or-string: true. Clusters accept it elsewhere.", kep2335},
	intOrStringOneOf:                 {"int-or-string-oneof", Warning, "The blog post permits oneOf with the types integer and string for int-or-string. Clusters know only the form with anyOf.", blog},
	intOrStringOrder:                 {"int-or-string-order", Warning, "In the anyOf of int-or-string, integer comes first. Clusters know no other order.", kep2335},
	itemsIgnored:                     {"items-ignored", Warning, "items is neither a schema nor a list of schemas; clusters take it as left out.", upstream},
	junctorAdditionalPropertiesFalse: {"junctor-additional-properties-false", Warning, "additionalProperties is stated outside of junctors. Clusters ignore the value false there.", kep2335},
	junctorReadOnly:                  {"junctor-read-only", Warning, "readOnly is stated outside of junctors. Clusters ignore the keyword.", kep2335},
	readOnlyMalformed:                {"read-only-malformed", Warning, "readOnly is a boolean. Clusters ignore the keyword.", kep2335},
	unionMalformed:                   {"union-malformed", Warning, "x-kubernetes-unions is a list of objects with discriminator and fields. Clusters ignore the keyword.", kep2335},
	unionInJunctor:                   {"union-in-junctor", Warning, "Unions are stated outside of junctors. Clusters ignore the keyword.", kep2335},
	unionType:                        {"union-type", Warning, "Unions are for objects. Clusters ignore the keyword.", kep2335},
	unionEmpty:                       {"union-empty", Warning, "A union has fields. Clusters ignore the keyword.", kep2335},
	unionDiscriminator:               {"union-discriminator", Warning, "A discriminator is a property of type string, and no member of a union. Clusters ignore the keyword.", kep2335},
	unionField:                       {"union-field", Warning, "Members of a union are properties of the object. Clusters ignore the keyword.", kep2335},
	unionValue:                       {"union-value", Warning, "Members have a discriminator value of their own if and only if the union has a discriminator. Clusters ignore the keyword.", kep2335},
	unionOverlap:                     {"union-overlap", Warning, "A field is a member of one union at most. Clusters ignore the keyword.", kep2335},
	unknownKeyword:                   {"unknown-keyword", Warning, "Clusters drop keywords they do not know.", upstream},
	duplicateKey:                     {"duplicate-key", Warning, "Of a key that is written twice, the last one counts.", engine},
	tooManyFindings:                  {"too-many-findings", Warning, "Findings beyond 16 MiB are left out.", engine},
}

// RuleByID returns the rule called id.
func RuleByID(id string) (RuleInfo, bool) {
	for _, r := range Rules {
		if r.ID == id {
			return r, true
		}
	}
	return RuleInfo{}, false
}
