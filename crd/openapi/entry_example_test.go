package openapi_test

import (
	"encoding/json"
	"fmt"
	"log"
	"maps"
	"slices"

	"github.com/espalier-dev/espalier/crd"
	"github.com/espalier-dev/espalier/crd/openapi"
)

func parseWebs() *crd.CRD {
	parsed, err := crd.Parse([]byte(`{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "webs.example.com"},
		"spec": {"group": "example.com", "scope": "Cluster", "names": {"plural": "webs", "kind": "Web"},
			"versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
				"type": "object", "properties": {"port": {"type": "integer"}}
			}}}]}}`))
	if err != nil {
		log.Fatal(err)
	}
	return parsed
}

func ExampleDocument() {
	parsed := parseWebs()
	text, err := openapi.Document(parsed, parsed.Version("v1"))
	if err != nil {
		log.Fatal(err)
	}
	var document struct {
		Components struct{ Schemas map[string]any }
	}
	if err := json.Unmarshal(text, &document); err != nil {
		log.Fatal(err)
	}
	for _, name := range slices.Sorted(maps.Keys(document.Components.Schemas))[:2] {
		fmt.Println(name)
	}
	// Output:
	// com.example.v1.Web
	// com.example.v1.WebList
}

// One JSON Schema for an editor, for objects of all CRDs.
func ExampleCatalog() {
	catalog, err := openapi.Catalog([]*crd.CRD{parseWebs()}, openapi.Options{})
	fmt.Println(json.Valid(catalog), err)
	// Output:
	// true <nil>
}

func ExampleModelName() {
	fmt.Println(openapi.ModelName("stable.example.com", "v1", "CronTab"))
	// Output:
	// com.example.stable.v1.CronTab
}
