package crdtree

import (
	"github.com/espalier-dev/espalier/internal/jsondoc"
	"github.com/espalier-dev/espalier/internal/syntax"
)

// Schema is the parsed schema of a version.
type Schema struct {
	// Tree is nil if the version has no schema. With Problems it holds what was readable.
	Tree *syntax.Schema
	// Problems have pointers that start at the schema.
	Problems []syntax.Problem
	// Shift is added to offsets in Tree and Problems to get offsets in the CRD. It is not 0
	// if the version shares its tree with an earlier version that has the same schema.
	Shift int
}

var (
	// Doc returns the index of the JSON of a *crd.CRD.
	Doc func(crd any) *jsondoc.Doc
	// At returns where a *crd.Version or a *crd.Column is in the index.
	At func(part any) jsondoc.Value
	// Parse returns the schema of a *crd.Version. Each schema is parsed once.
	Parse func(version any) Schema
)
