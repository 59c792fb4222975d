// Package fault injects faults into an environment, on a schedule that a seed decides.
//
//	Schedule(seed, …) ─▶ []Step: which fault, when, for how long, to which process ─▶ Do: begin, wait, end; then everything is healed
//
// Each fault is one that processes, links and disks have in production. A correct server
// must survive all of them without a lost or wrong answer. An operation that loses data
// on purpose (the restore of a backup) is a directed case instead.
package fault
