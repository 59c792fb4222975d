// Package migration carries out StorageVersionMigrations: it rewrites the stored objects
// of a resource in the storage version and with the current encryption key.
//
//	etcd ── page of values ──▶ decrypt ──▶ Resource.Rewrite ──▶ encrypt ──▶ transaction ──▶ etcd
//	                              └─ unreadable ─┴─ not converted ──▶ quarantined: listed and left
//
//	phases   Rewriting ──▶ Verifying ──▶ storedVersions trimmed ──▶ Succeeded
//	              ├──────────────────────────▶ Failed (objects are quarantined, or the storage version changed)
//	              └─ undo ──▶ storedVersions extended ──▶ Undoing ──▶ Undone
//
// Migrations run one at a time, in the order of their creation, in the replica that
// leads. A rewrite passes no admission and no validation: a stricter policy must not block
// it. It changes no generation.
//
// # Invariants
//
// One transaction has a batch of objects, their pre-images and the progress. It has the
// conditions that none of the objects, the CRD and the progress has changed since they were
// read. So a user's write wins, a deleted object stays deleted, an object is rewritten
// for the CRD that etcd has, and of two processes that believe to lead, one goes on. A
// process that is killed loses the page that it has in memory. A transaction that arrives
// late finds another progress and does nothing.
//
// A pre-image has the same revision in etcd as the object that replaced it, until the
// object changes again. Undo compares these revisions, and leaves changed objects alone.
// Pre-images have the current encryption key: a key that was replaced is not in use, also
// not for what undo may put back.
//
// The controller trims storedVersions only if no object was quarantined, and if a second
// scan has found every object in the storage version. The transaction has the conditions
// that the CRD is the one from before the scan, and that no migration has written since the
// scan began. Users' writes depend on the CRD in etcd, and an undo moves its progress on with
// every write: so etcd has no older version. Undo extends storedVersions before it puts the
// first object back.
package migration
