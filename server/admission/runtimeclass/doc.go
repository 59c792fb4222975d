// Package runtimeclass is the admission plugin for pods that name a RuntimeClass.
//
//	pod with runtimeClassName ─▶ Plugin ─▶ the class: exists, or 403
//	                                       overhead, node selector and tolerations of the pod
//
// # Invariants
//
// A pod that is admitted has the overhead of its class, or none. A pod without a class
// costs no request.
package runtimeclass
