package exec

import (
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Violation is one thing that is wrong with an object.
type Violation struct {
	Type     field.ErrorType // upstream's error type
	Path     string          // upstream's field path; "<nil>" where upstream gives none
	BadValue any             // upstream's bad value
	Detail   string          // upstream's words
	Keyword  string          // what of the schema is violated: "pattern", "anyOf", "x-kubernetes-validations"
	At       string          // where in the object, also if Path does not say
	Offset   int             // byte offset of the value in the object; of its parent for a value that is missing
	// Branches are the violations of each branch of allOf, anyOf, oneOf or not.
	// The list of a branch that the value matches is empty.
	Branches [][]Violation

	message string // in upstream's validator; it reports none twice
}

// Error renders the violation as upstream does.
func (v *Violation) Error() string { return v.FieldError().Error() }

// FieldError returns the violation as upstream's error.
func (v *Violation) FieldError() *field.Error {
	return &field.Error{Type: v.Type, Field: v.Path, BadValue: v.BadValue, Detail: v.Detail}
}
