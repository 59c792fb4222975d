// Package server is the API server: `espalier serve`, and the server that tests start
// in their own process.
//
//	connection ─▶ filters ─▶ router ─┬▶ discovery, openapihandler
//	              (chain)            ├▶ builtin ───────────────────▶ store ─▶ etcd
//	                                 ├▶ customresourcedefinition ──▶ store ─▶ etcd
//	                                 └▶ customresource ────────────▶ store ─▶ etcd
//
//	etcd ─▶ catalog ─▶ crdcontroller, discovery, openapihandler, customresource   (a CRD changed)
//
// The handlers are the packages below this one; this one connects them (wiring.go) with
// k8s.io/apiserver's server, which has the port, TLS, health, metrics, audit, tracing and
// the graceful shutdown.
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
