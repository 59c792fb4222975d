// Package garbagecollector deletes objects whose owners are gone, and has objects wait for
// their dependents if that was asked for. It does what the garbage collector of
// Kubernetes does.
//
// That one has a watch and a cache for every kind, which would keep the caches of
// 10,000 kinds alive. Here there is one watch, of etcd itself, over everything that is stored:
//
//	etcd ── one scan in pages, one watch ──▶ read: uid, owners, finalizers ──▶ graph ──▶ queues
//	                                          (of JSON or protobuf, as stored)              │
//	API ◀── get the object, get its owners; delete, patch ◀──────────────────────── workers ┘
//
// # What is kept
//
// An object is in the graph if it has owner references, or is being deleted and
// waits for its dependents. All others, most of a million, cost the scan and a few bytes while
// it lasts. The collector keeps the key of an object, 16 bytes of its UID and an edge for each
// reference: about 250 bytes with a key of 60 and one owner per ten objects, which
// TestBytesPerObject measures. An unknown owner is what upstream calls a virtual node: an id
// that edges lead to. The collector asks once for all its dependents whether it exists.
//
// # Invariants
//
// The graph alone never causes a deletion. It selects objects to check; the collector then
// reads the object and its owners through the API, by name, namespace and UID, and deletes
// the object as it was read, or not at all. An owner counts as gone without a request only
// if the watch of etcd has shown its deletion.
//
// Changes reach the graph in the order of etcd's revisions. So when an object begins to
// wait, the graph has all dependents that were written before.
//
// Objects are not converted to be read: requests use the version that objects are stored
// in (see [restmapping.Kinds]). A kind whose requests fail all the same, or hang, has one
// worker until it has recovered, and does not delay the deletion of other kinds.
//
// # Invalid references
//
// The collector looks for a namespaced owner in the namespace of its dependent. An owner in
// another namespace counts as absent, as upstream, and if the graph knows where it is the
// collector writes an event. An object without a namespace cannot have a namespaced owner:
// it is never deleted, and there is an event. An owner of an unknown kind may exist: the
// object stays, and is checked ever more rarely.
//
// # Cycles
//
// Objects that are deleted in the foreground and own each other would wait for ever.
// Upstream guesses that from the neighbours of an object. The graph here is exact: an
// object that really waits for itself stops blocking its owners.
package garbagecollector
