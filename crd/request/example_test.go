package request_test

import (
	"fmt"
	"log"

	"github.com/espalier-dev/espalier/crd"
	"github.com/espalier-dev/espalier/crd/request"
)

// A create as an API server carries it out: decode, set metadata, validate.
func ExampleNew() {
	webs, err := crd.Parse([]byte(`{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "webs.example.com"},
		"spec": {"group": "example.com", "scope": "Namespaced", "names": {"plural": "webs", "kind": "Web"}, "versions": [
			{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
				"type": "object", "properties": {"port": {"type": "integer", "minimum": 1}}}}}
		]}}`))
	if err != nil {
		log.Fatal(err)
	}
	schema, err := request.Compile(webs.Version("v1"), false)
	if err != nil {
		log.Fatal(err)
	}
	resource := request.New(webs, webs.Version("v1"))
	object, _, err := schema.Decode([]byte(`{"apiVersion": "example.com/v1", "kind": "Web", "metadata": {"name": "shop"}, "port": 0}`), nil, 0)
	if err != nil {
		log.Fatal(err)
	}
	resource.Create(object, "default")
	result, err := resource.Validate(schema, object, request.Options{})
	if err != nil {
		log.Fatal(err)
	}
	for _, p := range result.Problems {
		fmt.Println(p.Error)
	}
	// Output:
	// port: Invalid value: 0: port in body should be greater than or equal to 1
}

func ExampleKindOf() {
	fmt.Println(request.KindOf([]byte(`{"apiVersion": "example.com/v1", "kind": "Web", "spec": {}}`)))
	// Output:
	// example.com/v1, Kind=Web
}
