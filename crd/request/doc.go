// Package request does to requests for custom resources what an API server does: it decodes
// objects, prepares them, validates them and words its answers. The server and `espalier
// validate` both call it, so that they answer the same.
//
//	body ── Decode ──▶ object ── Create or Update ──▶ object ── Validate ──▶ problems, warnings
//	        normalize,           metadata as the                schema, scale,
//	        strict errors        registry sets it,              CEL rules, wording
//	                             status, generation
//
// It knows neither HTTP nor storage. k8s.io/apiserver's registry sets metadata on the server;
// [Resource.Create] and [Resource.Update] do the same for callers without a registry.
package request
