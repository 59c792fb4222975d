package diff

import (
	"slices"

	"github.com/espalier-dev/espalier/finding"
)

// Rule is a kind of change.
type Rule struct {
	ID          finding.ID
	Level       Level    // the worst that changes of this kind are
	Breaks      Audience // at worst
	Explanation string
}

// Check describes the kind in the words of all tools.
func (r *Rule) Check() finding.Check {
	return finding.Check{ID: r.ID, Severity: r.Level.Severity(), Explanation: r.Explanation, Source: "this engine"}
}

// Rules returns all kinds of changes, sorted by ID.
func Rules() []Rule { return slices.Clone(table) }

var table = []Rule{
	{"additional-properties-closed", Breaking, Everybody, "Fields that are not specified were kept and are now pruned or refused."},
	{"additional-properties-opened", Safe, Readers, "Fields that are not specified were pruned or refused and are now kept."},
	{"categories-changed", Safe, Readers, "The resource appears in other groups of kubectl get, such as all."},
	{"conversion-changed", Risky, Everybody, "Versions are converted in another way: by another webhook, or by changing nothing but apiVersion. What clients of other versions than the stored one get depends on it."},
	{"default-added", Risky, Everybody, "A value is filled in that used to be left out."},
	{"default-changed", Risky, Everybody, "Another value is filled in. Objects stored with the old default keep it."},
	{"default-removed", Risky, Everybody, "Nothing is filled in any more where a field is left out."},
	{"deprecation-added", Safe, Writers | Readers, "Clients of the version get warnings."},
	{"deprecation-removed", Safe, Writers | Readers, "Clients of the version get no more warnings."},
	{"embedded-changed", Breaking, Everybody, "An object becomes a resource with apiVersion, kind and metadata, or ceases to be one."},
	{"enum-added", Breaking, Writers | Stored, "Any value was allowed and now only listed ones are."},
	{"enum-removed", Risky, Readers, "Only listed values were allowed and now any is."},
	{"enum-value-added", Risky, Readers, "More values are allowed. Readers with a case for each value meet one they have no case for."},
	{"enum-value-removed", Breaking, Writers | Stored, "Values that were allowed are not any more."},
	{"field-added", Safe, Readers, "A field is new, and objects written before do not have it."},
	{"field-removed", Breaking, Everybody, "A field is no longer specified: API servers prune it from requests and from stored objects as they read them."},
	{"field-specified", Breaking, Writers | Stored, "A field that was kept whatever its value gets a schema."},
	{"field-unspecified", Safe, Readers, "A field loses its schema and is kept whatever its value."},
	{"format-added", Breaking, Writers | Stored, "Strings or numbers have to have a format."},
	{"format-changed", Breaking, Writers | Stored, "Strings or numbers have to have another format."},
	{"format-removed", Risky, Everybody, "Strings or numbers need not have a format any more. Rules that saw a timestamp, a duration or bytes see a string."},
	{"group-changed", Breaking, Everybody, "The API group is part of every request and of the keys in etcd: with another one it is another resource."},
	{"int-or-string-added", Risky, Everybody, "Integers or strings become either of both."},
	{"int-or-string-removed", Breaking, Everybody, "Only one of integer and string is left."},
	{"junctor-changed", Risky, Writers | Stored, "An anyOf, oneOf or not may refuse what used to be valid."},
	{"junctor-relaxed", Safe, Readers, "An anyOf, oneOf or not that may have refused something is gone or weaker."},
	{"kind-changed", Breaking, Everybody, "Manifests, clients and stored objects carry the kind: with another one they are refused or not readable."},
	{"list-kind-changed", Risky, Readers, "Lists are called by another kind, which typed clients compare with the one they expect."},
	{"list-map-keys-changed", Breaking, Writers | Stored, "Other fields identify the items of a list: two may now be the same, and server-side apply merges them differently."},
	{"list-type-changed", Breaking, Writers | Stored, "The items of a list have to be unique, or server-side apply merges them differently."},
	{"map-type-changed", Risky, Writers, "Server-side apply merges an object as a whole, or field by field."},
	{"max-items-lowered", Breaking, Writers | Stored, "Lists may have fewer items."},
	{"max-items-raised", Safe, Readers, "Lists may have more items."},
	{"max-length-lowered", Breaking, Writers | Stored, "Strings have to be shorter."},
	{"max-length-raised", Safe, Readers, "Strings may be longer."},
	{"max-properties-lowered", Breaking, Writers | Stored, "Objects may have fewer fields."},
	{"max-properties-raised", Safe, Readers, "Objects may have more fields."},
	{"maximum-lowered", Breaking, Writers | Stored, "Numbers have to be smaller."},
	{"maximum-raised", Safe, Readers, "Numbers may be greater."},
	{"min-items-lowered", Safe, Readers, "Lists may have fewer items."},
	{"min-items-raised", Breaking, Writers | Stored, "Lists have to have more items."},
	{"min-length-lowered", Safe, Readers, "Strings may be shorter."},
	{"min-length-raised", Breaking, Writers | Stored, "Strings have to be longer."},
	{"min-properties-lowered", Safe, Readers, "Objects may have fewer fields."},
	{"min-properties-raised", Breaking, Writers | Stored, "Objects have to have more fields."},
	{"minimum-lowered", Safe, Readers, "Numbers may be smaller."},
	{"minimum-raised", Breaking, Writers | Stored, "Numbers have to be greater."},
	{"multiple-of-changed", Breaking, Writers | Stored, "Numbers have to be multiples of something."},
	{"multiple-of-relaxed", Safe, Readers, "Numbers need not be multiples any more, or of something smaller."},
	{"name-changed", Breaking, Everybody, "The definition has another name: it is another definition, and the old one goes with all its objects if it is deleted."},
	{"not-compared", Risky, Everybody, "The definitions are too involved, or differ too much, to list everything."},
	{"nullable-added", Risky, Writers | Readers, "Null used to be dropped or replaced by the default, and becomes a value."},
	{"nullable-removed", Breaking, Writers | Stored, "Null is no value any more: it is dropped, replaced by the default, or refused in a list."},
	{"pattern-added", Breaking, Writers | Stored, "Strings have to match a pattern."},
	{"pattern-changed", Breaking, Writers | Stored, "Strings have to match another pattern, and not all that matched the old one do."},
	{"pattern-relaxed", Safe, Readers, "Strings need not match a pattern any more, or a wider one."},
	{"plural-changed", Breaking, Everybody, "The plural is part of every request's path and of the keys in etcd."},
	{"preserve-added", Safe, Readers, "Unknown fields were pruned and are now preserved."},
	{"preserve-removed", Breaking, Everybody, "Unknown fields were preserved and are now pruned, or have to fit a schema."},
	{"printer-columns-changed", Safe, Readers, "kubectl get shows other columns."},
	{"read-only-changed", Risky, Writers, "A field becomes read-only for servers that honour this, or ceases to be."},
	{"required-added", Breaking, Writers | Stored, "A field has to be there and no default fills it in."},
	{"required-removed", Risky, Readers, "A field that was always there may be missing."},
	{"rule-added", Breaking, Writers | Stored, "There is a new validation rule."},
	{"rule-changed", Breaking, Everybody, "A validation rule says something else."},
	{"rule-message-changed", Safe, Writers, "A validation rule refuses the same objects in other words."},
	{"rule-removed", Risky, Readers, "A validation rule is gone."},
	{"scale-added", Safe, Readers, "The resource can be scaled."},
	{"scale-changed", Risky, Writers | Readers, "Scaling reads or writes other fields."},
	{"scale-removed", Breaking, Writers | Readers, "The resource can no longer be scaled: autoscalers and kubectl scale fail."},
	{"scope-changed", Breaking, Everybody, "Objects move into namespaces or out of them. API servers refuse the change."},
	{"selectable-field-added", Safe, Readers, "Objects can be selected by another field."},
	{"selectable-field-removed", Breaking, Readers, "Requests that select objects by the field are refused."},
	{"short-name-added", Safe, Readers, "There is another short name for kubectl, which may be taken by another resource."},
	{"short-name-removed", Risky, Writers | Readers, "Commands and scripts that use the short name fail."},
	{"singular-changed", Risky, Writers | Readers, "Commands and scripts that use the singular fail."},
	{"status-subresource-added", Breaking, Writers, "Status can only be written through the subresource /status, and is ignored elsewhere."},
	{"status-subresource-removed", Breaking, Writers, "The subresource /status is gone: controllers that write to it fail, and other writers can overwrite status."},
	{"storage-version-changed", Risky, Stored, "Objects are written to etcd in another version; those that are there stay in the old one until they are written."},
	{"stored-version-dropped", Breaking, Stored, "Objects may be stored in a version that is gone. API servers refuse the change; without that version they could not be read."},
	{"type-changed", Breaking, Everybody, "Values of some type that was allowed are not any more."},
	{"type-widened", Risky, Everybody, "Values of further types are allowed."},
	{"union-changed", Risky, Writers | Stored, "Other fields exclude each other."},
	{"version-added", Safe, Readers, "There is another version."},
	{"version-removed", Breaking, Writers | Readers, "Requests for the version fail."},
	{"version-served", Safe, Readers, "A version that was not served is."},
	{"version-withdrawn", Breaking, Writers | Readers, "Requests for the version fail."},
}

