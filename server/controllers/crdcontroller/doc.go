// Package crdcontroller manages the lifecycle of CRDs, from creation to deletion.
//
// One controller does the work of five upstream: it accepts the names of a CRD, sets
// the conditions about structural schemas and API approval, establishes the CRD, and
// deletes its instances before the CRD itself is deleted.
//
//	catalog ── change ──▶ queue ──▶ next(names of the group, CRD) ──▶ status, if it differs ──▶ etcd
//	                      └───────▶ delete instances until none remains ──▶ finalizer removed ──────▶ etcd
//
// next computes the status; it does no I/O. The controller writes everything that
// changes in a CRD's status in one update.
//
// # Invariants
//
// A name of a group belongs to one CRD. If several CRDs ask for a name, the one whose
// last change has the lowest revision gets it; the others keep the names that they have,
// and are processed again when the name is free. The controller writes a status only onto
// the revision that it was computed from, so that several processes that see the same
// revisions come to the same result without talking to each other.
//
// The controller writes Established and observedGeneration after the barrier: when a
// client reads them, all replicas serve the resource.
//
// The work can be interrupted anywhere; a new process continues from the state in etcd.
package crdcontroller
