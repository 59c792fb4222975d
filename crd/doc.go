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
//	                       │                       └─ syntax tree ─▶ compile.Validate ─▶ cel.Check
//	                       └─ internal/crdtree ─▶ crd/lint, crd/diff, openapi, documentation, catalog
//
// A CRD has one index of its JSON and one syntax tree per schema, parsed when it is first
// needed. Versions with the same schema share the tree. Nothing is decoded into Go types.
//
// # Invariants
//
// Findings have the API server's paths, values and texts. Pointers and offsets
// refer to the CRD as the client sent it. The API server's paths come from its
// internal types: it calls a schema that all versions share, or the only one,
// spec.validation.openAPIV3Schema.
package crd
