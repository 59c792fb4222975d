package lint_test

import (
	"fmt"

	"github.com/espalier-dev/espalier/crd"
	"github.com/espalier-dev/espalier/crd/lint"
)

func ExampleCheck() {
	d, err := crd.Parse([]byte(`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","spec":{"versions":[
		{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object","properties":{"spec":{"type":"object",
			"properties":{"min":{"type":"integer"},"max":{"type":"integer","default":9}},
			"x-kubernetes-validations":[{"rule":"self.min <= self.max"}]}}}}}]}}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	findings, err := lint.Check(d, lint.Options{})
	for _, f := range findings {
		fmt.Println(f.Severity, f.Check)
		fmt.Println(f.Detail)
		fmt.Println(f.Fix)
	}
	fmt.Println(err)
	// Output:
	// warning rule-unguarded-optional
	// self.min is optional, and the CEL rule does not test for presence: for objects without the field, the rule fails with the error no such key: min
	// # Objects without self.min are accepted. Today the rule fails, and the API server refuses them. To refuse them still, require the field.
	// rule: '!has(self.min) || self.min <= self.max'
	// <nil>
}
