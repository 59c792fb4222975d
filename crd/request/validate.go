package request

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/espalier-dev/espalier"
	"github.com/espalier-dev/espalier/internal/bridge"
	"github.com/espalier-dev/espalier/internal/exec"
	"github.com/espalier-dev/espalier/internal/jsondoc"
	"github.com/espalier-dev/espalier/internal/object"
	"github.com/espalier-dev/espalier/internal/plan"
)

// Problem is one reason for which an API server refuses a request.
type Problem struct {
	*field.Error                     // in the server's words
	Violation    *espalier.Violation // of the schema; nil if the schema has nothing to do with it
}

// Result is what validation has found.
type Result struct {
	Problems []Problem
	Warnings []espalier.Violation // of CEL rules, about values that have not changed
	ReadOnly []espalier.Violation // if asked for; API servers know no read-only fields
	Omitted  int                  // problems beyond the engine's limits
}

// ErrorList returns the problems as API servers report them.
func (r *Result) ErrorList() field.ErrorList { return errorList(r.Problems) }

func errorList(problems []Problem) field.ErrorList {
	var errs field.ErrorList
	for i := range problems {
		errs = append(errs, problems[i].Error)
	}
	return errs
}

// Options say how an object is validated.
type Options struct {
	Old      *object.Object // as it is stored; nil for a new object
	Target   Target
	ReadOnly bool // look for changes of read-only fields
}

// Validate validates an object that has been prepared. The error is for objects that are not
// JSON, or none.
func (r *Resource) Validate(s *Schema, o *object.Object, options Options) (Result, error) {
	if problems := r.typeErrors(o); len(problems) > 0 {
		return Result{Problems: problems}, nil
	}
	found, err := r.schemaErrors(s, o, options)
	if err != nil {
		return Result{}, err
	}
	return Result{
		Problems: r.problems(o, &found, options.Target),
		Warnings: found.Warnings, ReadOnly: found.ReadOnly, Omitted: found.Omitted,
	}, nil
}

// Mistyped returns what is wrong with an object that has a value of the wrong type, and nothing
// if such values do not matter: they were there before, or are outside the target. API
// servers refuse such objects before admission, when metadata is not complete.
func (r *Resource) Mistyped(s *Schema, o *object.Object, options Options) (field.ErrorList, error) {
	found, err := r.schemaErrors(s, o, options)
	if err != nil {
		return nil, err
	}
	found.Errors = slices.DeleteFunc(found.Errors, func(v espalier.Violation) bool { return within(v.At, "metadata") })
	errs := errorList(r.problems(o, &found, options.Target))
	if !slices.ContainsFunc(errs, func(e *field.Error) bool { return e.Type == field.ErrorTypeTypeInvalid }) {
		return nil, nil
	}
	return errs, nil
}

// schemaErrors returns the violations of the schema and of its rules.
func (r *Resource) schemaErrors(s *Schema, o *object.Object, options Options) (espalier.Validation, error) {
	found, err := r.violations(s, o, options)
	if sameNull(o, options) {
		found.Errors = slices.DeleteFunc(found.Errors, func(v espalier.Violation) bool { return v.At == "status" && valueOf(v.Keyword) })
	}
	return found, err
}

// sameNull reports whether a status is written that is null and was missing. To API servers that is no change, and what
// has not changed is not validated.
func sameNull(o *object.Object, options Options) bool {
	return options.Target == Status && options.Old != nil && options.Old.Member("status") == nil && string(o.Member("status")) == "null"
}

func (r *Resource) violations(s *Schema, o *object.Object, options Options) (espalier.Validation, error) {
	engine := espalier.ValidateOptions{Scope: espalier.Cluster, Rules: s.Rules, ReadOnly: options.ReadOnly}
	if r.Namespaced {
		engine.Scope = espalier.Namespaced
	}
	doc, typed := o.Index()
	if doc == nil && options.Target == Status {
		var err error
		if doc, err = parsed(o.JSON()); err != nil {
			return espalier.Validation{}, err
		}
		defer doc.Release()
	}
	if doc != nil {
		if found, ok := byIndex(s, doc, typed == s.Validate, engine, options, sameNull(o, options)); ok {
			return found, nil
		}
	}
	if options.Old != nil {
		engine.Old = options.Old.JSON()
	}
	return s.Validate.Validate(o.JSON(), engine)
}

// parsed indexes an object in canonical form.
func parsed(object []byte) (*jsondoc.Doc, error) {
	doc, err := jsondoc.Parse(object, jsondoc.Limits{})
	if err != nil || doc.Canonical() {
		return doc, err
	}
	object = doc.AppendCanonical(nil, jsondoc.Root)
	doc.Release()
	return jsondoc.Parse(object, jsondoc.Limits{})
}

