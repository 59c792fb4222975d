// Package kubebuilder knows what envtest, and who uses it, tells the programs of a
// cluster, and how this server understands it: which flags of kube-apiserver have no
// meaning where there are no pods, and which of its plugins and feature gates there
// are not.
//
//	envtest ──arguments──▶ Arguments ──▶ flags of the server + Tolerate ──▶ server
//	                           └──────────────── what is left out, for the log
//
// # Invariants
//
// Nothing is left out without a word. What keeps somebody out is never left out: a
// flag that would make the server less strict than it is may be, one that would make
// it stricter is refused where the server does not have it.
package kubebuilder
