package cel_test

import (
	"fmt"
	"log"

	"github.com/espalier-dev/espalier"
	"github.com/espalier-dev/espalier/crd/cel"
)

func ExampleCompile() {
	schema, err := espalier.Compile([]byte(`{
		"type": "object", "properties": {"low": {"type": "integer"}, "high": {"type": "integer"}},
		"x-kubernetes-validations": [{"rule": "self.low <= self.high", "message": "low must not be above high"}]
	}`), espalier.CompileOptions{})
	if err != nil {
		log.Fatal(err)
	}
	rules, err := cel.Compile(schema)
	if err != nil {
		log.Fatal(err)
	}
	validation, err := schema.Validate([]byte(`{"high": 1, "low": 2}`), espalier.ValidateOptions{Rules: rules})
	fmt.Println(validation.Err(), err)
	// Output:
	// <nil>: Invalid value: low must not be above high <nil>
}

func ExampleFunctions() {
	functions, err := cel.Functions("1.34")
	if err != nil {
		log.Fatal(err)
	}
	for _, f := range functions {
		if f.Name == "isQuantity" {
			fmt.Println(f.Name)
		}
	}
	// Output:
	// isQuantity
}

// The rule is too expensive, because lists and strings may be of any length.
func ExampleRemedies() {
	remedy, err := cel.Remedies([]byte(`{
		"type": "object", "properties": {"hosts": {"type": "array", "items": {"type": "string"}}},
		"x-kubernetes-validations": [{"rule": "self.hosts.all(h, self.hosts.exists(o, o.contains(h)))"}]
	}`), cel.CheckOptions{})
	if err != nil {
		log.Fatal(err)
	}
	for _, b := range remedy.Bounds {
		fmt.Println(b.Keyword, b.Pointer, b.Value, b.Why)
	}
	// Output:
	// maxItems /properties/hosts 16 nothing in the schema shows how many there are
	// maxLength /properties/hosts/items 253 DNS names have at most 253 characters
}
