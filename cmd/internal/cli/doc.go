// Package cli is the command line: each command reads manifests, asks the
// library, and reports. The checks themselves are in the library.
//
// # Data flow
//
//	files ── scan ──▶ documents ── a command ──▶ diagnostics ── settings ──▶ report
//
// One worker per core processes the files, each file in one worker. Diagnostics are
// reported in order. A file is dropped from memory when its diagnostics are
// complete.
//
// # Exit codes
//
// 0: nothing found. 1: findings. 2: the command could not run.
package cli
