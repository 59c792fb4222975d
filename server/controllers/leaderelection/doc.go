// Package leaderelection has one of several servers do what only one may do at a time.
//
//	Lease in kube-system ◀── renew ── the leader: its tasks run
//	                     ◀── try ──── the others: they wait
//
// # Invariants
//
// The lease is given up only after the tasks have ended. Who loses it ends its
// tasks before it tries again. A leader that cannot reach the lease has lost it, by its own
// clock, before another can have it.
package leaderelection
