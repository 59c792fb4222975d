package engine

import (
	"fmt"
	"slices"

	"github.com/espalier-dev/espalier"
	"github.com/espalier-dev/espalier/conformance/oracle"
)

// Validate validates an object in canonical form.
func (s *Schema) Validate(object []byte, o oracle.ValidateOptions) (v oracle.Validation) {
	defer func() {
		if p := recover(); p != nil {
			v = oracle.Validation{Panic: p}
		}
	}()
	options, err := s.options(o)
	if err != nil {
		return oracle.Validation{Undecodable: err}
	}
	got, err := s.s.Validate(object, options)
	if err != nil {
		return oracle.Validation{Undecodable: err}
	}
	return rendered(&got)
}

// Admit normalizes and validates in one call, on bytes of any form. The result is what it says about the object that
// it returns.
func (s *Schema) Admit(object []byte, o oracle.ValidateOptions) ([]byte, oracle.Validation) {
	options, err := s.options(o)
	if err != nil {
		return nil, oracle.Validation{Undecodable: err}
	}
	res, got, err := s.s.Admit(object, espalier.AdmitOptions{Validate: options})
	if err != nil {
		return nil, oracle.Validation{Undecodable: err}
	}
	return res.Bytes, rendered(&got)
}

// Whole is Admit with a report of what was dropped.
func (s *Schema) Whole(object []byte, source oracle.Source, o oracle.ValidateOptions) (a oracle.Admission) {
	defer func() {
		if p := recover(); p != nil {
			a = oracle.Admission{Validation: oracle.Validation{Panic: p}}
		}
	}()
	options, err := s.options(o)
	if err != nil {
		return oracle.Admission{Validation: oracle.Validation{Undecodable: err}}
	}
	var report espalier.Report
	res, got, err := s.s.Admit(object, espalier.AdmitOptions{Source: from(source), Report: &report, Validate: options})
	if err != nil {
		return oracle.Admission{Outcome: failure(err)}
	}
	return oracle.Admission{Outcome: oracle.Outcome{Bytes: res.Bytes, Unknown: report.Pruned()}, Validation: rendered(&got)}
}

func (s *Schema) options(o oracle.ValidateOptions) (espalier.ValidateOptions, error) {
	options := espalier.ValidateOptions{Old: o.Old, NoRatcheting: !o.Ratchet, Scope: espalier.Scope(o.Scope)}
	if o.NoRules {
		return options, nil
	}
	var err error
	options.Rules, err = s.rules()
	return options, err
}

func rendered(got *espalier.Validation) (v oracle.Validation) {
	for i := range got.Errors {
		v.Errors = append(v.Errors, oracle.Render(got.Errors[i].FieldError()))
	}
	for i := range got.Warnings {
		v.Warnings = append(v.Warnings, got.Warnings[i].Error())
	}
	if got.Omitted > 0 {
		v.Errors = append(v.Errors, fmt.Sprintf("(%d errors omitted)", got.Omitted))
	}
	v.Ordered = slices.Clone(v.Errors)
	slices.Sort(v.Errors)
	slices.Sort(v.Warnings)
	return v
}
