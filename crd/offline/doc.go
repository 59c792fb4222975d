// Package offline answers writes of Kubernetes' built-in kinds as an API server does,
// without a server: it decodes an object, sets defaults, prepares and validates it.
//
//	JSON ──▶ Kind.Decode ──▶ Go type of k8s.io/api ──▶ Kind.Create, Kind.Update ──▶ Answer: errors, warnings
//	             │                                          │
//	        strict errors, offsets                     crd/kinds or crd/rules: defaults, preparation, rules, warnings
//
// Objects are decoded into the Go types by the decoder of API servers, so that its errors
// are theirs, word for word.
//
// Nothing is known of a cluster: no other object, no range of addresses, no quota, no
// admission.
//
// versions.json says since which version of Kubernetes kinds and fields exist.
package offline
