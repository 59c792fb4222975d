// Package sample makes objects of a CRD at random, and edits them as users do. Tests of conversion use it.
//
//	schema of a version ── New ──▶ Generator ── Object ──▶ object ── Edits ──▶ edits ── Apply ──▶ edited object
//
// # Invariants
//
// Objects have only fields that the schema specifies, of the types that it specifies, unless it keeps unknown fields.
// Enums, formats, patterns, bounds, required fields and the keys of lists are respected as far as package witness
// finds values. What CEL rules and combinations of schemas (anyOf, not) demand is not: callers validate objects if they
// need valid ones.
//
// An object has about as many values as its size says, however large the schema is: required fields, and a random
// choice of the others. The same seed gives the same objects.
package sample
