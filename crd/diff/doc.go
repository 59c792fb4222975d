// Package diff compares two versions of a CRD and reports what the change breaks,
// and for whom.
//
// # Data flow
//
//	old, new ── crd.Parse ──▶ the CRDs: names, scope, versions, subresources
//	                              │ per version, by name
//	                              ▼
//	          schema of old ┐
//	                        ├── one walk over both ──▶ []Change ── crd/witness ──▶ levels, witnesses
//	          schema of new ┘
//
// # What is compared
//
// Compare compares the effects of the schemas, not their texts. A change is
// Breaking only if new may refuse or prune a value that old accepts. At every
// place of an object, the walk tests for each demand of new whether the demands of
// old imply it:
//
//   - The schemas of an allOf apply to the place itself, so moving a demand into
//     or out of allOf is no change.
//
//   - Enums are compared as sets.
//
//   - For integers, minimum 1 and exclusive minimum 0 are the same.
//
//   - Patterns are compared by the strings that they match, if their automata are
//     small.
//
//   - anyOf, oneOf and not are compared branch by branch, CEL rules by their syntax
//     trees.
//
//   - A CEL rule holds for all old objects if it is about fields that old prunes, or if bounds, enums, patterns and
//     required fields of old imply it.
//
// Where the walk proves nothing, package witness searches for an object that old stores and that new refuses or
// prunes. If it finds one, the change is Breaking, and Change.Witness has the object. If it finds none, a demand or
// a CEL rule is Risky, and the message says why. Changes of the structure, such as a removed field, are Breaking also
// without a witness, and so is a demand if no valid object was found to try.
//
// The same walk with old and new swapped finds what was widened. That is Safe for
// writers, but readers may get values that they do not expect.
//
// # What is promised
//
// If new refuses an object as old stores it, prunes a field of it, or changes the
// value of a field that old specifies, there is a Change of level Breaking or Risky
// that breaks Writers or Stored.
// cmd/search-diff in the conformance module looks for counterexamples. Not
// counted are the values that clusters accept by mistake and
// espalier.CompileOptions.Strict refuses, such as arrays in place of strings
// with a format. Nor are objects so large that their rules exceed the budget that
// API servers have for all rules of an object, or a relaxed rule that for one.
//
// # Limits
//
// The walk is linear in the two documents. Proofs that need more (branches of
// anyOf, oneOf and not, automata, CEL rules) share fixed budgets; if one is used
// up, the change is Risky. So do the searches for witnesses; changes that come after its
// end keep the level that the walk gives them.
//
// # Terminology
//
// A demand is one value validation of a schema. A part is a schema that applies
// to a place: the one that gives it its structure, or one of an allOf. A logical
// keyword is one of allOf, anyOf, oneOf and not. A place is watched if a logical
// keyword, an enum or a CEL rule above it may depend on what is added there.
package diff
