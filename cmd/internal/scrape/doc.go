// Package scrape reads the metrics of a server, in Prometheus' text format, and compares two readings.
//
// Invariants
//
//   - Memory is that of the samples that are wanted, up to a limit, however much the server sends.
//   - What it does not understand in a line is an error, not a number.
package scrape
