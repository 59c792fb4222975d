// Package conformance holds the differential tests of Espalier against the reference implementation,
// k8s.io/apiextensions-apiserver. It is a module of its own, so that the library does not depend on the reference.
//
// The packages, in the order in which data passes through them:
//
//   - corpus loads real CRDs;
//   - mutate makes more schemas of them, generate makes objects;
//   - engine and oracle answer for Espalier and for the reference;
//   - compare hands both the same inputs, and shrinks what differs;
//   - mixed compares schemas that are in use together with each of them alone in a process;
//   - tree is the editable JSON that mutate and compare share;
//   - cmd/conform runs it all (make conformance-short, make conformance), cmd/bench-engine measures both sides.
//
// Besides, testdata/cases holds tables of cases that TestCases runs through both sides; README.md counts them.
//
// Intended differences are listed in DIVERGENCES.md, and each is pinned by a test of this package.
package conformance
