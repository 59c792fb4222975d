// Package catalog is the index of all CustomResourceDefinitions.
//
//	etcd ── list in pages, then watch ──▶ *Entry (fields + zstd) ──▶ index ──▶ subscribers, in order
//	                                                                  ├─▶ Get, Group, All: without waiting
//	                                                                  ├─▶ WaitFor(revision): read your writes
//	                                                                  └─▶ CatchUp: read what others have written
//
// What requests, discovery and naming ask of a definition stands in its
// [Entry]; the definition itself is kept compressed and unpacked only to
// compile or publish it. Ten thousand definitions of 43 KB are to fit into a
// small process.
//
// # Invariants
//
// Entries are immutable. A request takes one and keeps it to its end.
//
// Changes arrive in the order of etcd's revisions, each exactly once. A watch
// that etcd can no longer continue is replaced by a new list, whose
// differences from the index are changes like any other.
//
// Once WaitFor(r) has returned, the index shows every change up to revision r
// and all subscribers have been told of them.
//
// A change costs the same however many definitions there are.
//
// A CRD that is in etcd and cannot be read is not one that is absent. The entry that the
// catalog had immediately before stays. If there is none, Unknown names the CRD, and who
// asks for its resource must not conclude that it does not exist.
package catalog
