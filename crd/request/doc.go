// Package request processes create and update requests for custom resources as an API server
// does: it decodes objects, prepares and validates them, and words the errors. The server and
// `espalier validate` both use it, so that their results are the same.
//
//	body ── Decode ──▶ object ── Create or Update ──▶ object ── Validate ──▶ problems, warnings
//	        normalize,           metadata as the                schema, scale,
//	        strict errors        registry sets it,              CEL rules, wording
//	                             status, generation
//
// It knows neither HTTP nor storage. k8s.io/apiserver's registry sets metadata on the server;
// [Resource.Create] and [Resource.Update] do the same for callers without a registry.
package request
