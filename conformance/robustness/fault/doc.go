// Package fault does harm to a world, by a schedule that a seed decides.
//
//	Schedule(seed, …) ─▶ []Step: which fault, when, for how long, to whom ─▶ Do: begin, wait, end; then everything is healed
//
// Each fault is one that processes, links and disks have in use. Faults only do what a
// correct server must survive without a lost or wrong answer; what loses data on purpose
// (a restore of a backup) is a directed case of its own.
package fault
