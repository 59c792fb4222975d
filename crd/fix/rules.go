package fix

import "github.com/espalier-dev/espalier/finding"

// means says of every rule about schemas how a violation is fixed.
var means = map[finding.ID]string{
	"type-required":                   "The type is taken from junctors, or from what the keywords beside it are about; where nothing says what a value is, x-kubernetes-preserve-unknown-fields: true takes its place.",
	"root-type-object":                "The root becomes an object.",
	"items-required":                  "The items may be anything.",
	"items-tuple":                     "A list of one schema, or of equal ones, becomes that schema; otherwise the items may be anything.",
	"root-additional-properties":      "additionalProperties goes from the root; unless it was false, unknown fields are preserved instead.",
	"embedded-type":                   "An embedded resource becomes an object.",
	"embedded-additional-properties":  "Unknown fields are preserved instead.",
	"embedded-properties":             "Unknown fields are preserved.",
	"type-meta-string":                "apiVersion and kind become strings.",
	"metadata-object":                 "metadata becomes an object.",
	"root-metadata":                   "What is said of the object's metadata goes, name and generateName aside.",
	"preserve-unknown-fields-false":   "It is left out.",
	"unique-items":                    "A list of scalars becomes a set; for others it is left out.",
	"root-nullable":                   "It is left out.",
	"default-forbidden":               "Defaults of the object's own apiVersion, kind and metadata go.",
	"incomplete":                      "What junctors mention is specified outside of them, too.",
	"unsupported-id":                  "It is left out.",
	"unsupported-schema":              "It is left out.",
	"unsupported-ref":                 "References into the definitions of the schema are inlined; where a schema contains itself, anything is accepted from there on.",
	"unsupported-definitions":         "They go once the references to them are inlined.",
	"unsupported-pattern-properties":  "An object with one pattern becomes a map; others preserve unknown fields.",
	"unsupported-additional-items":    "It goes; false becomes maxItems.",
	"unsupported-dependencies":        "They are said with anyOf inside of allOf.",
	"junctor-type":                    "Types move outside of junctors. A oneOf or not that cannot be told without becomes anyOf, or goes.",
	"junctor-additional-properties":   "It moves outside of junctors.",
	"junctor-default":                 "It moves outside of an allOf; in other junctors it never had an effect, and goes.",
	"junctor-title":                   "It moves outside if there is only one, and goes otherwise.",
	"junctor-description":             "It moves outside if there is only one, and goes otherwise.",
	"junctor-nullable":                "It moves outside with the type.",
	"junctor-preserve-unknown-fields": "It moves outside of junctors.",
	"junctor-embedded-resource":       "Unknown fields are preserved instead.",
	"junctor-int-or-string":           "It moves outside of junctors.",
	"junctor-list-map-keys":           "It goes: it never had an effect in junctors.",
	"junctor-list-type":               "It goes: it never had an effect in junctors.",
	"junctor-map-type":                "It goes: it never had an effect in junctors.",
	"junctor-validations":             "They go: they never had an effect in junctors.",
	"junctor-metadata":                "What a branch says of a field called metadata goes, if the junctor does not depend on it.",

	"properties-or-additional-properties": "additionalProperties: false goes, since unknown fields are pruned; otherwise unknown fields are preserved instead.",
	"int-or-string-exclusive":             "x-kubernetes-preserve-unknown-fields goes. An embedded resource cannot be an integer or a string: which one is meant only the author can know.",
	"type-unknown":                        "A type in upper case is corrected, and a list of types becomes one. What other words mean only the author can know.",
	"type-null":                           "A branch or an entry of a list that says null becomes nullable. A field that is always null only the author can explain.",
}

// reasons says of the other rules why a violation cannot be fixed.
var reasons = map[finding.ID]string{
	"embedded-in-metadata":          "Which of the two is meant only the author can know.",
	"pattern-invalid":               "Which values are meant only the author can know.",
	"default-unknown-fields":        "Whether the default or the schema is wrong only the author can know.",
	"default-metadata":              "Whether the default or the schema is wrong only the author can know.",
	"default-value":                 "Whether the default or the schema is wrong only the author can know.",
	"status-root-keyword":           "What is said there cannot be said elsewhere: with the status subresource, spec and status are checked apart.",
	"status-root-type":              "The root becomes an object by root-type-object.",
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
	notGuessed = "How a list or a map is to be merged is not guessed."
	badRule    = "What a rule is to say only the author can know."
)

// Means returns how violations of a rule about schemas are fixed or, if they
// cannot be, why. The text is empty for rules that are about something else.
func Means(rule finding.ID) (text string, fixable bool) {
	if how, ok := means[rule]; ok {
		return how, true
	}
	return reasons[rule], false
}
