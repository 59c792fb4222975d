// Package grouped keeps something that is made of the definitions of each API
// group, such as its part of a document.
//
//	catalog ── a change ──▶ the group is marked ── next Current ──▶ made anew for marked groups only ──▶ Snapshot
//
// # Invariants
//
// Whoever asks after a change is visible in the catalog gets what includes it:
// nothing is delayed, and nothing is made that nobody asks for.
//
// Snapshots are immutable, and the same pointer means the same content.
package grouped
