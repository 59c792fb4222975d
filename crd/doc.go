// Package crd works on whole CustomResourceDefinitions.
//
// Parse reads what a definition says. Validate says everything that an API
// server says when one is created or changed: about its metadata, names,
// versions and conversion, and about its schemas. Check does the latter for a
// schema by itself, as JSON, CheckSchema and CompileSchema for the Go types of
// apiextensions.k8s.io.
//
// # Data flow
//
//	JSON ── shape ──▶ model ──▶ checker ──▶ findings
//	          │          └─ schemas ─▶ syntax ─▶ compile.Judge ─▶ rules.CheckParsed
//	          └──▶ what no decoder accepts, and what is unknown
//
// A schema is parsed once and never decoded into Go types. What versions have in
// common is checked once.
//
// # Invariants
//
// Paths, values and words of findings are the API server's; pointers and offsets
// lead to the place in the definition as it was sent. A server names fields
// after its own, older types: a schema that all versions share, or the only one,
// is spec.validation.openAPIV3Schema to it.
package crd
