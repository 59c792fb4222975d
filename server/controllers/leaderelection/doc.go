// Package leaderelection has one of several servers do what only one may do at a time.
//
//	Lease in kube-system ◀── renew ── the leader: its tasks run
//	                     ◀── try ──── the others: they wait
//
// # Invariants
//
// A leader releases the lease only after its tasks have ended. A server that loses the
// lease ends its tasks before it tries again. A leader that cannot reach the lease has lost
// it, by its own clock, before another can have it.
package leaderelection
