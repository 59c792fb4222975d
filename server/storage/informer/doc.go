// Package informer has informers that read etcd, for the built-in resources of a tenant.
//
//	etcd ── one range for each kind, one watch for all ──▶ Feed ─┬▶ informer of roles ──▶ handlers, indexer
//	                                                             └▶ informer of namespaces ──▶ …
//
// Those of client-go have a list, a watch and about six goroutines each, and a watch of the
// API needs a watch cache for each resource: together some megabytes, and a tenth of a second
// until all are filled. A Feed takes one goroutine, one watch, and the objects.
//
// The informers are put into a factory of client-go before anything asks it for one, so that
// listers and plugins find them. Only kinds that something has asked for are read.
//
// # Invariants
//
// Handlers and the indexer see the changes of a resource in the order of etcd, handlers one
// at a time. A handler must not wait for another change. When etcd does not know any more what has
// changed since the last event, the feed reads everything again and tells handlers the
// differences.
package informer
