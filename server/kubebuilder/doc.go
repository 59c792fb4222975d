// Package kubebuilder translates the arguments that envtest and its users give to
// kube-apiserver for this server: which flags have no meaning without pods, and which
// plugins and feature gates this server does not have.
//
//	envtest ──arguments──▶ Arguments ──▶ flags of the server + Tolerate ──▶ server
//	                           └──────────────── what is left out, for the log
//
// # Invariants
//
// Every dropped argument is logged. Arguments that configure security features are never
// dropped: a flag that would make the server less strict than it is may be ignored, one that
// would make it stricter is rejected if the server does not implement it.
package kubebuilder
