package cel_test

import (
	"fmt"
	"log"

	"github.com/espalier-dev/espalier"
	"github.com/espalier-dev/espalier/crd/cel"
)

// The README shows the body of this function; internal/lint keeps them equal.
func Example() {
	schema, err := espalier.Compile([]byte(`{
	  "type": "object",
	  "properties": {
	    "spec": {
	      "type": "object",
	      "properties": {
	        "min":    {"type": "integer", "default": 1},
	        "max":    {"type": "integer"},
	        "policy": {"type": "string"}
	      },
	      "x-kubernetes-validations": [
	        {"rule": "self.min <= self.max", "fieldPath": ".max",
	         "messageExpression": "'max must be at least ' + string(self.min)"},
	        {"rule": "self.policy == oldSelf.policy", "reason": "FieldValueForbidden",
	         "message": "policy is immutable"}
	      ]
	    }
	  }
	}`), espalier.CompileOptions{})
	if err != nil {
		log.Fatal(err)
	}
	set, err := cel.Compile(schema)
	if err != nil {
		log.Fatal(err)
	}

	result, validation, err := schema.Admit([]byte(`{"spec": {"policy": "fast", "max": 0}}`), espalier.AdmitOptions{
		Validate: espalier.ValidateOptions{
			Old:   []byte(`{"spec":{"max":3,"min":1,"policy":"slow"}}`),
			Rules: set,
		},
	})
	if err != nil {
		log.Fatal(err)
	}

	fmt.Println(string(result.Bytes))
	for _, v := range validation.Errors {
		fmt.Println(v.Error())
	}
	// Output:
	// {"spec":{"max":0,"min":1,"policy":"fast"}}
	// spec.max: Invalid value: max must be at least 1
	// spec: Forbidden: policy is immutable
}

// What is wrong with the rules of a schema, and where in it.
func ExampleCheck() {
	schema := []byte(`{
  "type": "object",
  "properties": {"names": {"type": "array", "items": {"type": "string"}}},
  "x-kubernetes-validations": [{"rule": "self.names.all(n, n.size() < self.limit)"}]
}`)
	findings, err := cel.Check(schema, cel.CheckOptions{Path: "spec.versions[0].schema.openAPIV3Schema"})
	if err != nil {
		log.Fatal(err)
	}

	for _, f := range findings {
		fmt.Println(f.Check, f.Pointer)
		fmt.Printf("%s\n", schema[f.Offset:f.Offset+6])
	}
	// Output:
	// rule-expression /x-kubernetes-validations/0/rule
	// .limit
}

// What a rule may cost, and which bound would make it cheap.
func ExampleCosts() {
	costs, err := cel.Costs([]byte(`{
	  "type": "object",
	  "properties": {"names": {"type": "array", "items": {"type": "string"}}},
	  "x-kubernetes-validations": [{"rule": "self.names.all(n, self.names.exists_one(m, m == n))"}]
	}`), cel.CheckOptions{})
	if err != nil {
		log.Fatal(err)
	}

	for _, c := range costs {
		fmt.Println(c.Path, "is too expensive:", c.Total > cel.MaxRuleCost)
		for _, b := range c.Bounds {
			fmt.Printf("add %s: %d to %s\n", b.Keyword, b.Value, b.Path)
		}
	}
	// Output:
	// x-kubernetes-validations[0].rule is too expensive: true
	// add maxItems: 256 to properties[names]
	// add maxLength: 253 to properties[names].items
}
