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
// The number of candidates is bounded, and so is their size. Large schemas get fewer candidates. The same input gives the
// same witness.
package witness
