// Package endpoints serves the verbs of one resource or subresource, whatever
// its objects are.
//
//	request ── RequestInfo.Verb ──▶ Endpoint ──▶ k8s.io/apiserver's handler of the verb ──▶ rest.Storage
//	                                   └─ a verb that the storage does not have ──▶ 405
//
//	answer  ── compact JSON, written in pieces ──▶ YAML, indented JSON ──▶ connection
//
// # Invariants
//
// A list is never in memory as a whole in its encoded form, whatever the client
// asks for, and its encoding ends with its request. An answer that was cut off
// ends the connection.
//
// An endpoint is immutable once it serves. It supports exactly the verbs whose
// interface its storage implements: there is no second list of them.
package endpoints
