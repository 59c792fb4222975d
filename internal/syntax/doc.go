// Package syntax parses OpenAPI v3 schemas into syntax trees that keep what was
// written, with positions.
//
// # Data flow
//
//	jsondoc.Doc ── Parse ──▶ *Schema ──▶ internal/compile: check, then lower
//	                            │
//	                            └── AppendJSON ──▶ canonical JSON
//
// # What a schema document means
//
// A document means what upstream's decoder makes of it for its v1 (and
// v1beta1) schema type, because that is what every cluster does:
//
//   - null for a keyword is the same as leaving it out; null for a property, an
//     item of allOf or a rule is an empty one;
//   - a keyword of the wrong JSON type makes the document undecodable: a
//     [Problem]. The exception is items, where anything that is neither an
//     object nor an array counts as written but empty;
//   - integers must be written as integers: 1.0 and 1e0 are Problems;
//   - keyword names are case-sensitive, and of duplicate keys the last one wins;
//   - keywords that upstream does not know are dropped by it. They are kept
//     here by name, so that the check can say so. Among them are
//     x-kubernetes-unions and readOnly of KEP-2335, which are read leniently:
//     a malformed one is remembered, not a Problem, since a cluster accepts it.
//
// # Invariants
//
// Absent and empty differ where upstream lets it show: a nil slice was not
// written (or was null), an empty non-nil one was. Children are never nil
// inside Properties, AllOf and their like. Properties and all other name maps
// are sorted by name, without duplicates. But for JSON.Written, a tree refers
// neither to the Doc nor to its source: both may be reused after Parse.
//
// # Terminology
//
// A keyword is a member of a schema object. A logical keyword is one of allOf,
// anyOf, oneOf and not. A rule is an entry of x-kubernetes-validations.
package syntax
