// Package v1 has the Go types of apiregistration.k8s.io/v1, which k8s.io/api does not have.
//
// The names of types are Kubernetes': messages of decoders show them.
package v1
