// Package rollout changes a CRD that has objects in phases: expand, backfill, verify, contract.
//
//	CRDRollout ──▶ Expand ──▶ Backfill ──▶ Verify ──▶ Contract ──▶ Done
//	               plan,      Storage-     plan:      plan,
//	               gate,      Version-     nothing    gate,
//	               CRD        Migration    is lost    CRD
//	                 │            │           │          │
//	                 └────────────┴── undo ───┴──────────┴──▶ pre-images, plan, former storage version,
//	                                                          migration back, CRD as it was ──▶ Undone
//
// Expand gives the CRD a spec in which the old and the new version exist. Backfill rewrites all
// objects in the new storage version. Verify proves that the last spec loses nothing. Contract
// gives the CRD that spec.
//
// The controller is a client of the API: it reads and writes CRDs, StorageVersionMigrations, the
// subresource plan, and CRDRollouts. Those are custom resources, whose CRD ([CRD]) the operator
// installs; without it the controller does nothing. A user who may create CRDRollouts
// may change every CRD: no default role but cluster-admin has this right.
//
// # Invariants
//
// All state is in the CRDRollout and in the CRD. Every step can be repeated: a controller
// that was stopped anywhere goes on from what it finds.
//
// The spec that the CRD had is in the status before the CRD is changed. A CRD that others
// change during a rollout ends it: nothing of theirs is overwritten, and no object is
// rewritten for it. So does one whose conversion rules are changed, or that is deleted and
// created again.
//
// A phase that needs approval begins when spec.approvals names it. The controller then plans
// the change once more, and names this plan in the CRD, in espalier.dev/approved-plan: if
// objects that lose data have come since, the server refuses the change, and the controller
// plans again. An approval is of the phase: it also holds for objects that came after it.
package rollout
