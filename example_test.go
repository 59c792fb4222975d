package espalier_test

import (
	"fmt"
	"log"

	"github.com/espalier-dev/espalier"
)

// The README shows the body of this function; internal/lint keeps them equal.
func Example() {
	schema, err := espalier.Compile([]byte(`{
	  "type": "object",
	  "properties": {
	    "spec": {
	      "type": "object",
	      "properties": {
	        "shell":    {"type": "string"},
	        "machines": {"type": "array", "items": {"type": "string"}},
	        "retries":  {"type": "integer", "default": 3}
	      }
	    }
	  }
	}`), espalier.CompileOptions{})
	if err != nil {
		log.Fatal(err)
	}

	var report espalier.Report
	result, err := schema.Normalize([]byte(`{
	  "apiVersion": "operations.example.com/v1",
	  "kind": "MaintenanceNightlyJob",
	  "metadata": {"name": "cleanup"},
	  "spec": {"shell": "make clean", "machines": ["az1"], "privileged": true}
	}`), espalier.NormalizeOptions{Report: &report})
	if err != nil {
		log.Fatal(err)
	}

	fmt.Println(string(result.Bytes))
	for _, c := range report.Changes {
		fmt.Println(c.What, c.Path)
	}
	// Output:
	// {"apiVersion":"operations.example.com/v1","kind":"MaintenanceNightlyJob","metadata":{"name":"cleanup"},"spec":{"machines":["az1"],"retries":3,"shell":"make clean"}}
	// pruned spec.privileged
	// defaulted spec.retries
}

// A schema that is not structural: the type of a field stands inside of a
// junctor, and the field is not specified outside.
func ExampleCheck() {
	findings, err := espalier.Check([]byte(`{
	  "type": "object",
	  "oneOf": [{"properties": {"shell": {"type": "string"}}}]
	}`), espalier.CheckOptions{Path: "spec.versions[0].schema.openAPIV3Schema"})
	if err != nil {
		log.Fatal(err)
	}

	for _, f := range findings {
		fmt.Println(f.Error())
	}
	// Output:
	// spec.versions[0].schema.openAPIV3Schema.oneOf[0].properties[shell].type: Forbidden: must be empty to be structural
	// spec.versions[0].schema.openAPIV3Schema.properties[shell]: Required value: because it is defined in spec.versions[0].schema.openAPIV3Schema.oneOf[0].properties[shell]
}

// Callers that hold a decoded object have it normalized in place.
func ExampleSchema_NormalizeValue() {
	schema, err := espalier.Compile([]byte(`{
	  "type": "object",
	  "properties": {"replicas": {"type": "integer", "default": 1}}
	}`), espalier.CompileOptions{})
	if err != nil {
		log.Fatal(err)
	}

	object := map[string]any{"replicas": nil, "unknown": true}
	changes, err := schema.NormalizeValue(object, espalier.NormalizeOptions{})
	if err != nil {
		log.Fatal(err)
	}

	fmt.Println(object, changes)
	// Output: map[replicas:1] pruned,defaulted
}
