//go:build race

package costtest

// Race is whether the race detector runs: it takes time and memory of its own.
const Race = true
