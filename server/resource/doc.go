// Package resource serves the verbs of one resource or subresource, whatever
// its objects are.
//
//	request ── RequestInfo.Verb ──▶ Endpoint ──▶ k8s.io/apiserver's handler of the verb ──▶ rest.Storage
//	                                   └─ a verb that the storage does not have ──▶ 405
//
// # Invariants
//
// An endpoint is immutable once it serves. It supports exactly the verbs whose
// interface its storage implements: there is no second list of them.
package resource
