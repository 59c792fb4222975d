// Package priority is the admission plugin for the priorities of pods.
//
//	new pod       ─▶ Plugin ─▶ PriorityClass: named, default or none
//	                           priority and preemption policy, or 403
//	changed pod   ─▶        ─▶ keeps both if the update leaves them out
//	PriorityClass ─▶        ─▶ only one default, or 403
//
// An informer knows the PriorityClasses (see [lister.Lister]).
//
// # Invariants
//
// A new pod that is admitted has the priority and the preemption policy of its class, and
// names the class if there is a default. If there are several defaults, which two replicas
// can create at the same time, the one with the lowest priority counts.
package priority
