// Package openapihandler publishes the schemas of all resources as OpenAPI.
//
//	/openapi/v3 ────────────▶ an index of documents with their hashes, made of the hashes in the catalog
//	/openapi/v3/apis/G/V ───▶ unit, unit, … ──▶ JSON or protobuf ──▶ gzip ──▶ client, and a small cache
//	/openapi/v2 ────────────▶ the units of all groups, the same way
//	                           │
//	catalog.Entry ── unpack ───┴── openapi.AppendPaths, AppendModels
//
// A unit is what documents have of one definition. Documents are compressed unit
// by unit while they are rendered: what is in memory is one definition and the
// compressed document, and that is kept while somebody asks for it.
//
// A document is rendered once for all who wait, and only if somebody asks. What a
// client gets is never older than its request: nothing stale is sent while a
// newer document is rendered. Definitions that change all the time cost one
// rendering after the other, in one goroutine.
//
// # Invariants
//
// The hash of a document follows from the hashes of the definitions in it, so
// that the index costs no document. The same hash means the same document.
//
// A definition whose schema cannot be published is published as that of an
// object of which nothing is known: it never keeps others from being published.
package openapihandler
