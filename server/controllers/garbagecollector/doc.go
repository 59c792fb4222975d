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
// it lasts. Of an object its key, 16 bytes of its UID and an edge for each reference are kept:
// about 250 bytes with a key of 60 and an owner for ten of them, which TestBytesPerObject measures. An owner that nobody knows yet is what upstream calls a
// virtual node: an id that edges lead to. Whether it exists is asked once for all its dependents.
//
// # Invariants
//
// Nothing is deleted because of what the graph says alone. It says whom to look at; the
// object and its owners are then read through the API, by name, namespace and UID, and the
// object is deleted as it was read, or not at all. An owner counts as gone without being asked for only
// if its end has been seen in etcd.
//
// Changes reach the graph in the order of etcd's revisions. So when an object begins to
// wait, the graph has all dependents that were written before.
//
// Nothing is converted to be read. Requests are made in the version that objects are
// stored in (see [kinds.Kinds]). A kind whose requests fail all the same, or hang, has
// one worker until it has recovered, and keeps nobody else from being deleted.
//
// # References that cannot be
//
// An owner that has a namespace is looked for in the namespace of its dependent. If it is in
// another, it counts as absent, as it does upstream, and if the graph knows where it is there is an event. An object without a
// namespace cannot have an owner with one: it is never deleted, and there is an event. An owner whose kind
// is not known may exist: the object stays, and is looked at ever more rarely.
//
// # Cycles
//
// Objects that are deleted in the foreground and own each other would wait for
// ever. Upstream guesses that from the neighbours of an object. The graph here is exact, and one is told only
// if it really waits for itself: then it stops blocking its owners.
package garbagecollector
