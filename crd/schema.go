package crd

import (
	"cmp"
	"encoding/json"
	"errors"
	"slices"

	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1beta1"

	"github.com/espalier-dev/espalier"
	"github.com/espalier-dev/espalier/internal/plan"
	"github.com/espalier-dev/espalier/rules"
)

// Props is a schema as a Go value, of either version of the API.
type Props interface {
	*v1.JSONSchemaProps | *v1beta1.JSONSchemaProps
}

// CheckOptions say in which surroundings a schema is checked.
type CheckOptions struct {
	// Path is the field path of the schema, put before the paths of findings:
	// spec.versions[0].schema.openAPIV3Schema, say.
	Path string
	// StatusSubresource applies the rules for schemas of resources whose
	// status subresource is enabled.
	StatusSubresource bool
	// Strict asks for more warnings; see [espalier.CheckOptions].
	Strict bool
	// CompatibilityVersion is the Kubernetes version, such as "1.36", whose
	// functions rules may use; see [rules.CheckOptions].
	CompatibilityVersion string
	Limits               espalier.Limits
}

// Check reports everything that an API server has against schema, the JSON of
// the openAPIV3Schema of a new definition: its structure, its defaults and its
// validation rules. Warnings come with it. Findings are sorted by path and
// text. The error is for input that cannot be read as a schema at all.
func Check(schema []byte, o CheckOptions) ([]espalier.Finding, error) {
	found, err := espalier.Check(schema, espalier.CheckOptions{
		Path: o.Path, StatusSubresource: o.StatusSubresource, Strict: o.Strict, Limits: o.Limits,
	})
	if err != nil {
		return nil, err
	}
	expressions, err := rules.Check(schema, rules.CheckOptions{
		Path: o.Path, CompatibilityVersion: o.CompatibilityVersion, Limits: o.Limits,
	})
	if err != nil {
		return nil, err
	}
	if len(expressions) == 0 {
		return found, nil
	}
	found = append(found, expressions...)
	slices.SortStableFunc(found, func(a, b espalier.Finding) int {
		return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Error(), b.Error()))
	})
	return found, nil
}

// CheckSchema is [Check] for a Go value. Offsets and pointers of findings refer
// to its JSON.
func CheckSchema[P Props](props P, o CheckOptions) ([]espalier.Finding, error) {
	raw, err := encode(props)
	if err != nil {
		return nil, err
	}
	return Check(raw, o)
}

// CompileSchema is [espalier.Compile] for a Go value. The validation rules, to
// be given to Validate and Admit, come with it; they are nil if the schema has
// none. Rules are not checked: one that does not compile is reported for the
// objects that it applies to, as API servers do.
func CompileSchema[P Props](props P, o espalier.CompileOptions) (*espalier.Schema, espalier.Rules, error) {
	raw, err := encode(props)
	if err != nil {
		return nil, nil, err
	}
	schema, err := espalier.Compile(raw, o)
	if err != nil {
		return nil, nil, err
	}
	if schema.Plan().Flags&plan.RulesBelow == 0 {
		return schema, nil, nil
	}
	set, err := rules.Compile(schema, rules.Options{})
	if err != nil {
		return nil, nil, err
	}
	return schema, set, nil
}

func encode[P Props](props P) ([]byte, error) {
	if props == nil {
		return nil, errors.New("the schema is nil")
	}
	return json.Marshal(props)
}
