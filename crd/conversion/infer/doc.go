// Package infer proposes conversion rules between versions of a CRD.
//
//	schemas of two versions ── Pair ──▶ fields with the same path and type: need no rule
//	                                    │ the others, by the item or object that holds them
//	                                    ▼
//	                            candidates: moved, renamed, wrapped, list and map, other values ── score ──▶ rules
//	                                    │ what is left                                                      │ compile
//	                                    ▼                                                                   ▼
//	                               preserved                                                     those that do not, dropped
//
// # Invariants
//
// The rules always compile, and lose nothing: what no rule converts is preserved. A rule says how sure it is, and why.
// Names and descriptions only hint at what a field means, so that a person has to read the rules.
//
// The work is in proportion to the size of the schemas: fields are compared with those of the same name, of the same
// description, or in the same object, and of large objects only with some.
package infer
