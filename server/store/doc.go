// Package store keeps objects in etcd, over one connection for the whole
// process.
//
// A [Backend] is that connection. [Backend.Storage] gives a resource its
// storage.Interface, which costs a few kilobytes and no goroutine until somebody
// watches or lists often enough to make a watch cache worth its memory:
//
//	Watch, GetList, Get ──▶ lazy ──▶ cacher (while in use) ─┐
//	Create, Update, Delete ─▶ lazy ─────────────────────────┴▶ converting ──▶ etcd3 ──▶ etcd
//	                                                            (if versions differ)
//
// # Invariants
//
// There is one etcd client, one compactor and, per watch cache in use, one watch
// with a gRPC stream of its own: progress that one cache asks for says nothing
// about the others, and a slow one delays nobody.
//
// A watch cache is stopped only when nobody uses it. Every call and every open
// watch counts as a use. Nobody waits for a lock while a cache fills. A watch that goes
// on from before the cache was filled is served by etcd, which has that past; events
// that come in bursts are passed on to a cache no faster than its watchers take them.
//
// Above converting, every object is in the version of the storage; below, in the
// one it was written in. What a write answers is converted before it is written,
// so that a broken converter fails the write and not the answer.
package store
