// Package flowcontrol writes the default configuration of API Priority and Fairness,
// which prevents clients from crowding each other out.
//
//	request ──▶ flow schema ──▶ priority level ──▶ queue ──▶ handler
//	             (who asks)      (how many at      (fair among
//	                              a time)           flows)
//
// [EnsureDefaults] writes the flow schemas and priority levels that every
// Kubernetes API server has. Until they exist, k8s.io/apiserver uses the mandatory
// ones, which are built in.
//
// # Invariants
//
// The server does not change an object whose annotation
// apf.kubernetes.io/autoupdate-spec is "false", or that has no such annotation and was
// changed by a client. Several replicas may write at once: after a conflict a replica
// reads the object again.
package flowcontrol
