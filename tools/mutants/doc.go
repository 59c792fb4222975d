// Command mutants measures what tests notice. It changes the source in small ways, one at a
// time, and runs the tests that are nearest:
//
//	packages ──▶ syntax tree, types ──▶ mutants ── seed ──▶ sample
//	                                                          │
//	         tests with all of them, compiled once per package ◀─┘
//	                          │
//	                      tests of the package, one mutant chosen
//	                          │ pass
//	                          ▼
//	                      tests of the packages that use it
//	                          │ pass
//	                          ▼
//	                      survivor: known and explained, or a finding
//
// A function with mutants has a variant for each and begins with a switch over a number from
// the environment, so that a mutant costs a run of the tests and no compilation. What is not
// inside a function that can be called like this is compiled alone. Tests that fail for the
// switch itself, such as those of allocations, are left out and named. If the tests of a
// package take long, each runs alone once and writes which of these functions it calls; a
// mutant then costs the tests that can notice it, and none if no test calls its function.
//
// No file of the repository changes: the compiler reads the changed files in place of the
// originals (go test -overlay).
//
// Existing programs do not fit: github.com/go-gremlins/gremlins v0.6.0 changes operators
// only, copies a module for each worker, and knows no workspace of several modules, no
// sample and no list of survivors.
//
// # Invariants
//
// The same seed and source give the same mutants. A mutant compiles: the types of the
// changed file are checked before it counts. A mutant is known by its package, function and
// text, so that the list of survivors stays true when lines move; an entry that is about no
// mutant any more is an error, and so is one that a test notices.
package main
