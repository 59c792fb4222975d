package impact_test

import (
	"context"
	"fmt"
	"log"
	"strings"

	"github.com/espalier-dev/espalier/crd"
	"github.com/espalier-dev/espalier/crd/impact"
)

// What a change of a CRD does to the objects that are stored.
func ExampleNew() {
	const text = `{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "webs.example.com"},
		"spec": {"group": "example.com", "scope": "Namespaced", "names": {"plural": "webs", "kind": "Web"}, "versions": [
			{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
				"type": "object", "properties": {"spec": {"type": "object", "properties": {"host": {"type": "string"}, "color": {"type": "string"}}}}}}}
		]}}`
	old, err := crd.Parse([]byte(text))
	if err != nil {
		log.Fatal(err)
	}
	now, err := crd.Parse([]byte(strings.Replace(text, `, "color": {"type": "string"}`, "", 1)))
	if err != nil {
		log.Fatal(err)
	}
	change, err := impact.New(old, now, impact.Options{})
	if err != nil {
		log.Fatal(err)
	}
	outcomes, err := change.Page(context.Background(), [][]byte{
		[]byte(`{"apiVersion": "example.com/v1", "kind": "Web", "metadata": {"namespace": "default", "name": "shop"}, "spec": {"color": "red"}}`),
		[]byte(`{"apiVersion": "example.com/v1", "kind": "Web", "metadata": {"namespace": "default", "name": "blog"}, "spec": {"host": "example.com"}}`),
	})
	if err != nil {
		log.Fatal(err)
	}
	for _, o := range outcomes {
		fmt.Println(o.Path(), o.Effects, o.Lost)
	}
	// Output:
	// default/shop LosesFields [spec.color]
	// default/blog  []
}
