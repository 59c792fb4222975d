// Package podsecurity is the admission plugin PodSecurity: it refuses pods that the level
// of their namespace does not allow, and warns of workloads that make such pods.
//
//	labels of the namespace ──▶ level (privileged, baseline, restricted) ──┐
//	pod, or template of a workload ──▶ k8s.io/pod-security-admission ──────┴─▶ refused, warned, audited
//
// The checks and their texts are those of k8s.io/pod-security-admission, which
// kube-apiserver has, too. This package connects it with the admission chain.
//
// # Invariants
//
// What is evaluated is the object as it will be stored: the plugin only validates, after
// everything that changes objects.
package podsecurity
