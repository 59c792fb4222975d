// Package rootca publishes the CA of the server in every namespace, in the ConfigMap
// kube-root-ca.crt.
//
//	a namespace comes, or its ConfigMap goes or is changed ──▶ queue ──▶ create or update
//
// Pods and tests read from it how to verify the server, as in any Kubernetes cluster.
//
// # Invariants
//
// The controller watches ConfigMaps of this name and no others, and keeps of each one
// only whether it is right. If nothing changes, it makes no requests.
package rootca
