// Package conversion converts custom resources between the versions of a CRD by rules in an annotation of the CRD.
//
// # Data flow
//
//	annotation ── parseRules ──▶ rules ─┐
//	schemas ── newSide ──▶ fields ──────┴─ pairing ──▶ findings
//	                                          └─ lower ──▶ Plan: two directions for each pair of versions
//
//	object ── jsondoc.Parse ──▶ load: slots ──▶ groups: calculated values ──▶ write: the target
//	                                                                     └──▶ save: the annotation Preserved
//
// # Rules
//
// A conversion is between two versions; the conversions of a CRD form a tree, and objects take the path in it. Each
// rule works in both directions. Fields with the same path and type in both versions need no rule. A rule has one of
//
//	move                rename or relocate a field, an object, a list, an annotation or a label; a string may become
//	                    an integer, number or boolean and the other way round
//	wrap, unwrap        a value and a list of one value
//	split, join         a string and its parts, divided by a separator from its end
//	listToMap, mapToList  a list of objects and a map by one of their fields
//	enum                values of a string, number or boolean
//	constant            a value in one version that the other has not
//	cel                 values by CEL expressions, which see the fields of the rule and nothing else
//
// preserve lists fields that are saved while an object is in the other version, or is the word everything. lost lists
// fields that are dropped. A field that none of these decides about is a finding: nothing disappears silently.
//
// # Contract
//
//   - An object that is converted to another version and back is the same, byte for byte, in canonical JSON; declared
//     losses excepted. An empty metadata.annotations or metadata.labels is absent, as in API servers, and so is a list
//     or map of listToMap that is null.
//   - Values of the object always win over saved ones. Only what the target cannot hold is saved, in one annotation,
//     [Preserved], by the version that it is from. The annotation is absent if nothing is saved.
//   - A saved field comes back if the nearest object around it that both versions have is still there. If a client
//     of the other version has deleted that object, the saved fields below it are gone. Deleting a field does not
//     delete saved fields beside it.
//   - Fields of list items are saved by the keys of a list of type map, those of map values by their keys: a deleted
//     item takes its saved fields with it, a renamed one is a new one, and order does not matter. A list without keys,
//     or with items that have no key or the same one, is saved as a whole with a digest of what the rules make of it. It comes back only if they still make the same:
//     after a change of the list in fields that both versions have, what was saved of it is gone.
//   - Values that rules cannot calculate back (many to one, one way, a string that does not split) are saved with
//     what they became. They come back only if that is unchanged.
//   - If rules change, a value that the former rules have saved, and the new ones convert, comes back where the object
//     has no value for it. This holds for fields that are converted as a whole: lists, maps and objects whose parts
//     rules convert differently come back only if they are saved again.
//   - Saved values whose JSON type the schema does not accept do not come back. Their content is not validated: a user who may
//     write an object in one version may set its saved fields, also those of status, as with any conversion that
//     uses annotations.
//   - Conversion depends on the object and the plan alone. Of metadata only annotations and labels change;
//     managedFields stay as they are.
//
// # Invariants
//
// A plan is immutable. The cost of a conversion is linear in the object, for a given plan: each value is read once,
// lists without keys three times. Annotations are limited to 256 KiB together, as in API servers; rules are limited
// in number, depth and size, CEL expressions in cost: each evaluation, and all of a conversion in proportion to the object.
// A conversion that costs more is an error.
package conversion
