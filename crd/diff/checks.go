package diff

import (
	"slices"

	"github.com/espalier-dev/espalier/finding"
)

// CheckInfo describes a kind of change.
type CheckInfo struct {
	ID          finding.ID
	Level       Level    // the worst level of such changes
	Breaks      Audience // at worst
	Explanation string
}

// Check returns the kind as the check that finds it.
func (r *CheckInfo) Check() finding.Check {
	return finding.Check{ID: r.ID, Severity: r.Level.Severity(), Explanation: r.Explanation, Source: "Espalier"}
}

// Checks returns all kinds of changes, sorted by ID.
func Checks() []CheckInfo { return slices.Clone(table) }

var table = []CheckInfo{
	{"additional-properties-closed", Breaking, AllAudiences, "The API server now prunes or rejects unspecified fields. It kept them before."},
	{"additional-properties-opened", Safe, Readers, "The API server now keeps unspecified fields. It pruned or rejected them before."},
	{"categories-changed", Safe, Readers, "The resource appears in other categories of kubectl get, such as all."},
	{"conversion-changed", Risky, AllAudiences, "The conversion between versions changed: another webhook, or another strategy. It affects clients that use a version other than the storage version."},
	{"default-added", Risky, AllAudiences, "The API server now fills in a default for the field."},
	{"default-changed", Risky, AllAudiences, "The API server now fills in another default. Objects stored with the old default keep it."},
	{"default-removed", Risky, AllAudiences, "The API server no longer fills in a default for the field."},
	{"deprecation-added", Safe, Writers | Readers, "The version is now deprecated, and its clients get warnings."},
	{"deprecation-removed", Safe, Writers | Readers, "The version is no longer deprecated, and its clients get no more warnings."},
	{"embedded-changed", Breaking, AllAudiences, "x-kubernetes-embedded-resource was added to an object or removed from it."},
	{"enum-added", Breaking, Writers | Stored, "An enum was added. The API server rejects all other values."},
	{"enum-removed", Risky, Readers, "The enum was removed. The API server accepts any value."},
	{"enum-value-added", Risky, Readers, "Values were added to the enum. Readers that handle each value may get one that they do not handle."},
	{"enum-value-removed", Breaking, Writers | Stored, "Values were removed from the enum. The API server rejects them."},
	{"field-added", Safe, Readers, "A field was added. Existing objects do not have it."},
	{"field-removed", Breaking, AllAudiences, "A field was removed from the schema. The API server prunes it from requests, and from stored objects when it reads them."},
	{"field-specified", Breaking, Writers | Stored, "A field now has a schema. The API server kept any value of it before."},
	{"field-unspecified", Safe, Readers, "A field no longer has a schema. The API server keeps any value of it."},
	{"format-added", Breaking, Writers | Stored, "A format was added. Strings or numbers must match it."},
	{"format-changed", Breaking, Writers | Stored, "The format changed. Strings or numbers must match the new one."},
	{"format-removed", Risky, AllAudiences, "The format was removed or relaxed. CEL rules that saw a timestamp, a duration or bytes now see a string."},
	{"group-changed", Breaking, AllAudiences, "The group is part of every URL and of the keys in etcd. A CRD with another group defines another resource."},
	{"int-or-string-added", Risky, AllAudiences, "A field that was an integer or a string may now be either."},
	{"int-or-string-removed", Breaking, AllAudiences, "A field that could be an integer or a string may now be only one of them."},
	{"junctor-changed", Breaking, Writers | Stored, "An anyOf, oneOf or not was added or changed. The API server may reject values that were valid."},
	{"junctor-relaxed", Safe, Readers, "An anyOf, oneOf or not was removed or relaxed."},
	{"kind-changed", Breaking, AllAudiences, "Manifests, clients and stored objects contain the kind. The API server rejects or cannot read objects with the old kind."},
	{"list-kind-changed", Risky, Readers, "Typed clients compare the kind of a list with the kind that they expect."},
	{"list-map-keys-changed", Breaking, Writers | Stored, "Other fields now identify the items of a list. Two items may now have the same keys, and server-side apply merges the list differently."},
	{"list-type-changed", Breaking, Writers | Stored, "The list type changed. Items may now have to be unique, and server-side apply merges the list differently."},
	{"map-type-changed", Risky, Writers, "Server-side apply now merges the object as a whole instead of field by field, or the other way round."},
	{"max-items-lowered", Breaking, Writers | Stored, "maxItems was lowered or added. Lists must have fewer items."},
	{"max-items-raised", Safe, Readers, "maxItems was raised or removed. Lists may have more items."},
	{"max-length-lowered", Breaking, Writers | Stored, "maxLength was lowered or added. Strings must be shorter."},
	{"max-length-raised", Safe, Readers, "maxLength was raised or removed. Strings may be longer."},
	{"max-properties-lowered", Breaking, Writers | Stored, "maxProperties was lowered or added. Objects must have fewer fields."},
	{"max-properties-raised", Safe, Readers, "maxProperties was raised or removed. Objects may have more fields."},
	{"maximum-lowered", Breaking, Writers | Stored, "maximum was lowered or added. Numbers must be smaller."},
	{"maximum-raised", Safe, Readers, "maximum was raised or removed. Numbers may be larger."},
	{"min-items-lowered", Safe, Readers, "minItems was lowered or removed. Lists may have fewer items."},
	{"min-items-raised", Breaking, Writers | Stored, "minItems was raised or added. Lists must have more items."},
	{"min-length-lowered", Safe, Readers, "minLength was lowered or removed. Strings may be shorter."},
	{"min-length-raised", Breaking, Writers | Stored, "minLength was raised or added. Strings must be longer."},
	{"min-properties-lowered", Safe, Readers, "minProperties was lowered or removed. Objects may have fewer fields."},
	{"min-properties-raised", Breaking, Writers | Stored, "minProperties was raised or added. Objects must have more fields."},
	{"minimum-lowered", Safe, Readers, "minimum was lowered or removed. Numbers may be smaller."},
	{"minimum-raised", Breaking, Writers | Stored, "minimum was raised or added. Numbers must be larger."},
	{"multiple-of-changed", Breaking, Writers | Stored, "multipleOf was added or changed. Numbers must be multiples of it."},
	{"multiple-of-relaxed", Safe, Readers, "multipleOf was removed or relaxed. More numbers are valid."},
	{"name-changed", Breaking, AllAudiences, "A CRD with another name is another CRD. Deleting the old CRD deletes all its objects."},
	{"not-compared", Risky, AllAudiences, "The CRDs are too complex, or differ too much, to list every change."},
	{"nullable-added", Risky, Writers | Readers, "null is now a value. The API server dropped it or replaced it with the default before."},
	{"nullable-removed", Breaking, Writers | Stored, "null is no longer a value. The API server drops it, replaces it with the default, or rejects it in a list."},
	{"pattern-added", Breaking, Writers | Stored, "A pattern was added. Strings must match it."},
	{"pattern-changed", Breaking, Writers | Stored, "The pattern changed. Some strings that matched the old pattern do not match the new one."},
	{"pattern-relaxed", Safe, Readers, "The pattern was removed or relaxed. More strings are valid."},
	{"plural-changed", Breaking, AllAudiences, "The plural is part of every URL and of the keys in etcd."},
	{"preserve-added", Safe, Readers, "The API server now preserves unknown fields. It pruned them before."},
	{"preserve-removed", Breaking, AllAudiences, "The API server now prunes unknown fields, or validates them against a schema. It preserved them before."},
	{"printer-columns-changed", Safe, Readers, "kubectl get shows other columns."},
	{"read-only-changed", Risky, Writers, "readOnly was added to a field or removed from it. Only servers that enforce readOnly are affected."},
	{"required-added", Breaking, Writers | Stored, "A field is now required and has no default."},
	{"required-removed", Risky, Readers, "A field is no longer required, so it may be absent."},
	{"rule-added", Breaking, Writers | Stored, "A CEL rule was added."},
	{"rule-changed", Breaking, AllAudiences, "A CEL rule changed."},
	{"rule-message-changed", Safe, Writers, "A CEL rule rejects the same objects with another message."},
	{"rule-removed", Risky, Readers, "A CEL rule was removed."},
	{"scale-added", Safe, Readers, "The scale subresource was added."},
	{"scale-changed", Risky, Writers | Readers, "The scale subresource reads or writes other fields."},
	{"scale-removed", Breaking, Writers | Readers, "The scale subresource was removed. Autoscalers and kubectl scale fail."},
	{"scope-changed", Breaking, AllAudiences, "Objects would move into namespaces or out of them. The API server rejects the change."},
	{"selectable-field-added", Safe, Readers, "Clients can select objects by the new field."},
	{"selectable-field-removed", Breaking, Readers, "The API server rejects requests that select objects by the field."},
	{"short-name-added", Safe, Readers, "kubectl accepts the new short name, unless another resource already uses it."},
	{"short-name-removed", Risky, Writers | Readers, "Commands and scripts that use the short name fail."},
	{"singular-changed", Risky, Writers | Readers, "Commands and scripts that use the old singular fail."},
	{"status-subresource-added", Breaking, Writers, "Clients can write status only through /status. The API server ignores status in other requests."},
	{"status-subresource-removed", Breaking, Writers, "The status subresource was removed. Controllers that write to /status fail, and other clients can overwrite status."},
	{"storage-version-changed", Risky, Stored, "The API server stores objects in another version. Existing objects stay in the old version until a client writes them."},
	{"stored-version-dropped", Breaking, Stored, "A version was removed in which objects may still be stored. The API server rejects the change, because it could not read these objects."},
	{"type-changed", Breaking, AllAudiences, "The type changed. The API server rejects values of a type that was valid."},
	{"type-widened", Risky, AllAudiences, "The API server accepts values of additional types."},
	{"union-changed", Risky, Writers | Stored, "The members of a union changed, so other fields exclude each other."},
	{"version-added", Safe, Readers, "A version was added."},
	{"version-removed", Breaking, Writers | Readers, "A version was removed. Requests for it fail."},
	{"version-served", Safe, Readers, "A version that was not served is now served."},
	{"version-withdrawn", Breaking, Writers | Readers, "A version is no longer served. Requests for it fail."},
}

