// Package grouped caches a value per API group that is computed from the CRDs of the
// group, such as its part of a document.
//
//	catalog ── a change ──▶ the group is marked ── next Current ──▶ made anew for marked groups only ──▶ Snapshot
//
// # Invariants
//
// Once a change is visible in the catalog, Current includes it, without delay. Values
// are computed only when Current is called.
//
// Snapshots are immutable, and the same pointer means the same content.
package grouped
