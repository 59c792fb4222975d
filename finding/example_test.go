package finding_test

import (
	"fmt"

	"github.com/espalier-dev/espalier/finding"
)

func ExampleField() {
	fmt.Println(finding.Field("/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/hosts/items/maxLength"))
	// Output:
	// spec.hosts[] maxLength
}

func ExampleErrors() {
	all := []finding.Finding{
		{Check: "type-unknown", Severity: finding.Error},
		{Check: "pattern-unanchored", Severity: finding.Warning},
	}
	for _, f := range finding.Errors(all) {
		fmt.Println(f.Severity, f.Check)
	}
	// Output:
	// error type-unknown
}

func ExampleParseSeverity() {
	severity, err := finding.ParseSeverity("warning")
	fmt.Println(severity, err)
	// Output:
	// warning <nil>
}
