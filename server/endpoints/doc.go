// Package endpoints serves the verbs of one resource or subresource, for any type of
// objects.
//
//	request ── RequestInfo.Verb ──▶ Endpoint ──▶ k8s.io/apiserver's handler of the verb ──▶ rest.Storage
//	                                   ├─ Connecter, Answerer: a subresource that stores nothing
//	                                   └─ a verb that the storage does not have ──▶ 405
//
//	answer  ── compact JSON, written in pieces ──▶ YAML, indented JSON ──▶ connection
//
// # Invariants
//
// An encoded list is never in memory as a whole, in any encoding, and encoding ends
// with the request. If a response is cut off, the server closes the connection.
//
// An endpoint is immutable once it serves. It supports exactly the verbs whose
// interface its storage implements.
package endpoints
