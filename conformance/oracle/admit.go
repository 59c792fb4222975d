package oracle

import (
	"slices"

	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
)

// An Admission is what becomes of an object between the bytes of a request and the bytes for storage.
type Admission struct {
	Outcome
	Validation
	// Rewritten says that the object reads otherwise when it is read from storage: a number is written in a form in which
	// it is not stored.
	Rewritten bool
}

// String renders the admission for a reproducer.
func (a *Admission) String() string {
	if a.Err != nil {
		return a.Outcome.String()
	}
	return a.Outcome.String() + "\n  " + a.Validation.String()
}

// Whole decodes, prunes, drops nulls, coerces metadata, defaults, validates and encodes, in the reference's order. It
// validates what was decoded, not what was encoded.
func (s *Schema) Whole(object []byte, source Source, o ValidateOptions) (a Admission) {
	obj, err := Decode(object)
	if err != nil {
		return Admission{Outcome: Outcome{Err: err, Malformed: true}}
	}
	if a.Unknown, err = s.apply(obj, source, true); err != nil {
		return Admission{Outcome: Outcome{Err: err}}
	}
	slices.Sort(a.Unknown)
	defaulting.Default(obj, s.structural)
	a.Bytes, a.Rewritten = restated(obj)
	defer func() {
		if p := recover(); p != nil {
			a.Validation = Validation{Panic: crashed(p)}
		}
	}()
	var old map[string]any
	if o.Old != nil {
		if old, err = Decode(o.Old); err != nil {
			a.Validation = Validation{Undecodable: err}
			return a
		}
	}
	a.Validation = s.said(obj, old, o)
	return a
}
