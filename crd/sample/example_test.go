package sample_test

import (
	"fmt"
	"log"
	"math/rand/v2"

	"github.com/espalier-dev/espalier/crd"
	"github.com/espalier-dev/espalier/crd/sample"
)

// The same seed gives the same objects.
func ExampleNew() {
	webs, err := crd.Parse([]byte(`{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "webs.example.com"},
		"spec": {"group": "example.com", "scope": "Namespaced", "names": {"plural": "webs", "kind": "Web"}, "versions": [
			{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
				"type": "object", "required": ["host"], "properties": {"host": {"type": "string", "enum": ["example.com"]}}}}}
		]}}`))
	if err != nil {
		log.Fatal(err)
	}
	generator, err := sample.New(webs, webs.Version("v1"), sample.Options{Size: 5})
	if err != nil {
		log.Fatal(err)
	}
	object := generator.Object(rand.New(rand.NewPCG(1, 2)))
	fmt.Println(object["kind"], object["host"])
	// Output:
	// Web example.com
}

func ExampleApply() {
	object := map[string]any{"spec": map[string]any{"port": int64(80)}}
	fmt.Println(sample.Apply(object, sample.Edit{Op: sample.Set, Path: []any{"spec", "port"}, Value: int64(443)}))
	// Output:
	// map[spec:map[port:443]]
}