// wording says how a demand that comes or goes is reported.
type wording struct {
	check   finding.ID
	what    string // what changed
	refused string // what follows
}

var tightenings = map[string]wording{
	"maximum":              {"maximum-lowered", "maximum was lowered", "the API server rejects larger numbers"},
	"minimum":              {"minimum-raised", "minimum was raised", "the API server rejects smaller numbers"},
	"multipleOf":           {"multiple-of-changed", "multipleOf changed", "the API server rejects other numbers"},
	"maxLength":            {"max-length-lowered", "maxLength was lowered", "the API server rejects longer strings"},
	"minLength":            {"min-length-raised", "minLength was raised", "the API server rejects shorter strings"},
	"maxItems":             {"max-items-lowered", "maxItems was lowered", "the API server rejects longer lists"},
	"minItems":             {"min-items-raised", "minItems was raised", "the API server rejects shorter lists"},
	"maxProperties":        {"max-properties-lowered", "maxProperties was lowered", "the API server rejects objects with more fields"},
	"minProperties":        {"min-properties-raised", "minProperties was raised", "the API server rejects objects with fewer fields"},
	"pattern":              {"pattern-added", "pattern changed", "the API server rejects strings that do not match"},
	"format":               {"format-added", "format changed", "the API server rejects strings that do not match"},
	"enum":                 {"enum-added", "enum changed", "the API server rejects other values"},
	"required":             {"required-added", "the field is now required", "the API server rejects objects without it"},
	"additionalProperties": {"additional-properties-closed", "additionalProperties changed", "the API server rejects objects with unspecified fields"},
	"anyOf":                {"junctor-changed", "anyOf changed", "the API server rejects values that match no branch"},
	"oneOf":                {"junctor-changed", "oneOf changed", "the API server rejects values that match no branch or several"},
	"not":                  {"junctor-changed", "not changed", "the API server rejects values that match its schema"},
}

