package crd

import (
	"encoding/json"
	"errors"

	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1beta1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	utilversion "k8s.io/apimachinery/pkg/util/version"

	"github.com/espalier-dev/espalier"
	"github.com/espalier-dev/espalier/crd/cel"
	"github.com/espalier-dev/espalier/finding"
	"github.com/espalier-dev/espalier/internal/bridge"
	"github.com/espalier-dev/espalier/internal/compile"
	"github.com/espalier-dev/espalier/internal/jsondoc"
	"github.com/espalier-dev/espalier/internal/plan"
	"github.com/espalier-dev/espalier/internal/syntax"
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
	// StatusSubresource applies the checks of schemas of resources whose
	// status subresource is enabled.
	StatusSubresource bool
	// Strict asks for more warnings; see [espalier.CheckOptions].
	Strict bool
	// CompatibilityVersion is the Kubernetes version, such as "1.36", whose
	// formats are known and whose functions rules may use; see [cel.CheckOptions].
	CompatibilityVersion string
	Limits               espalier.Limits
}

// Check reports the errors that an API server finds in schema, the JSON of the
// openAPIV3Schema of a new CRD: in its structure, its defaults and its CEL rules.
// It also reports warnings. Findings are sorted by path and text. Check fails if
// the input is not a schema.
func Check(schema []byte, o CheckOptions) ([]finding.Finding, error) {
	s, release, err := bridge.Read(schema, jsondoc.Limits(o.Limits))
	if err != nil {
		return nil, err
	}
	defer release()
	found, err := examine(schema, s,
		compile.CheckOptions{StatusSubresource: o.StatusSubresource, Strict: o.Strict, FormatsBefore134: before134(o.CompatibilityVersion)},
		cel.CheckOptions{Path: o.Path, CompatibilityVersion: o.CompatibilityVersion})
	sortFindings(found)
	return found, err
}

// before134 reports whether a compatibility version is older than the formats of Kubernetes names.
func before134(compatibility string) bool {
	v, err := utilversion.ParseMajorMinor(compatibility)
	return err == nil && v.LessThan(utilversion.MajorMinor(1, 34))
}

// examine returns everything that is to be found in a schema of a document, with
// pointers that start at the schema.
func examine(document []byte, s *syntax.Schema, o compile.CheckOptions, r cel.CheckOptions) ([]finding.Finding, error) {
	if r.Path != "" {
		o.Path = field.NewPath(r.Path)
	}
	v := compile.Validate(s, o)
	if !v.Rules {
		return v.Findings, nil
	}
	expressions, err := bridge.CheckRules(document, s, &v, r)
	return append(v.Findings, expressions...), err
}

// CheckSchema is [Check] for a Go value. Offsets and pointers of findings refer
// to its JSON.
func CheckSchema[P Props](props P, o CheckOptions) ([]finding.Finding, error) {
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
func CompileSchema[P Props](props P, o espalier.CompileOptions) (*espalier.Schema, *espalier.Rules, error) {
	raw, err := encode(props)
	if err != nil {
		return nil, nil, err
	}
	return compileJSON(raw, o)
}

func compileJSON(raw []byte, o espalier.CompileOptions) (*espalier.Schema, *espalier.Rules, error) {
	schema, err := espalier.Compile(raw, o)
	if err != nil {
		return nil, nil, err
	}
	if bridge.Plan(schema).Flags&plan.RulesBelow == 0 {
		return schema, nil, nil
	}
	set, err := cel.Compile(schema)
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
