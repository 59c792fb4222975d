// Package quota limits what a namespace holds: the number of objects of any
// resource, the bytes that objects take in etcd, and what pods, services and
// claims take.
//
//	request ─▶ Plugin ──── no quota in the namespace ────────────────────▶ admitted
//	             │                                                             ▲
//	             └─▶ evaluator of k8s.io/apiserver ─▶ status.used += n, if it fits,
//	                 (all waiting requests)           and no other write came first
//
//	leader:  etcd ── one watch, while there is a quota ──▶ Controller ─▶ status.used = stored objects
//	                                                                      + open reservations
//
// # Names
//
// count/<plural>.<group>, count/<plural> in the core group; configmaps, secrets, services,
// replicationcontrollers, persistentvolumeclaims and resourcequotas. [StorageBytes] is the sum of the sizes of the values in etcd, of
// all objects of the namespace but its ResourceQuotas, whose own status would
// change it. Other names that Kubernetes has are accepted, and count nothing.
//
// Contents are read from objects: of pods that have not ended, pods, cpu, memory,
// ephemeral-storage, hugepages-<size>, the same and extended resources with requests.,
// the first three with limits.; of services, services.nodeports and
// services.loadbalancers; of claims, requests.storage, and
// <class>.storageclass.storage.k8s.io/ before requests.storage or persistentvolumeclaims.
// A quota with scopes counts the pods or claims in all of them. Admission and the
// controller measure an object with the same evaluator.
//
// # Invariants
//
// A request that adds to a limited resource is admitted only after status.used was
// raised for it, by a conditional write that fails on concurrent writes. So two replicas
// never reserve the same room. If the answer of etcd is lost, status.used is too high,
// never too low.
//
// The controller sets status.used to the number of stored objects plus the reservations
// not yet seen in etcd. It reads reservations and objects from one watch, in etcd's
// order. A reservation ends when the object is stored, or after the maximum time of a
// request: see [ledger]. The controller's write fails if a reservation was made in
// between.
//
// An index has the quotas of each namespace, and may be behind. A quota that limits
// something new is stored with a mark. The write of a request has the condition, in
// etcd, that there is no mark that the index does not know. If there is one, the request
// is evaluated again. A limit is in force from its mark on, and is counted after it: the
// count includes all objects that were written without a reservation.
//
// A namespace without quota costs a lookup in an index and a comparison in etcd. A CRD
// costs nothing.
package quota
