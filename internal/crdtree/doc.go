// Package crdtree gives the packages of this repository access to what a *crd.CRD has and
// does not export: the index of its JSON and the syntax trees of its schemas.
//
//	crd.Parse ──▶ *crd.CRD ──▶ crdtree.Doc, At, Parse ──▶ crd/lint, crd/diff, openapi, documentation, catalog
//
// Package crd sets the functions when it is initialized. Their arguments have the type any
// because crd imports this package. They panic for arguments of other types.
package crdtree
