// Package openapihandler publishes the schemas of all resources as OpenAPI.
//
//	/openapi/v3 ────────────▶ an index of documents with their hashes, made of the hashes in the catalog
//	/openapi/v3/apis/G/V ───▶ unit, unit, … ──▶ JSON or protobuf ──▶ gzip ──▶ client, and a small cache
//	/openapi/v2 ────────────▶ the units of all groups, the same way
//	                           │
//	catalog.Entry ── unpack ───┴── openapi.AppendPaths, AppendModels
//
// A unit is the part of a document that comes from one CRD. Documents are compressed
// unit by unit while they are rendered, so that memory holds one CRD and the compressed
// document. The document stays in the cache while clients request it.
//
// A document is rendered once for all waiting requests, and only on request. A client
// never gets a document that is older than its request: no stale document is sent while
// a newer one is rendered. If CRDs change all the time, one goroutine renders one
// document after the other.
//
// # Invariants
//
// The hash of a document is computed from the hashes of its CRDs, so that the index
// renders no document. The same hash means the same document.
//
// A CRD whose schema cannot be published is published as an object without known
// fields. It never prevents the publishing of other CRDs.
package openapihandler
