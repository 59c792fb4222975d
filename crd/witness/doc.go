// Package witness searches for objects that prove that a change of a schema breaks: the old schema stores them, the new
// one refuses or prunes them.
//
// # Data flow
//
//	place, keyword, rule ──▶ the parts of a value that matter: variables
//	                               │ values to try: none, bounds, enums, samples of patterns, literals of rules
//	                               ▼
//	smallest valid object ──▶ candidates ──▶ old: Admit ── invalid ──▶ repaired, or dropped
//	                                             │ stored
//	                                             ▼
//	                                         new: Admit ── refused at the place for the keyword, or pruned ──▶ witness
//
// The engine validates every candidate with both schemas, CEL rules and defaults included. So a witness is never wrong. That
// none is found proves nothing.
//
// # Limits
//
// The number of candidates for a change is bounded, and so is the work for all changes of a pair: values that are made, and
// parts of schemas that they are checked against. Fields that a candidate does not have cost nothing, so that large schemas
// get as many candidates as small ones. The same input gives the same witness.
package witness
