// Package diff says what a change of a CustomResourceDefinition breaks, and for
// whom.
//
// # Data flow
//
//	old, new ── crd.Parse ──▶ the definitions: names, scope, versions, subresources
//	                              │ per version, by name
//	                              ▼
//	          schema of old ┐
//	                        ├── one walk over both ──▶ []Change
//	          schema of new ┘
//
// # What is compared
//
// Not texts but meanings: a change is reported as breaking only if something
// that old admits may be lost or refused under new. For every place of an
// object the walk asks of each demand of new whether what old demands there
// implies it. All that allOf says counts as said at the place itself, so that
// moving a demand there is no change; enums are sets; for integers minimum 1
// and exclusive minimum 0 are the same; patterns are compared as languages
// where their automata are small; junctors branch by branch; rules by their
// syntax trees. What cannot be proven either way is Risky and says why.
//
// Swapped, the same questions find what was widened. That is Safe for writers;
// readers may meet what they do not know.
//
// # What is promised
//
// No object that old stores, in the form in which old stores it, is refused by
// new, or loses a field, or gets another value for a field that old knew,
// without a Change of level Breaking or Risky that breaks Writers or Stored.
// cmd/search-diff in the conformance module looks for counterexamples. Not
// counted are the values that clusters accept by mistake and
// espalier.CompileOptions.Strict refuses, such as arrays in place of strings
// with a format.
//
// # Limits
//
// The walk is linear in the two documents. Proofs that need more (branches of
// junctors, automata, rules) share fixed budgets; where one is used up, the
// answer is Risky.
//
// # Terminology
//
// A demand is one value validation of a schema. A part is a schema that applies
// to a place: the one that gives it its structure, or one of an allOf. To be
// watched is to be below a junctor, an enum or a rule, which may look at what
// is added there.
package diff
