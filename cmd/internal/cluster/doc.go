// Package cluster talks to a live cluster with kubectl: it reads its CRDs, keeps them in the user's cache folder, and
// runs single commands.
//
//	kubectl get crds -o json ── one CRD at a time ──▶ diff --cluster
//	                                     └──────────▶ Cache: a folder for each cluster, a file for each CRD ──▶ language server
//
// kubectl does what kubeconfigs ask for: proxies, certificates, plugins that log in. Espalier needs no client of its own.
//
// Invariants
//
//   - The memory for a read is that of one CRD, however many the cluster has.
//   - A file of the cache is a whole CRD at any time: files are replaced, not written to.
//   - A read that fails deletes nothing.
package cluster
