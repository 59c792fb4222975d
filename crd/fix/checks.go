package fix

import "github.com/espalier-dev/espalier/finding"

// means says how a violation is fixed, for each check of schemas that fix supports.
var means = map[finding.ID]string{
	"type-required":                   "The type is taken from allOf, anyOf, oneOf and not, or inferred from the other keywords. If no keyword implies a type, x-kubernetes-preserve-unknown-fields: true is set instead.",
	"root-type-object":                "The root gets type: object.",
	"items-required":                  "The items accept any value.",
	"items-tuple":                     "A list of one schema, or of equal schemas, becomes that schema. Otherwise the items accept any value.",
	"root-additional-properties":      "additionalProperties is removed from the root. Unless it was false, unknown fields are preserved instead.",
	"embedded-type":                   "The embedded resource gets type: object.",
	"embedded-additional-properties":  "Unknown fields are preserved instead.",
	"embedded-properties":             "Unknown fields are preserved.",
	"type-meta-string":                "apiVersion and kind get type: string.",
	"metadata-object":                 "metadata gets type: object.",
	"root-metadata":                   "All keywords about metadata of the object are removed, except for name and generateName.",
	"preserve-unknown-fields-false":   "The keyword is removed.",
	"unique-items":                    "A list of scalars that are not nullable becomes a set. For other lists, and inside allOf, anyOf, oneOf and not, the keyword is removed.",
	"root-nullable":                   "The keyword is removed.",
	"default-forbidden":               "Defaults of apiVersion, kind and metadata of the object are removed.",
	"incomplete":                      "Fields inside allOf, anyOf, oneOf and not are also specified outside them.",
	"unsupported-id":                  "The keyword is removed.",
	"unsupported-schema":              "The keyword is removed.",
	"unsupported-ref":                 "References to definitions of the schema are inlined. Where a schema contains itself, any value is accepted from there on.",
	"unsupported-definitions":         "The definitions are removed after the references to them are inlined.",
	"unsupported-pattern-properties":  "An object with one pattern becomes a map. Other objects preserve unknown fields.",
	"unsupported-additional-items":    "The keyword is removed. The value false becomes maxItems.",
	"unsupported-dependencies":        "The dependencies become anyOf inside allOf.",
	"junctor-type":                    "Types move out of allOf, anyOf, oneOf and not. A oneOf or not that depends on the types becomes anyOf, or is removed.",
	"junctor-additional-properties":   "The keyword moves out of allOf, anyOf, oneOf and not.",
	"junctor-default":                 "The default moves out of an allOf. In anyOf, oneOf and not it never had an effect and is removed.",
	"junctor-title":                   "The keyword moves outside if there is only one, and is removed otherwise.",
	"junctor-description":             "The keyword moves outside if there is only one, and is removed otherwise.",
	"junctor-nullable":                "nullable moves outside together with the type.",
	"junctor-preserve-unknown-fields": "The keyword moves out of allOf, anyOf, oneOf and not.",
	"junctor-embedded-resource":       "Unknown fields are preserved instead.",
	"junctor-int-or-string":           "The keyword moves out of allOf, anyOf, oneOf and not.",
	"junctor-list-map-keys":           "The keyword is removed. It never had an effect inside allOf, anyOf, oneOf and not.",
	"junctor-list-type":               "The keyword is removed. It never had an effect inside allOf, anyOf, oneOf and not.",
	"junctor-map-type":                "The keyword is removed. It never had an effect inside allOf, anyOf, oneOf and not.",
	"junctor-validations":             "The CEL rules are removed. They never had an effect inside allOf, anyOf, oneOf and not.",
	"junctor-metadata":                "Conditions on a field named metadata are removed from the branch, if the allOf, anyOf, oneOf or not does not depend on them.",

	"properties-or-additional-properties": "additionalProperties: false is removed, because unknown fields are pruned anyway. Otherwise unknown fields are preserved instead.",
	"int-or-string-exclusive":             "x-kubernetes-preserve-unknown-fields is removed. An embedded resource cannot be an integer or a string, so the author must choose one.",
	"type-unknown":                        "A type in upper case is corrected, and a list of types becomes one type. The author must correct other unknown types.",
	"type-null":                           "A branch or a list entry with type null becomes nullable. The author must correct a field that is always null.",
}

// reasons says why violations of the other checks cannot be fixed.
var reasons = map[finding.ID]string{
	"embedded-in-metadata":          "The author must choose between the two.",
	"pattern-invalid":               "The author must decide which values are valid.",
	"default-unknown-fields":        "The author must correct the default or the schema.",
	"default-metadata":              "The author must correct the default or the schema.",
	"default-value":                 "The author must correct the default or the schema.",
	"status-root-keyword":           "The keyword cannot be moved: with the status subresource, the API server validates spec and status separately.",
	"status-root-type":              "The fix of root-type-object sets type: object at the root.",
	"map-type-object":               notGuessed,
	"map-type-unknown":              notGuessed,
	"list-type-array":               notGuessed,
	"list-type-unknown":             notGuessed,
	"list-set-atomic":               notGuessed,
	"list-map-keys-without-map":     notGuessed,
	"list-map-keys-required":        notGuessed,
	"list-map-items-required":       notGuessed,
	"list-map-items-single":         notGuessed,
	"list-map-items-object":         notGuessed,
	"list-map-key-scalar":           notGuessed,
	"list-map-key-unknown":          notGuessed,
	"list-map-key-duplicate":        notGuessed,
	"list-map-key-optional":         notGuessed,
	"list-map-key-nullable":         notGuessed,
	"list-items-nullable":           notGuessed,
	"rule-empty":                    badRule,
	"rule-message-empty":            badRule,
	"rule-message-lines":            badRule,
	"rule-message-required":         badRule,
	"rule-message-expression-empty": badRule,
	"rule-reason-unknown":           badRule,
	"rule-field-path-empty":         badRule,
	"rule-field-path-lines":         badRule,
	"rule-field-path-invalid":       badRule,
}

const (
	notGuessed = "The author must decide how server-side apply merges the list or map."
	badRule    = "The author must correct the CEL rule."
)

// Means returns how violations of a check of schemas are fixed, or why they cannot
// be fixed. The text is empty for other checks.
func Means(check finding.ID) (text string, fixable bool) {
	if how, ok := means[check]; ok {
		return how, true
	}
	return reasons[check], false
}
