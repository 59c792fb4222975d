package request

import (
	"sync"

	"github.com/espalier-dev/espalier"
	"github.com/espalier-dev/espalier/crd"
)

// Schemas for versions whose CRD has none.
const (
	keepAll  = `{"type":"object","x-kubernetes-preserve-unknown-fields":true}`
	keepNone = `{"type":"object"}`
)

// Schema is the compiled schema of one version of a custom resource.
type Schema struct {
	Normalize *espalier.Schema
	Validate  *espalier.Schema // the same, unless the CRD has preserveUnknownFields
	Rules     *espalier.Rules
}

// Compile compiles the schema of a version. CRDs with preserveUnknownFields come from
// v1beta1: their objects are not pruned and get no defaults, and their schemas need not
// be structural.
func Compile(v *crd.Version, preserve bool) (*Schema, error) {
	s, err := compile(v, preserve)
	if err != nil {
		return nil, err
	}
	return &s, nil
}

func compile(v *crd.Version, preserve bool) (s Schema, err error) {
	switch {
	case preserve:
		if s.Normalize, err = Everything(); err != nil || v.Schema == nil {
			s.Validate = s.Normalize
			return s, err
		}
		if s.Validate, s.Rules, err = v.Compile(espalier.CompileOptions{Stored: true}); err != nil {
			s.Validate, s.Rules, err = v.Compile(espalier.CompileOptions{ValidationOnly: true, Stored: true})
		}
		return s, err
	case v.Schema == nil:
		s.Normalize, err = espalier.Compile([]byte(keepNone), espalier.CompileOptions{})
	default:
		s.Normalize, s.Rules, err = v.Compile(espalier.CompileOptions{Stored: true})
	}
	s.Validate = s.Normalize
	return s, err
}

// Everything returns a schema that keeps all fields and validates only metadata.
var Everything = sync.OnceValues(func() (*espalier.Schema, error) {
	return espalier.Compile([]byte(keepAll), espalier.CompileOptions{})
})