var relaxations = map[string]wording{
	"maximum":              {"maximum-raised", "maximum was raised or removed", ""},
	"minimum":              {"minimum-lowered", "minimum was lowered or removed", ""},
	"multipleOf":           {"multiple-of-relaxed", "multipleOf was relaxed or removed", ""},
	"maxLength":            {"max-length-raised", "maxLength was raised or removed", ""},
	"minLength":            {"min-length-lowered", "minLength was lowered or removed", ""},
	"maxItems":             {"max-items-raised", "maxItems was raised or removed", ""},
	"minItems":             {"min-items-lowered", "minItems was lowered or removed", ""},
	"maxProperties":        {"max-properties-raised", "maxProperties was raised or removed", ""},
	"minProperties":        {"min-properties-lowered", "minProperties was lowered or removed", ""},
	"pattern":              {"pattern-relaxed", "pattern was relaxed or removed", ""},
	"format":               {"format-removed", "format was relaxed or removed", ""},
	"enum":                 {"enum-removed", "the API server accepts more values", "readers that handle each value may get one that they do not handle"},
	"required":             {"required-removed", "the field is no longer required", "readers that rely on it may not find it"},
	"additionalProperties": {"additional-properties-opened", "the API server no longer rejects unspecified fields", ""},
	"anyOf":                {"junctor-relaxed", "anyOf was relaxed or removed", ""},
	"oneOf":                {"junctor-relaxed", "oneOf was relaxed or removed", ""},
	"not":                  {"junctor-relaxed", "not was relaxed or removed", ""},
}

