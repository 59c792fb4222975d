// Package fix rewrites CRDs that today's API servers refuse into ones
// that they accept: apiextensions.k8s.io/v1beta1 becomes v1, and schemas that
// are not structural become structural.
//
// # Data flow
//
//	CRD ── upgrade ──▶ v1 ── per schema: plain ──▶ lift ──▶ reduce ── check
//	                                                                    │
//	                                   edits and notes ◀────────────────┘
//
// plain replaces the keywords that no version of the API ever supported: it inlines
// $ref, turns lists of types into one type, and so on. lift copies types and field
// names that are specified only inside allOf, anyOf, oneOf or not to the schema
// outside: the skeleton of KEP-24. reduce removes everything from these keywords
// that is not value validation.
//
// # What holds
//
// The new schema accepts every object that the old one accepted, and prunes no
// field that the old one mentions, with two exceptions. A [Narrower] note names a
// type that was missing, and that fix inferred from other keywords or from the
// branches that mention the field: values of other types are now refused. A [Wider]
// note names a condition that a structural schema cannot express, and that fix
// removed. If neither is enough, a [Cannot] note says so, and the schema is not
// changed.
//
// Fixing the result again makes no edits. A valid CRD gets no edits.
//
// # Terminology
//
// The logical keywords are allOf, anyOf, oneOf and not. The core of a schema is
// everything outside them. A branch is a schema inside one. A branch is reduced
// exactly if it gives the same result as before for all values that the core
// accepts. If that is impossible, the branch may accept more, unless it is inside a
// oneOf or not: there, a branch that accepts more makes the whole accept less.
package fix
