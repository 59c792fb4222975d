package crd_test

import (
	"fmt"
	"testing"

	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1beta1"

	"github.com/espalier-dev/espalier"
	"github.com/espalier-dev/espalier/crd"
)

func ExampleCompileSchema() {
	schema, err := crd.CompileSchema(&v1.JSONSchemaProps{
		Type: "object",
		Properties: map[string]v1.JSONSchemaProps{
			"spec": {Type: "object", Properties: map[string]v1.JSONSchemaProps{
				"replicas": {Type: "integer", Default: &v1.JSON{Raw: []byte("1")}},
			}},
		},
	}, espalier.CompileOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	out, err := schema.Normalize([]byte(`{"kind":"Web","spec":{"colour":"red"}}`), espalier.NormalizeOptions{})
	fmt.Println(string(out.Bytes), out.Changes, err)
	// Output: {"kind":"Web","spec":{"replicas":1}} pruned,defaulted <nil>
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
	a, err := crd.CheckSchema(one, espalier.CheckOptions{Path: "schema"})
	if err != nil {
		t.Fatal(err)
	}
	b, err := crd.CheckSchema(beta, espalier.CheckOptions{Path: "schema"})
	if err != nil {
		t.Fatal(err)
	}
	if len(a) == 0 || fmt.Sprint(a) != fmt.Sprint(b) {
		t.Errorf("v1: %v\nv1beta1: %v", a, b)
	}
	if _, err := crd.CompileSchema(beta, espalier.CompileOptions{}); err == nil {
		t.Error("a schema with findings compiles")
	}
	if _, err := crd.CompileSchema[*v1.JSONSchemaProps](nil, espalier.CompileOptions{}); err == nil {
		t.Error("nil compiles")
	}
}