// wording says how a demand that comes or goes is reported.
type wording struct {
	rule    finding.ID
	what    string // what changed
	refused string // what follows
}

var tightenings = map[string]wording{
	"maximum":              {"maximum-lowered", "the maximum is lowered", "greater numbers are refused"},
	"minimum":              {"minimum-raised", "the minimum is raised", "smaller numbers are refused"},
	"multipleOf":           {"multiple-of-changed", "multipleOf is set", "other numbers are refused"},
	"maxLength":            {"max-length-lowered", "the greatest length is lowered", "longer strings are refused"},
	"minLength":            {"min-length-raised", "the least length is raised", "shorter strings are refused"},
	"maxItems":             {"max-items-lowered", "the greatest number of items is lowered", "longer lists are refused"},
	"minItems":             {"min-items-raised", "the least number of items is raised", "shorter lists are refused"},
	"maxProperties":        {"max-properties-lowered", "the greatest number of fields is lowered", "larger objects are refused"},
	"minProperties":        {"min-properties-raised", "the least number of fields is raised", "smaller objects are refused"},
	"pattern":              {"pattern-added", "the pattern is set", "strings that do not match are refused"},
	"format":               {"format-added", "the format is set", "strings that do not have it are refused"},
	"enum":                 {"enum-added", "the values are limited", "others are refused"},
	"required":             {"required-added", "the required fields are extended", "objects without the field are refused"},
	"additionalProperties": {"additional-properties-closed", "additionalProperties is set", "objects with fields that are not specified are refused"},
	"anyOf":                {"junctor-changed", "anyOf is set", "values that satisfy no branch are refused"},
	"oneOf":                {"junctor-changed", "oneOf is set", "values that satisfy no branch or several are refused"},
	"not":                  {"junctor-changed", "not is set", "values that satisfy its schema are refused"},
}

