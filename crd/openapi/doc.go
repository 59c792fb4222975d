// Package openapi converts the schemas of CRDs to OpenAPI and JSON Schema.
//
//	crd.Version ── syntax.Parse ──▶ *syntax.Schema ──┬── JSONSchema, Catalog ──▶ JSON Schema, for editors and linters
//	                                                 ├── Document ─────────────▶ OpenAPI v3, as API servers publish it
//	                                                 └── AppendModels ─────────▶ the same in parts, v3 or v2, for a server
//	Resource ── AppendPaths ──▶ what can be done with a resource, v3 or v2
//
// [Document], [AppendModels] and [AppendPaths] write exactly what an API server
// publishes, for clients such as kubectl explain. [JSONSchema] is for people who
// write objects, and for tools that do not know Kubernetes: it expresses the
// Kubernetes extensions with the keywords of draft-07 or, if there are none, in the
// descriptions.
//
// Output depends on the input only. Whole documents are indented and end with a
// newline.
package openapi
