// Package report is what the commands say: diagnostics, and their output as
// text, JSON, SARIF, GitHub annotations and JUnit.
//
// A diagnostic is complete in itself: it carries the line of the file that it
// is about, so that files need not stay in memory until a run is over.
package report