var relaxations = map[string]wording{
	"maximum":              {"maximum-raised", "the maximum is raised or gone", ""},
	"minimum":              {"minimum-lowered", "the minimum is lowered or gone", ""},
	"multipleOf":           {"multiple-of-relaxed", "multipleOf is smaller or gone", ""},
	"maxLength":            {"max-length-raised", "the greatest length is raised or gone", ""},
	"minLength":            {"min-length-lowered", "the least length is lowered or gone", ""},
	"maxItems":             {"max-items-raised", "the greatest number of items is raised or gone", ""},
	"minItems":             {"min-items-lowered", "the least number of items is lowered or gone", ""},
	"maxProperties":        {"max-properties-raised", "the greatest number of fields is raised or gone", ""},
	"minProperties":        {"min-properties-lowered", "the least number of fields is lowered or gone", ""},
	"pattern":              {"pattern-relaxed", "the pattern is wider or gone", ""},
	"format":               {"format-removed", "the format is wider or gone", ""},
	"enum":                 {"enum-removed", "more values are allowed", "readers with a case for each value meet one they have no case for"},
	"required":             {"required-removed", "the field is no longer required", "readers who count on it may not find it"},
	"additionalProperties": {"additional-properties-opened", "fields that are not specified are no longer refused", ""},
	"anyOf":                {"junctor-relaxed", "anyOf is weaker or gone", ""},
	"oneOf":                {"junctor-relaxed", "oneOf is weaker or gone", ""},
	"not":                  {"junctor-relaxed", "not is weaker or gone", ""},
}

