package engine

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/espalier-dev/espalier"
	"github.com/espalier-dev/espalier/conformance/oracle"
	"github.com/espalier-dev/espalier/crd/cel"
	"github.com/espalier-dev/espalier/finding"
)

// Check returns Espalier's result for a schema, its defaults and its rules: findings of severity Error, rendered,
// sorted, all of them among the Errors.
func Check(schema []byte, status bool) oracle.Result {
	findings, err := espalier.Check(schema, espalier.CheckOptions{Path: oracle.Path, StatusSubresource: status})
	if err != nil {
		return oracle.Result{Undecodable: err}
	}
	more, err := cel.Check(schema, cel.CheckOptions{Path: oracle.Path})
	if err != nil {
		return oracle.Result{Undecodable: err}
	}
	var v oracle.Result
	for _, f := range slices.Concat(findings, more) {
		if f.Severity == finding.Error {
			v.Errors = append(v.Errors, f.Error())
		}
	}
	slices.Sort(v.Errors)
	return v
}

// A Schema is a compiled schema.
type Schema struct {
	s     *espalier.Schema
	rules func() (*espalier.Rules, error) // compiles them when they are first needed
}

// Compile compiles a schema.
func Compile(schema []byte) (*Schema, error) {
	s, err := espalier.Compile(schema, espalier.CompileOptions{Stored: true})
	if err != nil {
		return nil, err
	}
	return &Schema{s: s, rules: sync.OnceValues(func() (*espalier.Rules, error) { return cel.Compile(s) })}, nil
}

// Normalize normalizes an object with a report.
func (s *Schema) Normalize(object []byte, source oracle.Source) oracle.Outcome {
	var report espalier.Report
	res, err := s.s.Normalize(object, espalier.NormalizeOptions{Source: from(source), Report: &report})
	if err != nil {
		return failure(err)
	}
	out := oracle.Outcome{Bytes: res.Bytes, Unknown: report.Pruned()}
	if pruned := res.Changes&espalier.Pruned != 0; pruned != (len(out.Unknown) > 0) {
		out.Unknown = append(out.Unknown, fmt.Sprintf("(Changes says pruned=%v)", pruned))
	}
	return out
}

// Bytes normalizes an object without a report, which may take another route through the engine.
func (s *Schema) Bytes(object []byte, source oracle.Source) oracle.Outcome {
	res, err := s.s.Normalize(object, espalier.NormalizeOptions{Source: from(source)})
	if err != nil {
		return failure(err)
	}
	return oracle.Outcome{Bytes: res.Bytes}
}

// Value normalizes a decoded object in place.
func (s *Schema) Value(object map[string]any, source oracle.Source) error {
	_, err := s.s.NormalizeValue(object, espalier.NormalizeOptions{Source: from(source)})
	return err
}

func from(s oracle.Source) espalier.Source {
	if s == oracle.Storage {
		return espalier.Storage
	}
	return espalier.Request
}

func failure(err error) oracle.Outcome {
	var refused *espalier.ObjectError
	return oracle.Outcome{Err: err, Malformed: !errors.As(err, &refused)}
}
