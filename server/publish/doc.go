// Package publish publishes the schemas of all resources as OpenAPI.
//
//	/openapi/v3 ────────────▶ an index of documents with their hashes, made of the hashes in the catalog
//	/openapi/v3/apis/G/V ───▶ unit, unit, … ──▶ JSON or protobuf ──▶ gzip ──▶ client, and a small cache
//	/openapi/v2 ────────────▶ the units of all groups, the same way
//	                           │
//	catalog.Entry ── unpack ───┴── openapi.AppendPaths, AppendModels
//
// A unit is what documents have of one definition. Documents are written unit
// by unit while they are sent: what is in memory is one definition, however
// many there are.
//
// # Invariants
//
// The hash of a document follows from the hashes of the definitions in it, so
// that the index costs no document. The same hash means the same document.
//
// A definition whose schema cannot be published is published as that of an
// object of which nothing is known: it never keeps others from being published.
package publish
