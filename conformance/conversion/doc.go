// Package conversion tests the contract of conversion rules with many rule sets: those that package infer proposes for
// real CRDs with several versions, and those that are known because the second version was made by them.
//
//	corpus ── CRDs whose versions differ ── infer ──▶ rule sets ┐
//	seed ── random schema ── renames, moves, splits … ──▶ rule sets ┴─▶ trial: round trips, edits of converted objects
//
// A violation is a bug of crd/conversion, unless the contract in crd/conversion/trial says more than it can.
package conversion
