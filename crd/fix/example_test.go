package fix_test

import (
	"fmt"

	"github.com/espalier-dev/espalier/crd/fix"
)

func ExampleCRD() {
	result, err := fix.CRD([]byte(`{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "webs.example.com"},
		"spec": {"group": "example.com", "scope": "Namespaced", "names": {"plural": "webs", "kind": "Web"},
			"versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
				"type": "object", "properties": {"port": {"anyOf": [{"type": "string"}, {"type": "integer"}]}}
			}}}]}}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, e := range result.Edits {
		fmt.Println(e.Check, e.Pointer)
		fmt.Println(string(e.Value))
	}
	fmt.Println(len(result.Notes), "notes")
	// Output:
	// junctor-type /spec/versions/0/schema/openAPIV3Schema/properties/port/anyOf
	// [{"type":"integer"},{"type":"string"}]
	// type-required /spec/versions/0/schema/openAPIV3Schema/properties/port/x-kubernetes-int-or-string
	// true
	// 0 notes
}
