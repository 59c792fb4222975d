// Package namespace empties namespaces that are being deleted, and lets them go when
// nothing is left. It does what the namespace controller of Kubernetes does, and says in the
// conditions of a namespace what is in the way in the same words.
//
//	namespace, terminating ──▶ count the keys of every kind ──▶ delete the collections ──▶ count again
//	                            (in etcd, 100 at a time)         of those that have some        │
//	                ┌─────────────────────────── nothing is left ────────────────────────────┤
//	        finalizer "kubernetes" removed                    conditions say what is left ◀──┘
//
// The kinds are those of the catalog and not of discovery. Counting is cheap: of
// 10,000 kinds that have nothing in a namespace none is touched, and 100 requests to etcd say so.
//
// # Invariants
//
// A namespace goes only after a count of all kinds, taken later than the grace period,
// has found nothing. Until then other servers may not have heard that it is terminating, and
// let objects be created in it.
//
// A kind whose objects cannot be deleted, because its conversion is broken or no
// version of it is served, keeps the namespace, and is named in a condition. It does not keep the
// objects of other kinds from being deleted.
//
// While a CRD cannot be read and its resource is not known from before, no namespace is
// removed: it may have objects of that CRD. The condition
// NamespaceDeletionDiscoveryFailure names the CRD.
package namespace
