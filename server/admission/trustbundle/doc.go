// Package trustbundle is the admission plugin for ClusterTrustBundles of a signer.
//
//	new or changed ClusterTrustBundle ─▶ Plugin ─▶ the user may attest for the signer, or 403
//
// Pods trust the certificates in a bundle of a signer. A role that allows to write bundles
// would otherwise allow to add a CA to all of them.
package trustbundle
