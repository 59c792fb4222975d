// Command operator runs one Job for every Backup. Its tests show a bug that only appears when the API server is slow or
// its answers are lost, and that the operator does not have.
//
//	Backup ──▶ Reconciler ──▶ Job of the same name
//	              └─────────▶ status.job
package main
