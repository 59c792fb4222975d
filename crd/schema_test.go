package crd_test

import (
	"fmt"
	"slices"
	"testing"

	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1beta1"

	"github.com/espalier-dev/espalier"
	"github.com/espalier-dev/espalier/crd"
)

func ExampleCompileSchema() {
	schema, rules, err := crd.CompileSchema(&v1.JSONSchemaProps{
		Type: "object",
		Properties: map[string]v1.JSONSchemaProps{
			"spec": {Type: "object", Properties: map[string]v1.JSONSchemaProps{
				"replicas": {
					Type: "integer", Default: &v1.JSON{Raw: []byte("1")},
					XValidations: v1.ValidationRules{{Rule: "self < 10", Message: "ten are too many"}},
				},
			}},
		},
	}, espalier.CompileOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	out, err := schema.Normalize([]byte(`{"kind":"Web","spec":{"colour":"red"}}`), espalier.NormalizeOptions{})
	fmt.Println(string(out.Bytes), out.Changes, err)
	validation, err := schema.Validate([]byte(`{"kind":"Web","spec":{"replicas":10}}`), espalier.ValidateOptions{Rules: rules})
	fmt.Println(validation.Err(), err)
	// Output:
	// {"kind":"Web","spec":{"replicas":1}} pruned,defaulted <nil>
	// spec.replicas: Invalid value: 10: ten are too many <nil>
}

func ExampleCheck() {
	findings, err := crd.Check([]byte(`{"type":"object","properties":{
		"level": {"type":"integer", "default":"high"},
		"until": {"type":"string", "format":"datum"}}}`), crd.CheckOptions{Path: "schema"})
	for _, f := range findings {
		fmt.Println(f.Severity, f.Check, f.Error())
	}
	fmt.Println(err)
	// Output:
	// error default-value schema.properties[level].default: Invalid value: "string":  in body must be of type integer: "string"
	// warning format-unrecognized schema.properties[until].format: Invalid value: "datum": unrecognized format "datum"
	// <nil>
}

// TestAllFindings checks that findings come from all three sources, each
// only where the API server gets as far.
func TestAllFindings(t *testing.T) {
	for _, c := range []struct {
		name, schema string
		want         []string
	}{
		{"structure", `{"type":"object","properties":{"a":{"default":1}},"x-kubernetes-validations":[{"rule":"self.nothing"}]}`,
			[]string{"type-required"}},
		{"defaults", `{"type":"object","properties":{"a":{"type":"integer","default":"x"}},"x-kubernetes-validations":[{"rule":"self.nothing"}]}`,
			[]string{"default-value"}},
		{"expressions", `{"type":"object","properties":{"a":{"type":"integer","default":1},"z":{"type":"string","format":"foo"}},"x-kubernetes-validations":[{"rule":"self.nothing"}]}`,
			[]string{"format-unrecognized", "rule-expression"}},
		{"defaults and rules", `{"type":"object","properties":{"a":{"type":"integer","default":1,"x-kubernetes-validations":[{"rule":"self > 1"}]}}}`,
			[]string{"rule-default"}},
		{"nothing", `{"type":"object","properties":{"a":{"type":"integer","default":2,"x-kubernetes-validations":[{"rule":"self > 1"}]}}}`, nil},
	} {
		found, err := crd.Check([]byte(c.schema), crd.CheckOptions{})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, f := range found {
			got = append(got, string(f.Check))
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %v", c.name, found)
		}
	}
	if _, err := crd.Check([]byte(`{`), crd.CheckOptions{}); err == nil {
		t.Error("half a document is checked")
	}
}

func TestNoRules(t *testing.T) {
	_, rules, err := crd.CompileSchema(&v1.JSONSchemaProps{Type: "object"}, espalier.CompileOptions{})
	if err != nil || rules != nil {
		t.Errorf("a schema without rules has %v, %v", rules, err)
	}
}

func TestBothVersionsAgree(t *testing.T) {
	minLength := int64(1)
	one := &v1.JSONSchemaProps{
		Properties: map[string]v1.JSONSchemaProps{"a": {MinLength: &minLength, Items: &v1.JSONSchemaPropsOrArray{JSONSchemas: []v1.JSONSchemaProps{{Type: "string"}}}}},
		Not:        &v1.JSONSchemaProps{Type: "string"},
	}
	beta := &v1beta1.JSONSchemaProps{
		Properties: map[string]v1beta1.JSONSchemaProps{"a": {MinLength: &minLength, Items: &v1beta1.JSONSchemaPropsOrArray{JSONSchemas: []v1beta1.JSONSchemaProps{{Type: "string"}}}}},
		Not:        &v1beta1.JSONSchemaProps{Type: "string"},
	}
	a, err := crd.CheckSchema(one, crd.CheckOptions{Path: "schema"})
	if err != nil {
		t.Fatal(err)
	}
	b, err := crd.CheckSchema(beta, crd.CheckOptions{Path: "schema"})
	if err != nil {
		t.Fatal(err)
	}
	if len(a) == 0 || fmt.Sprint(a) != fmt.Sprint(b) {
		t.Errorf("v1: %v\nv1beta1: %v", a, b)
	}
	if _, _, err := crd.CompileSchema(beta, espalier.CompileOptions{}); err == nil {
		t.Error("a schema with findings compiles")
	}
	if _, _, err := crd.CompileSchema[*v1.JSONSchemaProps](nil, espalier.CompileOptions{}); err == nil {
		t.Error("nil compiles")
	}
	if _, err := crd.CheckSchema[*v1.JSONSchemaProps](nil, crd.CheckOptions{}); err == nil {
		t.Error("nil is checked")
	}
}
