// Package quota limits what a namespace holds: the number of objects of any
// resource, and the bytes that objects take in etcd.
//
//	request ─▶ Plugin ──── no quota in the namespace ────────────────────▶ admitted
//	             │                                                             ▲
//	             └─▶ evaluator of k8s.io/apiserver ─▶ status.used += n, if it fits,
//	                 (all that wait, together)        and nobody else was faster
//
//	leader:  etcd ── one watch, while there is a quota ──▶ Controller ─▶ status.used = what there is
//	                                                                      + what is on its way
//
// # Names
//
// count/<plural>.<group>, count/<plural> in the core group; configmaps, secrets and
// resourcequotas. [StorageBytes] is the sum of the sizes of the values in etcd, of
// all objects of the namespace but its ResourceQuotas, whose own status would
// change it. Other names that Kubernetes has are accepted, and count nothing.
//
// # Invariants
//
// A request that adds to what is limited is admitted only once status.used has been
// raised for it, by a write on the condition that nobody else has written: no two
// replicas give away the same room. An answer that is lost leaves status.used too
// high, never too low.
//
// The controller lowers status.used to what there is, and adds what was reserved
// and not yet seen in etcd. It reads reservations and objects from one watch, in
// etcd's order. A reservation is over when the object is there, or after the time
// that a request may take: see [ledger]. The write has the condition that no
// reservation was made in between.
//
// Which quotas a namespace has is what an index says, which may be behind. A quota that
// comes to limit something new is stored with a mark, and the write of a request has the
// condition, in etcd, that there is no mark that the index does not know; if there is,
// the request is evaluated once more. A limit is in force from its mark on, and counted
// after it: no object that was written without a reservation is left out of the count.
//
// A namespace without quota costs a lookup in an index and a comparison in etcd. A CRD
// costs nothing.
package quota
