// Package publish compares what the server publishes about custom resources
// with what the reference publishes, in OpenAPI v3 and v2, for CRDs of
// the corpus.
//
//	CRD ──┬── openapi.AppendPaths, AppendModels, server/endpoints/openapihandler over HTTP ──┐
//	      └── controller/openapi/builder ──────────────────────────────────┴──▶ equal, but for the differences that the tests name
//
// What kubectl reads of it is read with kubectl's own code.
package publish
