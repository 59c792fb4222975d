// Package server is the API server: `espalier serve`, and what tests start in
// their own process.
//
//	connection ─▶ filters ─▶ router ─┬▶ discovery, publish        what there is
//	  (chain)     who, how many,     ├▶ definition ─▶ store ─▶ etcd   CustomResourceDefinitions
//	              how long           └▶ custom ─────▶ store ─▶ etcd   their objects
//
//	etcd ─▶ catalog ─▶ lifecycle, discovery, publish, custom      a definition has changed
//
// The stations are the packages below this one; this one puts them together
// with k8s.io/apiserver's server, which has the port, TLS, health, metrics,
// audit, tracing and the orderly end.
//
// # Invariants
//
// Nothing is open by default: the server speaks TLS only, authenticates every
// client, and authorizes every request by RBAC. Anonymous clients reach the
// health endpoints only.
//
// A process may have several servers, one after the other or at a time: a
// Server owns its connection to etcd, its port and its goroutines, and when
// Run has returned they are gone. Feature gates, logging and the registry of
// metrics belong to the process.
package server
