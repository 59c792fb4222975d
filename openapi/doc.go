// Package openapi publishes the schemas of definitions for others to use.
//
//	crd.Version ── syntax.Parse ──▶ *syntax.Schema ──┬── JSONSchema, Catalog ──▶ JSON Schema, for editors and linters
//	                                                 ├── Document ─────────────▶ OpenAPI v3, as API servers publish it
//	                                                 └── AppendModels ─────────▶ the same in parts, v3 or v2, for a server
//	Resource ── AppendPaths ──▶ what can be done with a resource, v3 or v2
//
// They differ in whom they are for. [Document], [AppendModels] and
// [AppendPaths] say what a server says, in the same words: clients such as
// kubectl explain read it. [JSONSchema] is for people who write objects and for
// tools that know nothing of Kubernetes: what a server understands by
// extensions is said with the keywords of draft-07, or, where there are none,
// in the descriptions.
//
// Output depends on the input only. That of whole documents is readable and
// ends with a newline.
package openapi
