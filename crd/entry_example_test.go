package crd_test

import (
	"errors"
	"fmt"
	"log"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/espalier-dev/espalier"
	"github.com/espalier-dev/espalier/crd"
)

const webCRD = `{
	"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "webs.example.com"},
	"spec": {"group": "example.com", "scope": "Namespaced", "names": {"plural": "webs", "kind": "Web"},
		"versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
			"type": "object", "properties": {"port": {"type": "integer", "minimum": 1, "default": 443}}
		}}}]}}`

func ExampleParse() {
	parsed, err := crd.Parse([]byte(webCRD))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(parsed.Name, parsed.Kind, parsed.StorageVersion().Name)
	_, err = crd.Parse([]byte(`{"apiVersion": "v1", "kind": "ConfigMap"}`))
	fmt.Println(errors.Is(err, crd.ErrNotCRD))
	// Output:
	// webs.example.com Web v1
	// true
}

// CRDs of strangers are read within limits.
func ExampleParseWithin() {
	_, err := crd.ParseWithin([]byte(webCRD), espalier.Limits{MaxBytes: 1 << 20, MaxDepth: 5})
	tooDeep := new(espalier.SyntaxError)
	fmt.Println(errors.As(err, &tooDeep), err)
	// Output:
	// true byte 316: nested deeper than the limit of 5
}

func ExampleCheckSchema() {
	findings, err := crd.CheckSchema(&apiextensions.JSONSchemaProps{Type: "strin"}, crd.CheckOptions{})
	if err != nil {
		log.Fatal(err)
	}
	for _, f := range findings {
		fmt.Println(f.Check, "-", f.Error())
	}
	// Output:
	// root-type-object - type: Invalid value: "strin": must be object at the root
	// type-unknown - type: Unsupported value: "strin": supported values: "array", "boolean", "integer", "number", "object", "string"
}

func ExampleVersion_Compile() {
	parsed, err := crd.Parse([]byte(webCRD))
	if err != nil {
		log.Fatal(err)
	}
	schema, rules, err := parsed.Version("v1").Compile(espalier.CompileOptions{})
	if err != nil {
		log.Fatal(err)
	}
	result, validation, err := schema.Admit([]byte(`{"metadata": {"name": "shop"}}`), espalier.AdmitOptions{Validate: espalier.ValidateOptions{Rules: rules}})
	fmt.Println(string(result.Bytes), validation.Valid(), err)
	// Output:
	// {"metadata":{"name":"shop"},"port":443} true <nil>
}
