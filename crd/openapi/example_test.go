package openapi_test

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/espalier-dev/espalier/crd"
	"github.com/espalier-dev/espalier/crd/openapi"
)

func ExampleJSONSchema() {
	parsed, err := crd.Parse([]byte(`{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "webs.example.com"},
		"spec": {"group": "example.com", "scope": "Cluster", "names": {"plural": "webs", "kind": "Web"},
			"versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
				"type": "object", "properties": {"port": {"type": "integer", "minimum": 0, "exclusiveMinimum": true, "nullable": true}}
			}}}]}}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	schema, err := openapi.JSONSchema(parsed, parsed.Version("v1"), openapi.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	var published struct {
		Title      string
		Properties struct{ Port json.RawMessage }
	}
	if err := json.Unmarshal(schema, &published); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(published.Title, strings.Join(strings.Fields(string(published.Properties.Port)), " "))
	// Output:
	// Web (example.com/v1) { "type": ["integer", "null"], "exclusiveMinimum": 0 }
}
