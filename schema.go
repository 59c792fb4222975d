package espalier

import (
	"errors"
	"fmt"
	"runtime"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/espalier-dev/espalier/finding"
	"github.com/espalier-dev/espalier/internal/compile"
	"github.com/espalier-dev/espalier/internal/jsondoc"
	"github.com/espalier-dev/espalier/internal/plan"
	"github.com/espalier-dev/espalier/internal/syntax"
)

// Limits bound the documents that are accepted. Zero fields mean the defaults:
// 1 GiB, and a nesting of 10,000 as in the API server.
type Limits struct {
	MaxBytes int
	MaxDepth int
}

// CheckOptions configure Check.
type CheckOptions struct {
	// Path is the field path of the schema, put before the paths of findings:
	// spec.versions[0].schema.openAPIV3Schema, say.
	Path string
	// StatusSubresource applies the rules for schemas of resources whose
	// status subresource is enabled.
	StatusSubresource bool
	// Strict also warns of strings with a format, for which API servers accept
	// arrays and schemas compiled with Strict do not. Nearly every schema has
	// some.
	Strict bool
	Limits Limits

	nonStructural bool
	stored        bool
}

// CompileOptions say how a schema is compiled.
type CompileOptions struct {
	// InheritPreserve reads x-kubernetes-preserve-unknown-fields as KEP-2332
	// does in its examples 7 and 9: it also covers specified children that
	// have no properties of their own. Clusters do not.
	InheritPreserve bool
	// Strict validates values as JSON Schema does where API servers wrongly accept
	// more: arrays in place of strings with a format, numbers that equal an enum
	// value only after conversion, integers beyond a fractional bound. Check warns
	// of schemas for which it makes a difference.
	Strict bool
	// ValidationOnly compiles a schema that need not be structural, as in CRDs of
	// apiextensions.k8s.io/v1beta1 with preserveUnknownFields. Normalize fails
	// for it with ErrValidationOnly.
	ValidationOnly bool
	// Stored compiles a schema as API servers compile one from storage: checks
	// that are newer than the CRD do not apply. Defaults may be invalid, and
	// fields of a default that would be pruned are not filled in. Types may be
	// unknown; then no value is valid. Items of sets need not be atomic, and keys
	// of list maps may be optional or nullable.
	Stored bool
	Limits Limits
}

// Schema is a compiled schema. It is immutable and safe for concurrent use.
// Parts that are equal, of this schema or of others, share memory.
type Schema struct {
	plan           *plan.Node
	validationOnly bool
}

// ErrValidationOnly is returned by Normalize for a schema that was compiled
// with ValidationOnly.
var ErrValidationOnly = errors.New("the schema was compiled for validation only: unspecified fields can be pruned and defaults filled in only by a structural schema")

// SchemaError is returned for a schema that is not structural, or whose defaults
// do not fit it.
type SchemaError struct {
	Findings []finding.Finding // of severity [finding.Error], at least one
}

// Error names the first finding and counts the others.
func (e *SchemaError) Error() string {
	first := e.Findings[0].Error()
	if n := len(e.Findings) - 1; n > 0 {
		return fmt.Sprintf("schema is refused: %s (and %d more)", first, n)
	}
	return "schema is refused: " + first
}

// SyntaxError is returned for bytes that are not JSON, or exceed a limit, or,
// in a schema, hold a keyword with a value of the wrong type.
type SyntaxError struct {
	Offset  int    // of the first invalid byte
	Pointer string // RFC 6901 pointer to the value, where there is one
	Msg     string
}

// Error says what is wrong and where.
func (e *SyntaxError) Error() string {
	if e.Pointer != "" {
		return fmt.Sprintf("byte %d (%s): %s", e.Offset, e.Pointer, e.Msg)
	}
	return fmt.Sprintf("byte %d: %s", e.Offset, e.Msg)
}

// Check reports everything that is wrong with schema, the JSON of an
// openAPIV3Schema: all violations of the rules for structural schemas, defaults
// that do not fit and, as warnings, what the documents reject and clusters
// accept. The error is for input that cannot be read as a schema at all.
func Check(schema []byte, o CheckOptions) ([]finding.Finding, error) {
	s, release, err := read(schema, jsondoc.Limits(o.Limits))
	if err != nil {
		return nil, err
	}
	defer release()
	return check(s, o), nil
}

// Compile checks a schema and prepares it for running. It fails with a
// *SchemaError if Check has findings of severity [finding.Error].
func Compile(schema []byte, o CompileOptions) (*Schema, error) {
	s, release, err := read(schema, jsondoc.Limits(o.Limits))
	if err != nil {
		return nil, err
	}
	defer release()
	if errs := finding.Errors(check(s, CheckOptions{nonStructural: o.ValidationOnly, stored: o.Stored})); len(errs) > 0 {
		return nil, &SchemaError{errs}
	}
	n, err := compile.Lower(s, compile.LowerOptions{InheritPreserve: o.InheritPreserve, Strict: o.Strict, ValidationOnly: o.ValidationOnly})
	if err != nil {
		return nil, err
	}
	compiled := &Schema{plan: n, validationOnly: o.ValidationOnly}
	runtime.AddCleanup(compiled, plan.Release, n)
	return compiled, nil
}

// read parses the JSON of a schema. The tree may refer to the document until
// release is called.
func read(schema []byte, lim jsondoc.Limits) (*syntax.Schema, func(), error) {
	d, err := jsondoc.Parse(schema, lim)
	if err != nil {
		return nil, nil, syntaxError(err)
	}
	s, problems := syntax.Parse(d, jsondoc.Root)
	if len(problems) > 0 {
		p := problems[0]
		d.Release()
		return nil, nil, &SyntaxError{Offset: p.Offset, Pointer: p.Pointer, Msg: p.Message}
	}
	return s, d.Release, nil
}

func check(s *syntax.Schema, o CheckOptions) []finding.Finding {
	var at *field.Path
	if o.Path != "" {
		at = field.NewPath(o.Path)
	}
	return compile.Check(s, compile.CheckOptions{
		Path: at, StatusSubresource: o.StatusSubresource, NonStructural: o.nonStructural,
		UncheckedDefaults: o.stored, Strict: o.Strict,
		Tolerance: compile.Tolerance{Types: o.stored, UnprunedDefaults: o.stored, ListSets: o.stored, ListKeys: o.stored},
	})
}

func syntaxError(err error) error {
	if se, ok := err.(*jsondoc.SyntaxError); ok {
		return &SyntaxError{Offset: se.Offset, Msg: se.Msg}
	}
	return err
}
