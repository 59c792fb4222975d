// Package store keeps objects in etcd, over one connection for the whole
// process.
//
// A [Backend] is that connection. [Backend.Storage] gives a resource its
// storage.Interface, which costs a few kilobytes and no goroutine until clients
// watch or list often enough to make a watch cache worth its memory:
//
//	GetList ────────────────▶ onDemandCacher ──▶ lister ┐
//	Watch of an index ──────▶ onDemandCacher ──▶ lister ┤
//	Watch, Get ─────────────▶ onDemandCacher ──▶ cacher ┴ (while in use) ─┐
//	Create, Update, Delete ─▶ onDemandCacher ─────────────────────────────┴▶ converting ──▶ etcd3 ──▶ pagingKV ──▶ etcd
//	                                                                (if versions differ)
//
// [Backend.Walk] reads the values of a resource past all of this, for plans of a change.
//
// # Invariants
//
// There is one etcd client, one compactor and, per watch cache in use, one watch
// with a gRPC stream of its own: progress that one cache asks for says nothing
// about the others, and a slow one does not delay the others.
//
// A watch cache is stopped only while it is not in use. Every call and every open
// watch counts as a use. No request waits for a lock while a cache fills. etcd itself
// serves a watch that resumes from a revision before the cache was filled.
//
// A list costs what it returns, and a page what the page has, unless a selector leaves
// objects out: the lister has the objects of a watch cache in order, and pagingKV has
// etcd not count the rest of a range. All pages of a list are of one revision.
//
// What watchers do not read is bounded in bytes: per watch, for all watches
// together (events that watchers share count once), and in the history of each
// cache. A watch over the limit ends, and its client goes on from the last event
// it got.
//
// A member of etcd that does not answer is noticed within three seconds by a probe of
// its own, and requests and watches go to the others; see links. Where there is no
// other that answers, nothing is cut off: slow is not away.
//
// Above converting, every object is in the version of the storage; below, in the
// one it was written in. What a write answers is converted before it is written,
// so that a broken converter fails the write and not the answer.
package store
