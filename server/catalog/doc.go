// Package catalog is the index of all CustomResourceDefinitions.
//
//	etcd ── list in pages, then watch ──▶ *Entry (fields + zstd) ──▶ index ──▶ subscribers, in order
//	                                                                  ├─▶ Get, Group, All: without waiting
//	                                                                  ├─▶ WaitFor(revision): read your writes
//	                                                                  └─▶ CatchUp: read what others have written
//
// An [Entry] has the fields of a CRD that requests, discovery and naming need. The CRD
// itself is kept compressed, and unpacked only to compile or publish it. Ten thousand
// CRDs of 43 KB must fit into a small process.
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
// A change costs the same however many CRDs there are.
//
// A CRD that is in etcd and cannot be decoded does not count as deleted. The entry that
// the catalog had immediately before stays. If there is none, Unknown names the CRD, and
// callers must not conclude that its resource does not exist.
package catalog
