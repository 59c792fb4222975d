package crd

import (
	"encoding/json"
	"errors"

	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1beta1"

	"github.com/espalier-dev/espalier"
)

// Props is a schema as a Go value, of either version of the API.
type Props interface {
	*v1.JSONSchemaProps | *v1beta1.JSONSchemaProps
}

// CheckSchema is [espalier.Check] for a Go value. Offsets and pointers of
// findings refer to its JSON.
func CheckSchema[P Props](props P, o espalier.CheckOptions) ([]espalier.Finding, error) {
	raw, err := encode(props)
	if err != nil {
		return nil, err
	}
	return espalier.Check(raw, o)
}

// CompileSchema is [espalier.Compile] for a Go value.
func CompileSchema[P Props](props P, o espalier.CompileOptions) (*espalier.Schema, error) {
	raw, err := encode(props)
	if err != nil {
		return nil, err
	}
	return espalier.Compile(raw, o)
}

func encode[P Props](props P) ([]byte, error) {
	if props == nil {
		return nil, errors.New("the schema is nil")
	}
	return json.Marshal(props)
}
