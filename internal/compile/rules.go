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
var Rules = [numRules]finding.Check{
	typeRequired:                 finding.New("type-required", finding.Error, "Every field, array item and map value has a type outside of junctors, unless x-kubernetes-int-or-string or x-kubernetes-preserve-unknown-fields is true.", kep2335),
	rootTypeObject:               finding.New("root-type-object", finding.Error, "The root of the schema is of type object.", kep2335),
	typeUnknown:                  finding.New("type-unknown", finding.Error, "type is one of array, boolean, integer, number, object and string.", upstream),
	typeNull:                     finding.New("type-null", finding.Error, "There is no type null; nullable takes its place.", upstream),
	itemsRequired:                finding.New("items-required", finding.Error, "An array says what its items are.", kep2335),
	itemsTuple:                   finding.New("items-tuple", finding.Error, "items is one schema for all items, not a list of schemas.", kep2335),
	rootAdditionalProperties:     finding.New("root-additional-properties", finding.Error, "The root of the schema is no map.", kep2335),
	propertiesOrAdditional:       finding.New("properties-or-additional-properties", finding.Error, "An object has given fields or is a map, not both.", blog),
	embeddedType:                 finding.New("embedded-type", finding.Error, "An embedded resource is of type object.", kep2335),
	embeddedAdditionalProperties: finding.New("embedded-additional-properties", finding.Error, "An embedded resource is no map.", kep2335),
	embeddedProperties:           finding.New("embedded-properties", finding.Error, "An embedded resource specifies properties or preserves unknown fields.", kep2335),
	embeddedInMetadata:           finding.New("embedded-in-metadata", finding.Error, "There are no embedded resources inside of apiVersion, kind and metadata.", upstream),
	typeMetaString:               finding.New("type-meta-string", finding.Error, "apiVersion and kind of a resource are strings.", kep2335),
	metadataObject:               finding.New("metadata-object", finding.Error, "metadata of a resource is an object.", kep2335),
	rootMetadata:                 finding.New("root-metadata", finding.Error, "The schema restricts nothing of the object's metadata but name and generateName.", kep2335),
	intOrStringExclusive:         finding.New("int-or-string-exclusive", finding.Error, "x-kubernetes-int-or-string does not go with x-kubernetes-preserve-unknown-fields or x-kubernetes-embedded-resource.", upstream),
	patternInvalid:               finding.New("pattern-invalid", finding.Error, "pattern is a regular expression that Go (RE2) accepts.", upstream),
	preserveFalse:                finding.New("preserve-unknown-fields-false", finding.Error, "x-kubernetes-preserve-unknown-fields is true or left out.", kep2332),
	uniqueItems:                  finding.New("unique-items", finding.Error, "uniqueItems is not true: checking it takes quadratic time. x-kubernetes-list-type: set takes its place.", upstream),
	rootNullable:                 finding.New("root-nullable", finding.Error, "An object as a whole is never null.", upstream),
	defaultForbidden:             finding.New("default-forbidden", finding.Error, "Some places take no default: the object's own apiVersion, kind and metadata, and maps inside of metadata.", upstream),
	defaultUnknownFields:         finding.New("default-unknown-fields", finding.Error, "A default has no fields that would be pruned.", upstream),
	defaultMetadata:              finding.New("default-metadata", finding.Error, "Defaults with or inside of embedded resources result in valid type information and metadata.", upstream),
	defaultValue:                 finding.New("default-value", finding.Error, "A default is valid by its own schema.", upstream),
	incomplete:                   finding.New("incomplete", finding.Error, "Every path that a junctor of the root mentions is also specified outside of junctors.", kep2335),

	unsupportedID:                finding.New("unsupported-id", finding.Error, "id is not supported.", upstream),
	unsupportedSchemaURL:         finding.New("unsupported-schema", finding.Error, "$schema is not supported.", upstream),
	unsupportedRef:               finding.New("unsupported-ref", finding.Error, "$ref is not supported: schemas are self-contained.", upstream),
	unsupportedPatternProperties: finding.New("unsupported-pattern-properties", finding.Error, "patternProperties is not supported.", upstream),
	unsupportedAdditionalItems:   finding.New("unsupported-additional-items", finding.Error, "additionalItems is not supported.", upstream),
	unsupportedDefinitions:       finding.New("unsupported-definitions", finding.Error, "definitions is not supported: schemas are self-contained.", upstream),
	unsupportedDependencies:      finding.New("unsupported-dependencies", finding.Error, "dependencies is not supported.", upstream),

	junctorType:                 finding.New("junctor-type", finding.Error, "Types are stated outside of junctors, except in the two forms of int-or-string.", kep2335),
	junctorAdditionalProperties: finding.New("junctor-additional-properties", finding.Error, "additionalProperties is stated outside of junctors.", kep2335),
	junctorDefault:              finding.New("junctor-default", finding.Error, "Defaults are stated outside of junctors.", kep2335),
	junctorTitle:                finding.New("junctor-title", finding.Error, "Titles are stated outside of junctors.", kep2335),
	junctorDescription:          finding.New("junctor-description", finding.Error, "Descriptions are stated outside of junctors.", kep2335),
	junctorNullable:             finding.New("junctor-nullable", finding.Error, "nullable is stated outside of junctors.", kep2335),
	junctorPreserve:             finding.New("junctor-preserve-unknown-fields", finding.Error, "x-kubernetes-preserve-unknown-fields is stated outside of junctors.", kep2335),
	junctorEmbedded:             finding.New("junctor-embedded-resource", finding.Error, "x-kubernetes-embedded-resource is stated outside of junctors.", kep2335),
	junctorIntOrString:          finding.New("junctor-int-or-string", finding.Error, "x-kubernetes-int-or-string is stated outside of junctors.", kep2335),
	junctorListMapKeys:          finding.New("junctor-list-map-keys", finding.Error, "x-kubernetes-list-map-keys is stated outside of junctors.", ssaKEP),
	junctorListType:             finding.New("junctor-list-type", finding.Error, "x-kubernetes-list-type is stated outside of junctors.", ssaKEP),
	junctorMapType:              finding.New("junctor-map-type", finding.Error, "x-kubernetes-map-type is stated outside of junctors.", ssaKEP),
	junctorValidations:          finding.New("junctor-validations", finding.Error, "x-kubernetes-validations is stated outside of junctors.", celKEP),
	junctorMetadata:             finding.New("junctor-metadata", finding.Error, "No junctor mentions a field called metadata, at any depth.", kep2335),

	mapTypeObject:         finding.New("map-type-object", finding.Error, "x-kubernetes-map-type is for objects.", ssaKEP),
	mapTypeUnknown:        finding.New("map-type-unknown", finding.Error, "x-kubernetes-map-type is atomic or granular.", ssaKEP),
	listTypeArray:         finding.New("list-type-array", finding.Error, "x-kubernetes-list-type is for arrays.", ssaKEP),
	listTypeUnknown:       finding.New("list-type-unknown", finding.Error, "x-kubernetes-list-type is atomic, set or map.", ssaKEP),
	listSetAtomic:         finding.New("list-set-atomic", finding.Error, "Items of a set are scalars, or atomic.", ssaKEP),
	listMapKeysWithoutMap: finding.New("list-map-keys-without-map", finding.Error, "x-kubernetes-list-map-keys is for lists of type map.", ssaKEP),
	listMapKeysRequired:   finding.New("list-map-keys-required", finding.Error, "A list of type map names its keys.", ssaKEP),
	listMapItemsRequired:  finding.New("list-map-items-required", finding.Error, "A list of type map says what its items are.", ssaKEP),
	listMapItemsSingle:    finding.New("list-map-items-single", finding.Error, "A list of type map has one schema for all items.", ssaKEP),
	listMapItemsObject:    finding.New("list-map-items-object", finding.Error, "Items of a list of type map are objects.", ssaKEP),
	listMapKeyScalar:      finding.New("list-map-key-scalar", finding.Error, "Keys of a list of type map are scalars.", ssaKEP),
	listMapKeyUnknown:     finding.New("list-map-key-unknown", finding.Error, "Keys of a list of type map are properties of its items.", ssaKEP),
	listMapKeyDuplicate:   finding.New("list-map-key-duplicate", finding.Error, "A list of type map names each key once.", ssaKEP),
	listMapKeyOptional:    finding.New("list-map-key-optional", finding.Error, "Keys of a list of type map are required or have a default.", ssaKEP),
	listMapKeyNullable:    finding.New("list-map-key-nullable", finding.Error, "Keys of a list of type map are not nullable.", ssaKEP),
	listItemsNullable:     finding.New("list-items-nullable", finding.Error, "Items of a list of type map or set are not nullable.", ssaKEP),

	ruleEmpty:                  finding.New("rule-empty", finding.Error, "A validation rule has an expression.", celKEP),
	ruleMessageEmpty:           finding.New("rule-message-empty", finding.Error, "A rule's message is left out rather than blank.", celKEP),
	ruleMessageLines:           finding.New("rule-message-lines", finding.Error, "A rule's message is one line.", celKEP),
	ruleMessageRequired:        finding.New("rule-message-required", finding.Error, "A rule of several lines has a message.", celKEP),
	ruleMessageExpressionEmpty: finding.New("rule-message-expression-empty", finding.Error, "A rule's messageExpression is left out rather than blank.", celKEP),
	ruleReasonUnknown:          finding.New("rule-reason-unknown", finding.Error, "A rule's reason is one of the four known ones.", celKEP),
	ruleFieldPathEmpty:         finding.New("rule-field-path-empty", finding.Error, "A rule's fieldPath is left out rather than blank.", celKEP),
	ruleFieldPathLines:         finding.New("rule-field-path-lines", finding.Error, "A rule's fieldPath is one line.", celKEP),
	ruleFieldPathInvalid:       finding.New("rule-field-path-invalid", finding.Error, "A rule's fieldPath leads to a field of the schema.", celKEP),

	statusRootType:    finding.New("status-root-type", finding.Error, "With the status subresource, the root is of type object.", upstream),
	statusRootKeyword: finding.New("status-root-keyword", finding.Error, "With the status subresource, the root has only keywords that say nothing about status and the rest together.", upstream),

	defaultUnchecked:                 finding.New("default-unchecked", finding.Warning, "Defaults below additionalProperties fit their schemas, too. Clusters fill them in without having checked them.", engine),
	formatUnrecognized:               finding.New("format-unrecognized", finding.Warning, "format is one that clusters know for the type; they ignore others.", upstream),
	formatArrays:                     finding.New("format-arrays", finding.Warning, "Beside a format that clusters know, they accept arrays for the type string. Compiling with Strict refuses them.", engine),
	listSetObjects:                   finding.New("list-set-objects", finding.Warning, "Items of a set are scalars. Server-side apply and rules do not support others.", upstream),
	enumType:                         finding.New("enum-type", finding.Warning, "Values in an enum are of the type beside it; others can never be.", engine),
	enumNull:                         finding.New("enum-null", finding.Warning, "Clusters refuse null beside an enum, even if it is nullable and listed. Here it is accepted.", engine),
	enumConversion:                   finding.New("enum-conversion", finding.Warning, "Clusters convert a number to the Go type of a listed value before they compare the two: they find 1.5 in [1], and 65 in [\"A\"]. Compiling with Strict refuses such values.", engine),
	boundFraction:                    finding.New("bound-fraction", finding.Warning, "Clusters cut off the fraction of a bound before they compare an integer with it: minimum 2.5 admits 2. Compiling with Strict does not.", engine),
	boundOutOfRange:                  finding.New("bound-out-of-range", finding.Warning, "A bound is a number of the type and format beside it. Otherwise clusters refuse every number.", engine),
	incompleteBelowRoot:              finding.New("incomplete-below-root", finding.Warning, "Every path that a junctor mentions is also specified outside of junctors. Clusters check this at the root only; elsewhere such fields are pruned.", kep2335),
	oneStructure:                     finding.New("one-structure", finding.Warning, "A schema has only one of properties, additionalProperties and items.", blog),
	intOrStringUnmarked:              finding.New("int-or-string-unmarked", finding.Warning, "anyOf with the types integer and string is meant for x-kubernetes-int-or-string: true. Clusters accept it elsewhere.", kep2335),
	intOrStringOneOf:                 finding.New("int-or-string-oneof", finding.Warning, "The blog post permits oneOf with the types integer and string for int-or-string. Clusters know only the form with anyOf.", blog),
	intOrStringOrder:                 finding.New("int-or-string-order", finding.Warning, "In the anyOf of int-or-string, integer comes first. Clusters know no other order.", kep2335),
	itemsIgnored:                     finding.New("items-ignored", finding.Warning, "items is neither a schema nor a list of schemas; clusters take it as left out.", upstream),
	junctorAdditionalPropertiesFalse: finding.New("junctor-additional-properties-false", finding.Warning, "additionalProperties is stated outside of junctors. Clusters ignore the value false there.", kep2335),
	junctorReadOnly:                  finding.New("junctor-read-only", finding.Warning, "readOnly is stated outside of junctors. Clusters ignore the keyword.", kep2335),
	readOnlyMalformed:                finding.New("read-only-malformed", finding.Warning, "readOnly is a boolean. Clusters ignore the keyword.", kep2335),
	unionMalformed:                   finding.New("union-malformed", finding.Warning, "x-kubernetes-unions is a list of objects with discriminator and fields. Clusters ignore the keyword.", kep2335),
	unionInJunctor:                   finding.New("union-in-junctor", finding.Warning, "Unions are stated outside of junctors. Clusters ignore the keyword.", kep2335),
	unionType:                        finding.New("union-type", finding.Warning, "Unions are for objects. Clusters ignore the keyword.", kep2335),
	unionEmpty:                       finding.New("union-empty", finding.Warning, "A union has fields. Clusters ignore the keyword.", kep2335),
	unionDiscriminator:               finding.New("union-discriminator", finding.Warning, "A discriminator is a property of type string, and no member of a union. Clusters ignore the keyword.", kep2335),
	unionField:                       finding.New("union-field", finding.Warning, "Members of a union are properties of the object. Clusters ignore the keyword.", kep2335),
	unionValue:                       finding.New("union-value", finding.Warning, "Members have a discriminator value of their own if and only if the union has a discriminator. Clusters ignore the keyword.", kep2335),
	unionOverlap:                     finding.New("union-overlap", finding.Warning, "A field is a member of one union at most. Clusters ignore the keyword.", kep2335),
	unknownKeyword:                   finding.New("unknown-keyword", finding.Warning, "Clusters drop keywords they do not know.", upstream),
	duplicateKey:                     finding.New("duplicate-key", finding.Warning, "Of a key that is written twice, the last one counts.", engine),
	tooManyFindings:                  finding.New("too-many-findings", finding.Warning, "Findings beyond 16 MiB are left out.", engine),
}

// RuleByID returns the rule called id.
func RuleByID(id finding.ID) (finding.Check, bool) {
	for _, r := range Rules {
		if r.ID == id {
			return r, true
		}
	}
	return finding.Check{}, false
}
