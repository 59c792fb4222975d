// Package flowcontrol writes the objects that priority and fairness are configured with
// from the start. They keep clients from crowding each other out.
//
//	request ──▶ flow schema ──▶ priority level ──▶ queue ──▶ handler
//	             (who asks)      (how many at      (fair among
//	                              a time)           flows)
//
// [EnsureDefaults] writes the flow schemas and priority levels that every
// Kubernetes API server has. Until they are there, k8s.io/apiserver goes by the
// mandatory ones, which it knows by heart.
//
// # Invariants
//
// An object whose annotation apf.kubernetes.io/autoupdate-spec is "false", or that
// has none and has been changed, is its owner's: it is not changed. Several servers
// may write at once: whoever is late looks again.
package flowcontrol
