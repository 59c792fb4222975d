// Package crdcontroller brings definitions from creation into service, and out of
// it.
//
// One controller does what five do upstream: it gives a definition its names,
// says whether its schemas are structural and its group approved, establishes
// it, and when it is deleted deletes its instances first.
//
//	catalog ── change ──▶ queue ──▶ next(names of the group, definition) ──▶ status, if it differs ──▶ etcd
//	                      └───────▶ delete instances until none remains ──▶ finalizer removed ──────▶ etcd
//
// What a status is to be, next decides; it does no I/O. Everything that stands
// in a definition's status at the end is written at once.
//
// # Invariants
//
// A name of a group belongs to one definition. Of those that ask for the same
// one, the definition whose last change has the lowest revision gets it; the
// others keep what they had, and are looked at again when the name is free. A
// status is written only onto the revision that it was decided for, so that
// several processes that see the same revisions come to the same result
// without talking to each other.
//
// Established and observedGeneration are written after the barrier has been
// passed: whoever reads them finds the resource served.
//
// The work can be interrupted anywhere and is taken up again from what etcd
// holds.
package crdcontroller
