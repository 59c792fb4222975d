package espalier_test

import (
	"errors"
	"fmt"
	"log"

	"github.com/espalier-dev/espalier"
)

// The README shows this function; internal/lint keeps them equal.
func admit(openAPIV3Schema, object []byte) ([]byte, error) {
	schema, err := espalier.Compile(openAPIV3Schema, espalier.CompileOptions{})
	if err != nil {
		return nil, err
	}
	result, validation, err := schema.Admit(object, espalier.AdmitOptions{}) // prune, default, validate
	return result.Bytes, errors.Join(err, validation.Err())
}

func ExampleSchema_Admit() {
	schema := []byte(`{"type":"object","properties":{"spec":{"type":"object","properties":{"replicas":{"type":"integer","default":3}}}}}`)
	stored, err := admit(schema, []byte(`{"spec":{"colour":"red"}}`))
	fmt.Println(string(stored), err)
	_, err = admit(schema, []byte(`{"spec":{"replicas":"three"}}`))
	fmt.Println(err)
	// Output:
	// {"spec":{"replicas":3}} <nil>
	// spec.replicas: Invalid value: "string": spec.replicas in body must be of type integer: "string"
}

func Example() {
	schema, err := espalier.Compile([]byte(`{
	  "type": "object",
	  "properties": {
	    "spec": {
	      "type": "object",
	      "required": ["shell"],
	      "properties": {
	        "shell":    {"type": "string", "maxLength": 20},
	        "machines": {"type": "array", "items": {"type": "string", "pattern": "^az[0-9]+$"}},
	        "retries":  {"type": "integer", "default": 3}
	      }
	    }
	  }
	}`), espalier.CompileOptions{})
	if err != nil {
		log.Fatal(err)
	}

	var report espalier.Report
	result, validation, err := schema.Admit([]byte(`{
	  "apiVersion": "operations.example.com/v1",
	  "kind": "MaintenanceNightlyJob",
	  "metadata": {"name": "cleanup"},
	  "spec": {"shell": "make clean", "machines": ["az1", "moon"], "privileged": true}
	}`), espalier.AdmitOptions{Report: &report})
	if err != nil {
		log.Fatal(err)
	}

	fmt.Println(string(result.Bytes))
	for _, c := range report.Changes {
		fmt.Println(c.What, c.Path)
	}
	for _, v := range validation.Errors {
		fmt.Println(v.Error())
	}
	// Output:
	// {"apiVersion":"operations.example.com/v1","kind":"MaintenanceNightlyJob","metadata":{"name":"cleanup"},"spec":{"machines":["az1","moon"],"retries":3,"shell":"make clean"}}
	// pruned spec.privileged
	// defaulted spec.retries
	// spec.machines[1]: Invalid value: "moon": spec.machines[1] in body should match '^az[0-9]+$'
}

// A schema that is not structural: the type of a field stands inside a
// logical keyword, and the field is not specified outside.
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

// What an object becomes: pruned, without nulls that may not be, with defaults.
func ExampleSchema_Normalize() {
	schema, err := espalier.Compile([]byte(`{
	  "type": "object",
	  "properties": {"replicas": {"type": "integer", "default": 1}}
	}`), espalier.CompileOptions{})
	if err != nil {
		log.Fatal(err)
	}

	result, err := schema.Normalize([]byte(`{"replicas": null, "replica": 3}`), espalier.NormalizeOptions{})
	if err != nil {
		log.Fatal(err)
	}

	fmt.Println(string(result.Bytes), result.Changes)
	// Output: {"replicas":1} pruned,defaulted
}

// An update is ratcheted: the name was too long before and has not changed, so it
// is no error; the port is new, and is one.
func ExampleSchema_Validate() {
	schema, err := espalier.Compile([]byte(`{
	  "type": "object",
	  "properties": {
	    "name": {"type": "string", "maxLength": 3},
	    "port": {"type": "integer", "maximum": 65535}
	  }
	}`), espalier.CompileOptions{})
	if err != nil {
		log.Fatal(err)
	}

	validation, err := schema.Validate([]byte(`{"name":"long","port":70000}`), espalier.ValidateOptions{
		Old: []byte(`{"name":"long"}`),
	})
	if err != nil {
		log.Fatal(err)
	}

	for _, v := range validation.Errors {
		fmt.Println(v.Error())
	}
	// Output: port: Invalid value: 70000: port in body should be less than or equal to 65535
}

// An error from a logical keyword tells which branches were tried and why each failed.
func ExampleViolation() {
	schema, err := espalier.Compile([]byte(`{
	  "type": "object",
	  "properties": {
	    "source": {
	      "type": "object",
	      "properties": {"url": {"type": "string"}, "path": {"type": "string"}},
	      "oneOf": [{"required": ["url"]}, {"required": ["path"], "properties": {"path": {"pattern": "^/"}}}]
	    }
	  }
	}`), espalier.CompileOptions{})
	if err != nil {
		log.Fatal(err)
	}

	validation, err := schema.Validate([]byte(`{"source":{"path":"home"}}`), espalier.ValidateOptions{})
	if err != nil {
		log.Fatal(err)
	}

	for i, branch := range validation.Errors[0].Branches {
		for _, v := range branch {
			fmt.Printf("branch %d: %s\n", i, v.Error())
		}
	}
	// Output:
	// branch 0: source.url: Required value
	// branch 1: source.path: Invalid value: "home": source.path in body should match '^/'
}
