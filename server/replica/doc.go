// Package replica lets the replicas of a server wait for each other.
//
// Every replica has a key in etcd, bound to a lease, whose value is the last
// revision of the CRDs that the replica serves by.
//
//	CRD changed at revision r ── every replica's catalog sees r ──▶ Saw(r) ──▶ key = r
//	                                 └─ the one that acknowledges it ────▶ Wait(r): all keys ≥ r
//
// # Invariants
//
// A replica joins before it reads the CRDs, so that the replica that acknowledges
// a change either finds its key or knows that it has read the change. A replica
// whose lease may have run out is not Current: it must not serve, because
// others no longer wait for it, until it has caught up with etcd.
//
// Every lease has a key of its own, so that a late write, renewal or revocation of a
// former lease does not change the key of the current lease.
//
// The time that a lease has left is counted by [Clock], which goes on while the machine
// sleeps. It does not on systems other than Linux, nor while a hypervisor stops the
// machine without telling it: after such a stop a replica may believe for up to nine
// seconds that others wait for it. Its writes depend on etcd all the same.
//
// A replica that is alone writes its key once, and renews its lease.
package replica