// fixes say what to do instead.
var fixes = map[finding.ID]string{
	"additional-properties-closed": newVersion,
	"conversion-changed":           "keep the webhook until all clients use one version and all objects are stored in it",
	"default-added":                "leave the field without a default and treat its absence in the controller, or add the default in a new version",
	"default-changed":              "keep the default, or change it in a new version",
	"default-removed":              "keep the default, or drop it in a new version",
	"embedded-changed":             newVersion,
	"enum-added":                   tightenLater,
	"enum-value-added":             "release readers that know the value, or take unknown values for an error, before writers use it",
	"enum-value-removed":           "keep the value, mark it as deprecated in the description, and drop it in a new version",
	"field-removed":                "keep the field, mark it as deprecated in the description, and drop it in a new version",
	"field-specified":              "look at stored objects first (espalier diff --objects), or specify the field in a new version",
	"format-added":                 tightenLater,
	"format-changed":               tightenLater,
	"group-changed":                otherResource,
	"int-or-string-removed":        newVersion,
	"junctor-changed":              "run stored objects through both definitions (espalier diff --objects)",
	"kind-changed":                 otherResource,
	"list-map-keys-changed":        newVersion,
	"list-type-changed":            newVersion,
	"max-items-lowered":            tightenLater,
	"max-length-lowered":           tightenLater,
	"max-properties-lowered":       tightenLater,
	"maximum-lowered":              tightenLater,
	"min-items-raised":             tightenLater,
	"min-length-raised":            tightenLater,
	"min-properties-raised":        tightenLater,
	"minimum-raised":               tightenLater,
	"multiple-of-changed":          tightenLater,
	"name-changed":                 otherResource,
	"nullable-removed":             newVersion,
	"pattern-added":                tightenLater,
	"pattern-changed":              tightenLater,
	"plural-changed":               otherResource,
	"preserve-removed":             "specify the fields that are in use first: espalier diff --objects lists those that would be pruned",
	"required-added":               "give the field a default, or require it in a new version",
	"rule-added":                   "run stored objects through both definitions (espalier diff --objects), or add the rule in a new version",
	"rule-changed":                 "run stored objects through both definitions (espalier diff --objects), or change the rule in a new version",
	"scope-changed":                otherResource,
	"selectable-field-removed":     "keep the field selectable as long as clients may select by it",
	"status-subresource-added":     "enable it in a new version, or update every controller that writes status first",
	"storage-version-changed":      "write all objects once (storage version migration) before the old version is removed",
	"stored-version-dropped":       "write all objects once in the new version, remove the old one from status.storedVersions, then drop it",
	"type-changed":                 "add a new field of the new type beside the old one, or change the type in a new version with a conversion webhook",
	"version-removed":              "stop serving the version first, and remove it once nobody asks for it and no object is stored in it",
	"version-withdrawn":            "mark the version as deprecated first, so that its clients are warned",
}

const (
	newVersion    = "make the change in a new version with a conversion webhook"
	tightenLater  = "look for stored objects that violate it first (espalier diff --objects), or tighten it in a new version"
	otherResource = "create a definition under the new name, move the objects, then delete this one"
)
