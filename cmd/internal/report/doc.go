// Package report writes the diagnostics of the commands as text, JSON, SARIF,
// GitHub annotations and JUnit.
//
// A diagnostic contains the line of its file, so that files need not stay in memory
// until the end of a run.
package report
