// Package services allocates the cluster IPs and node ports of Services, and keeps the
// Service default/kubernetes.
//
//	create, update ─▶ storage ─▶ begin: allocate ─▶ write, if the repair key is unchanged ─▶ settle: release
//	                                 │                                                        │
//	                                 ├─▶ /registry/ipaddresses/10.0.0.7: its creation is the allocation
//	                                 └─▶ /registry/ranges/servicenodeports: a bitmap, changed at its revision
//	repair (leader) ─▶ what no Service holds is released, what a Service holds is allocated
//
// Keys and objects are those of kube-apiserver.
//
// # Invariants
//
// An address or port is allocated before a Service that holds it is written, and released
// after the Service that held it was written without it, or deleted. If it is not
// known what became of a write, nothing is released: repair does it later.
//
// An IPAddress is deleted by its UID, which was read while the Service held the address.
// So a late release never takes an address from its next owner.
//
// A bitmap has no owners. The repair key stands in for them: repair changes it before it
// releases anything. A request that read an older revision can write no Service that
// holds what it allocated, and releases no port. So repair and a request that was stopped
// for any time in between never release a port twice. No clock matters.
package services
