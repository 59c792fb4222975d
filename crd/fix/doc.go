// Package fix rewrites definitions that today's API servers refuse into ones
// that they accept: apiextensions.k8s.io/v1beta1 becomes v1, and schemas that
// are not structural become structural.
//
// # Data flow
//
//	definition ── upgrade ──▶ v1 ── per schema: plain ──▶ lift ──▶ reduce ── check
//	                                                                          │
//	                                         edits and notes ◀────────────────┘
//
// plain takes the keywords out that no version of the API ever supported: $ref
// is inlined, lists of types become one, and so on. lift states outside of
// junctors what is stated only inside of them, types and field names: the
// skeleton of KEP-24. reduce takes everything out of the junctors that is not
// value validation.
//
// # What holds
//
// The new schema accepts every object that the old one accepted, and pruning by
// it loses no field that the old one mentions. Two kinds of notes limit this:
// a note that is [Narrower] names a type that had to be inferred, from the
// keywords beside it or from the branches that mention the field, since values
// of other types were accepted before, if only for want of a type; one that is
// [Wider] names a check that a structural schema cannot express and that had to
// go. Where even that is not enough, a note says that it [Cannot] be done, and
// the schema stays as it is.
//
// The result of fixing a definition needs no fixing. A definition in which
// nothing is wrong gets no edits.
//
// # Terminology
//
// The core of a schema is all of it that is outside of junctors: allOf, anyOf,
// oneOf and not. A branch is a schema below a junctor. To reduce a branch
// exactly is to change no verdict of it on values that the core accepts; where
// that cannot be, the branch may be weakened unless it is inside of a oneOf or
// not, in which accepting more in one place means accepting less in all.
package fix
