package espalier

import (
	"errors"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/espalier-dev/espalier/internal/exec"
	"github.com/espalier-dev/espalier/internal/jsondoc"
)

// Scope says where objects of a resource live.
type Scope uint8

// The scopes.
const (
	// AnyScope leaves the object's own metadata unchecked.
	AnyScope = Scope(exec.AnyScope)
	// Namespaced objects have a namespace.
	Namespaced = Scope(exec.Namespaced)
	// Cluster objects have none.
	Cluster = Scope(exec.Cluster)
)

// Rules are the compiled x-kubernetes-validations of a schema. Package crd/cel
// makes them.
type Rules struct{ compiled exec.Rules }

// ValidateOptions say how an object is validated.
type ValidateOptions struct {
	// Old is the object before the change, as it was stored; nil for a new
	// object. Updates are ratcheted: errors in unchanged values are dropped.
	Old []byte
	// NoRatcheting also reports errors in unchanged values.
	NoRatcheting bool
	// Scope has the object's own metadata checked as well.
	Scope Scope
	// Rules are evaluated unless other errors prevent it, such as values of the
	// wrong type. They must come from the same schema.
	Rules *Rules
	// ReadOnly also reports the read-only fields that the update changes.
	ReadOnly bool
	Limits   Limits
}

// Violation is one error of an object.
type Violation struct {
	Type     field.ErrorType // the API server's error type
	Path     string          // the API server's field path; "<nil>" where it gives none
	BadValue any             // the API server's bad value
	Detail   string          // the API server's words
	Keyword  string          // the violated keyword of the schema, such as "pattern" or "anyOf"
	At       string          // where in the object, also if Path does not say
	Offset   int             // byte offset of the value in the canonical object; of the parent of a missing one
	// Branches are the violations of each branch of an anyOf, oneOf, allOf or
	// not. A branch that the value matches has none.
	Branches [][]Violation
}

// Error renders the violation as the API server does.
func (v Violation) Error() string { return v.FieldError().Error() }

// FieldError returns the violation as the API server's error.
func (v Violation) FieldError() *field.Error {
	return &field.Error{Type: v.Type, Field: v.Path, BadValue: v.BadValue, Detail: v.Detail}
}

// Validation is the result of validating an object. It is zero for a valid object
// without warnings.
type Validation struct {
	Errors   []Violation // what the API server refuses the object for
	Warnings []Violation // violations of CEL rules in unchanged values (ratcheting)
	ReadOnly []Violation // read-only fields that the update changes; the caller refuses, resets or ignores them
	Omitted  int         // errors beyond the limits of 10,000 and 16 MiB
}

// Valid reports whether there are no errors.
func (v *Validation) Valid() bool { return len(v.Errors) == 0 }

// Err returns nil for a valid object, and all errors joined for another.
func (v *Validation) Err() error {
	errs := make([]error, len(v.Errors))
	for i := range v.Errors {
		errs[i] = v.Errors[i]
	}
	return errors.Join(errs...)
}

// Validate returns the errors of object, the JSON of a whole custom resource as
// Normalize leaves it: types, values, allOf, anyOf, oneOf and not, lists, embedded
// resources, unions and, if they are given, CEL rules.
//
// The error is for input that cannot be validated: it is not JSON, or no object.
func (s *Schema) Validate(object []byte, o ValidateOptions) (Validation, error) {
	d, err := canonicalDoc(object, o.Limits)
	if err != nil {
		return Validation{}, err
	}
	defer d.Release()
	return s.validate(d, o, false)
}

// ValidateResult is Validate for what Normalize has returned. With the option
// Keep the object is not parsed again.
func (s *Schema) ValidateResult(r *Result, o ValidateOptions) (Validation, error) {
	if r.doc == nil || o.Old != nil && !r.doc.Canonical() {
		return s.Validate(r.Bytes, o)
	}
	v, err := s.validate(r.doc, o, r.typed)
	if err == nil && !v.Valid() && !r.doc.Canonical() {
		return s.Validate(r.Bytes, o) // offsets are those of the canonical object
	}
	return v, err
}

func (s *Schema) validate(d *jsondoc.Doc, o ValidateOptions, typed bool) (Validation, error) {
	j := exec.ValidateOptions{Ratchet: !o.NoRatcheting, Typed: typed, Scope: exec.Scope(o.Scope), ReadOnly: o.ReadOnly}
	if o.Rules != nil {
		j.Rules = o.Rules.compiled
	}
	if o.Old != nil {
		old, err := canonicalDoc(o.Old, o.Limits)
		if err != nil {
			return Validation{}, err
		}
		defer old.Release()
		j.Old = old
	}
	return validation(exec.Validate(s.plan, d, j)), nil
}

// canonicalDoc parses an object, bringing it into canonical form first if it
// is not.
func canonicalDoc(object []byte, lim Limits) (*jsondoc.Doc, error) {
	d, err := jsondoc.Parse(object, jsondoc.Limits(lim))
	if err != nil {
		return nil, syntaxError(err)
	}
	if d.Kind(jsondoc.Root) != jsondoc.Object {
		d.Release()
		return nil, &ObjectError{Err: exec.ErrNotObject, Offset: d.Offset(jsondoc.Root)}
	}
	if d.Canonical() {
		return d, nil
	}
	object = d.AppendCanonical(nil, jsondoc.Root)
	d.Release()
	if d, err = jsondoc.Parse(object, jsondoc.Limits(lim)); err != nil {
		return nil, syntaxError(err)
	}
	return d, nil
}

func validation(v *exec.Result) Validation {
	if v == nil {
		return Validation{}
	}
	return Validation{
		Errors: violations(v.Errors), Warnings: violations(v.Warnings), ReadOnly: violations(v.ReadOnly), Omitted: v.Omitted,
	}
}

func violations(list []exec.Violation) []Violation {
	if len(list) == 0 {
		return nil
	}
	out := make([]Violation, len(list))
	for i, v := range list {
		out[i] = Violation{Type: v.Type, Path: v.Path, BadValue: v.BadValue, Detail: v.Detail,
			Keyword: v.Keyword, At: v.At, Offset: v.Offset}
		for _, b := range v.Branches {
			out[i].Branches = append(out[i].Branches, violations(b))
		}
	}
	return out
}

// AdmitOptions say how an object is admitted.
type AdmitOptions struct {
	Source   Source  // as for Normalize
	Report   *Report // as for Normalize
	Validate ValidateOptions
}

// Admit normalizes and validates an object in one call, for callers that do
// nothing to it in between. It parses an object that is valid and complete
// only once.
func (s *Schema) Admit(object []byte, o AdmitOptions) (Result, Validation, error) {
	r, err := s.Normalize(object, NormalizeOptions{Source: o.Source, Report: o.Report, Limits: o.Validate.Limits, Keep: true})
	if err != nil {
		return Result{}, Validation{}, err
	}
	v, err := s.ValidateResult(&r, o.Validate)
	r.Release()
	return r, v, err
}
