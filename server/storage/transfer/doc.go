// Package transfer copies a range of keys from one etcd to another while it is written.
//
//	from  ──┬── all keys at revision r ──▶ Load ───┐
//	        ├── changes since r ─────────▶ Follow ─┼─▶ transactions, each under a condition ──▶ to
//	        └── changes up to the last one ▶ Until ┘
//
// # Invariants
//
// Changes are applied in their order. After Until returned nil for a revision, the target has the keys as they were at that
// revision, except those to skip.
//
// Nothing is written without the conditions: after a caller has made them false, the copy writes nothing more, however late
// its writes arrive.
//
// A request that fails ends the copy. Nothing is sent twice, so nothing is on its way when the copy is complete.
package transfer
