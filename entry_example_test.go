package espalier_test

import (
	"errors"
	"fmt"
	"log"
	"strings"

	"github.com/espalier-dev/espalier"
)

// A schema that is not structural is refused with all of its errors.
func ExampleCompile() {
	_, err := espalier.Compile([]byte(`{"type": "object", "properties": {"replicas": {"default": 1}}}`), espalier.CompileOptions{})
	if refused := new(espalier.SchemaError); errors.As(err, &refused) {
		for _, f := range refused.Findings {
			fmt.Println(f.Check, "-", f.Error())
		}
	}
	// Output:
	// type-required - properties[replicas].type: Required value: must not be empty for specified object fields
}

// A program that looks at the object between normalizing and validating has it parsed only once.
func ExampleSchema_ValidateResult() {
	schema, err := espalier.Compile([]byte(`{"type": "object", "properties": {"replicas": {"type": "integer", "maximum": 10, "default": 1}}}`), espalier.CompileOptions{})
	if err != nil {
		log.Fatal(err)
	}
	result, err := schema.Normalize([]byte(`{"replicas": 20, "unknown": true}`), espalier.NormalizeOptions{Keep: true})
	if err != nil {
		log.Fatal(err)
	}
	defer result.Release()
	fmt.Println(string(result.Bytes))
	validation, err := schema.ValidateResult(&result, espalier.ValidateOptions{})
	fmt.Println(validation.Err(), err)
	// Output:
	// {"replicas":20}
	// replicas: Invalid value: 20: replicas in body should be less than or equal to 10 <nil>
}

// Servers that do not know unions get them as oneOf.
func ExampleUnfoldUnions() {
	unfolded, err := espalier.UnfoldUnions([]byte(`{
	  "type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
	  "x-kubernetes-unions": [{"fields": {"a": "", "b": ""}}]
	}`))
	fmt.Println(strings.Contains(string(unfolded), `"oneOf"`), err)
	// Output:
	// true <nil>
}
