// Package cli is the command line: each command reads manifests, asks the
// library, and reports. It judges nothing itself.
//
// # Data flow
//
//	files ── scan ──▶ documents ── a command ──▶ diagnostics ── settings ──▶ report
//
// Files are worked on by as many workers as there are cores, each file by one,
// and reported in order. A file is out of memory when its diagnostics are made.
//
// # Exit codes
//
// 0: nothing found. 1: findings. 2: the command could not run.
package cli
