// Package crd works on whole CustomResourceDefinitions (CRDs).
//
// Parse reads a CRD. Validate reports what an API server reports when the CRD is created or
// updated: about its metadata, names, versions and conversion, and about its schemas. Check
// reports the latter for a schema by itself, as JSON; CheckSchema and CompileSchema do so
// for the Go types of apiextensions.k8s.io.
//
// # Data flow
//
//	JSON ── Parse ──▶ CRD ─┬─ shape ─▶ model ──▶ checker ──▶ findings
//	                       │                       └─ syntax tree ─▶ compile.Judge ─▶ rules.CheckParsed
//	                       └─ internal/crdtree ─▶ crd/lint, crd/diff, openapi, documentation, catalog
//
// A CRD has one index of its JSON and one syntax tree per schema, parsed when it is first
// needed. Versions with the same schema share the tree. Nothing is decoded into Go types.
//
// # Invariants
//
// Paths, values and words of findings are the API server's; pointers and offsets
// lead to the place in the definition as it was sent. A server names fields
// after its own, older types: a schema that all versions share, or the only one,
// is spec.validation.openAPIV3Schema to it.
package crd