// byIndex validates an object whose index is known. It reports false if the object has to be parsed. unchanged says that
// the status is as it was, though it is written in another way.
func byIndex(s *Schema, doc *jsondoc.Doc, typed bool, options espalier.ValidateOptions, r Options, unchanged bool) (espalier.Validation, bool) {
	n := bridge.Plan(s.Validate)
	j := exec.ValidateOptions{Ratchet: true, Typed: typed, Scope: exec.Scope(options.Scope), ReadOnly: options.ReadOnly}
	if r.Target == Status {
		j.Counts = func(v *exec.Violation) bool {
			return ofStatus(v.Keyword, v.At) && !(unchanged && v.At == "status" && valueOf(v.Keyword))
		}
	}
	if options.Rules != nil {
		j.Rules = bridge.Compiled(options.Rules)
	}
	whole := true
	if r.Old != nil {
		var text []byte
		var err error
		if text, whole = oldFor(n, options, r.Old); r.Target == Status {
			text, whole = r.Old.JSON(), true
		}
		if j.Old, err = parsed(text); err != nil {
			return espalier.Validation{}, false
		}
		defer j.Old.Release()
	}
	result := exec.Validate(n, doc, j)
	if result == nil {
		return espalier.Validation{}, true
	}
	if !whole {
		return espalier.Validation{}, false // ratcheting needs the whole old object
	}
	return bridge.Validation(result).(espalier.Validation), true
}

// oldFor returns what is needed of an old object, and whether that is all of it: without rules and read-only fields a
// valid object is compared with the metadata only.
func oldFor(n *plan.Node, options espalier.ValidateOptions, old *object.Object) ([]byte, bool) {
	if n.Flags&plan.RulesBelow != 0 || options.ReadOnly && n.Flags&plan.ReadOnlyBelow != 0 {
		return old.JSON(), true
	}
	return old.Metadata(), false
}

// problems returns the violations that count for a target, in the order of API servers: they
// look at the scale after the values, and before the rest.
func (r *Resource) problems(o *object.Object, found *espalier.Validation, target Target) []Problem {
	if len(found.Errors) == 0 && r.Scale == nil {
		return nil
	}
	var out []Problem
	scale := r.Scale.problems(o, target)
	for i := range found.Errors {
		v := &found.Errors[i]
		if afterScale(v) {
			out, scale = append(out, scale...), nil
		}
		if target == Object {
			out = append(out, Problem{v.FieldError(), v})
		} else if e := statusError(v); e != nil {
			out = append(out, Problem{e, v})
		}
	}
	return append(out, scale...)
}

// NotChecked reports whether a violation says only that CEL rules were not evaluated because
// of other errors.
func NotChecked(v *espalier.Violation) bool { return v != nil && v.Detail == rulesNotChecked }

const rulesNotChecked = "some validation rules were not checked because the object was invalid; correct the existing errors to complete validation"

// afterScale reports whether API servers report a violation after those of the scale: embedded
// resources, lists and rules.
func afterScale(v *espalier.Violation) bool {
	switch v.Keyword {
	case "x-kubernetes-validations", "x-kubernetes-list-type":
		return true
	case "metadata":
		return !within(v.At, "metadata")
	}
	return false
}

// statusError returns the error for a violation if it keeps a status from being written. API
// servers validate the values of the status alone, but metadata, CEL rules and lists of the
// whole object.
func statusError(v *espalier.Violation) *field.Error {
	if !ofStatus(v.Keyword, v.At) {
		return nil
	}
	if !valueOf(v.Keyword) {
		return v.FieldError()
	}
	// API servers validate the value of the status, so that details name fields as they are
	// called in it. Only the field has the whole path.
	e := v.FieldError()
	switch {
	case e.Field == (*field.Path)(nil).String():
		e.Field = "status"
	case strings.HasPrefix(e.Field, "status["): // an item is a member of the status to them
		e.Field = "status." + e.Field[len("status"):]
	}
	inStatus := strings.TrimPrefix(strings.TrimPrefix(v.At, "status"), ".")
	if before, ok := strings.CutSuffix(e.Detail, " in "+v.At); ok && strings.Contains(before, " value must be of type ") {
		e.Detail = before + " in " + inStatus
		return e
	}
	const factor = "factor MultipleOf declared for "
	if rest, ok := strings.CutPrefix(e.Detail, factor+v.At); ok {
		e.Detail = factor + inStatus + rest
		return e
	}
	quote := ""
	if strings.HasPrefix(e.Detail, `"`) {
		quote = `"`
	}
	if rest, ok := strings.CutPrefix(e.Detail, quote+"status"); ok {
		e.Detail = quote + strings.TrimPrefix(rest, ".")
	}
	return e
}

// ofStatus reports whether a violation of a keyword at a place keeps a status from being written.
func ofStatus(keyword, at string) bool {
	switch keyword {
	case "x-kubernetes-validations", "x-kubernetes-list-type":
		return true
	case "metadata":
		return within(at, "metadata")
	}
	return within(at, "status")
}

// valueOf reports whether a keyword is about a value by itself, and not about lists, rules or metadata of the object.
func valueOf(keyword string) bool {
	return keyword != "x-kubernetes-validations" && keyword != "x-kubernetes-list-type" && keyword != "metadata"
}

// within reports whether a path leads to a member of an object or into it.
func within(path, member string) bool {
	rest, ok := strings.CutPrefix(path, member)
	return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
}
