// Package costtest measures processor time and memory for tests.
//
// Other programs on a machine make code slower, and its growth seem steeper than it
// is. Two things follow:
//
//   - Tests of growth measure only if they are told how much faster than its input
//     cost may grow, with the flag -growth. `make linear` and `make linear-coarse` do;
//     Limit and Linear skip the test otherwise.
//   - Tests that bound the time of one call bound its processor time, with Within.
//     They always run.
//
// Only tests import this package: it defines a flag.
package costtest