// fixes say what to do instead.
var fixes = map[finding.ID]string{
	"additional-properties-closed": newVersion,
	"conversion-changed":           "keep the webhook until all clients use one version and all objects are stored in it",
	"default-added":                "handle the absent field in the controller instead, or add the default in a new version",
	"default-changed":              "keep the default, or change it in a new version",
	"default-removed":              "keep the default, or remove it in a new version",
	"embedded-changed":             newVersion,
	"enum-added":                   tightenLater,
	"enum-value-added":             "before writers use the value, release readers that know it, or that report unknown values as errors",
	"enum-value-removed":           "keep the value, mark it as deprecated in the description, and remove it in a new version",
	"field-removed":                "keep the field, mark it as deprecated in the description, and remove it in a new version",
	"field-specified":              "check stored objects first (espalier diff --objects), or specify the field in a new version",
	"format-added":                 tightenLater,
	"format-changed":               tightenLater,
	"group-changed":                otherResource,
	"int-or-string-removed":        newVersion,
	"junctor-changed":              "check stored objects against both CRDs (espalier diff --objects)",
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
	"preserve-removed":             "specify the fields in use first: espalier diff --objects lists the fields that the API server would prune",
	"required-added":               "give the field a default, or require it in a new version",
	"rule-added":                   "check stored objects against both CRDs (espalier diff --objects), or add the CEL rule in a new version",
	"rule-changed":                 "check stored objects against both CRDs (espalier diff --objects), or change the CEL rule in a new version",
	"scope-changed":                otherResource,
	"selectable-field-removed":     "keep the field selectable as long as clients may select by it",
	"status-subresource-added":     "first update every controller that writes status, or enable the subresource in a new version",
	"storage-version-changed":      "write all objects once (storage version migration) before you remove the old version",
	"stored-version-dropped":       "write all objects once in the new version, remove the old version from status.storedVersions, then remove it from the CRD",
	"type-changed":                 "add a field with the new type and keep the old one, or change the type in a new version with a conversion webhook",
	"version-removed":              "stop serving the version first, and remove it once no client requests it and no object is stored in it",
	"version-withdrawn":            "mark the version as deprecated first, so that its clients get warnings",
}

const (
	newVersion    = "make the change in a new version with a conversion webhook"
	tightenLater  = "first check which stored objects become invalid (espalier diff --objects), or tighten the schema in a new version"
	otherResource = "create a CRD in another group, or with another plural and kind; copy the objects; then delete this CRD"
)
