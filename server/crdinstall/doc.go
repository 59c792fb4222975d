// Package crdinstall puts the CustomResourceDefinitions of files on a server, and
// waits until they are served.
//
//	paths ── Read ──▶ CRDs (JSON) ── Apply ──▶ server ──▶ Established
//
// # Invariants
//
// When Apply returns without an error, every CRD is as its file says, and
// its objects can be created.
package crdinstall
