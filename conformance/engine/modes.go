package engine

import (
	"fmt"
	"slices"
	"sync"

	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1beta1"
	kjson "sigs.k8s.io/json"

	"github.com/espalier-dev/espalier"
	"github.com/espalier-dev/espalier/conformance/oracle"
	"github.com/espalier-dev/espalier/crd"
	"github.com/espalier-dev/espalier/crd/cel"
	"github.com/espalier-dev/espalier/finding"
)

// CompileWith compiles a schema with other options than a server's.
func CompileWith(schema []byte, o espalier.CompileOptions) (*Schema, error) {
	s, err := espalier.Compile(schema, o)
	if err != nil {
		return nil, err
	}
	return &Schema{s: s, rules: sync.OnceValues(func() (*espalier.Rules, error) { return cel.Compile(s) })}, nil
}

// CompileTyped compiles a schema by way of a Go value, of v1beta1 or v1.
func CompileTyped(schema []byte, beta bool) (*Schema, error) {
	o := espalier.CompileOptions{Stored: true}
	if beta {
		return typed(schema, &v1beta1.JSONSchemaProps{}, o)
	}
	return typed(schema, &v1.JSONSchemaProps{}, o)
}

func typed[P crd.Props](schema []byte, props P, o espalier.CompileOptions) (*Schema, error) {
	if err := kjson.UnmarshalCaseSensitivePreserveInts(schema, props); err != nil {
		return nil, err
	}
	s, rules, err := crd.CompileSchema(props, o)
	if err != nil {
		return nil, err
	}
	return &Schema{s: s, rules: func() (*espalier.Rules, error) { return rules, nil }}, nil
}

// CheckTyped is Check by way of a Go value.
func CheckTyped(schema []byte, beta bool) oracle.Result {
	if beta {
		return checkTyped(schema, &v1beta1.JSONSchemaProps{})
	}
	return checkTyped(schema, &v1.JSONSchemaProps{})
}

func checkTyped[P crd.Props](schema []byte, props P) (v oracle.Result) {
	if err := kjson.UnmarshalCaseSensitivePreserveInts(schema, props); err != nil {
		return oracle.Result{Undecodable: err}
	}
	return result(crd.CheckSchema(props, crd.CheckOptions{Path: oracle.Path}))
}

// CheckStrict is Check with the warnings of strict schemas, which are no errors.
func CheckStrict(schema []byte) oracle.Result {
	return result(crd.Check(schema, crd.CheckOptions{Path: oracle.Path, Strict: true}))
}

func result(found []finding.Finding, err error) (v oracle.Result) {
	if err != nil {
		return oracle.Result{Undecodable: err}
	}
	for _, f := range found {
		if f.Severity == finding.Error {
			v.Errors = append(v.Errors, f.Error())
		}
	}
	slices.Sort(v.Errors)
	return v
}

// ErrValidationOnly is what a schema for validation only answers to Normalize and Admit.
func (s *Schema) ErrValidationOnly(object []byte) error {
	_, err := s.s.Normalize(object, espalier.NormalizeOptions{})
	_, _, admitted := s.s.Admit(object, espalier.AdmitOptions{})
	if err != espalier.ErrValidationOnly || admitted != espalier.ErrValidationOnly { //nolint:errorlint // it is not wrapped
		return fmt.Errorf("normalize: %v, admit: %v", err, admitted)
	}
	return nil
}
