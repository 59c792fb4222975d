// Package results keeps the figures that documents quote, in docs/results.json: each with the command, the machine, the date and the
// commit that it was measured with.
//
//	benchmark -record ─▶ docs/results.json ─▶ test in docs: every figure that a document quotes is the recorded one
//
// A benchmark replaces its own figures only, and only with -record: most runs are too short, or on a machine that is too busy, to be quoted.
package results
