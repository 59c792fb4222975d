package bridge

import (
	"github.com/espalier-dev/espalier/finding"
	"github.com/espalier-dev/espalier/internal/compile"
	"github.com/espalier-dev/espalier/internal/exec"
	"github.com/espalier-dev/espalier/internal/jsondoc"
	"github.com/espalier-dev/espalier/internal/plan"
	"github.com/espalier-dev/espalier/internal/syntax"
)

// Package espalier sets these.
var (
	// Read parses the JSON of a schema. Its error is an *espalier.SyntaxError. The tree may refer to the document until
	// release is called.
	Read func(schema []byte, limits jsondoc.Limits) (tree *syntax.Schema, release func(), err error)
	// Plan returns the compiled form of a schema, an *espalier.Schema.
	Plan func(schema any) *plan.Node
	// Index takes the index out of a result, an *espalier.Result, which has none afterwards. It is of the bytes that were
	// normalized; nil if they say something else than the result. typed says that every value is of its schema's type.
	Index func(result any) (d *jsondoc.Doc, typed bool)
	// Validation returns a result as an espalier.Validation.
	Validation func(*exec.Result) any
	// Rules returns compiled rules as an *espalier.Rules, and Compiled returns them again.
	Rules    func(exec.Rules) any
	Compiled func(rules any) exec.Rules
)

// CheckRules checks the CEL rules of a schema in a larger document: s, as it was parsed, and what is known of it.
// Pointers start at the schema, offsets at the document. The options are cel.CheckOptions. Package cel sets it.
var CheckRules func(document []byte, s *syntax.Schema, known *compile.Result, options any) ([]finding.Finding, error)
