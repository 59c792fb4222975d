package infer_test

import (
	"fmt"
	"log"

	"github.com/espalier-dev/espalier/crd"
	"github.com/espalier-dev/espalier/crd/conversion/infer"
)

func ExamplePropose() {
	webs, err := crd.Parse([]byte(`{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "webs.example.com"},
		"spec": {"group": "example.com", "scope": "Namespaced", "names": {"plural": "webs", "kind": "Web"}, "versions": [
			{"name": "v1alpha1", "served": true, "storage": false, "schema": {"openAPIV3Schema": {
				"type": "object", "properties": {"spec": {"type": "object", "properties": {"hostName": {"type": "string", "description": "Where visitors find it."}}}}}}},
			{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
				"type": "object", "properties": {"spec": {"type": "object", "properties": {"host": {"type": "string", "description": "Where visitors find it."}}}}}}}
		]}}`))
	if err != nil {
		log.Fatal(err)
	}
	proposal, err := infer.Propose(nil, webs)
	if err != nil {
		log.Fatal(err)
	}
	for _, pair := range proposal.Pairs {
		fmt.Println(pair.From, "to", pair.To)
		for _, rule := range pair.Rules {
			fmt.Println(rule.Text)
		}
	}
	// Output:
	// v1alpha1 to v1
	// move: {from: spec.hostName, to: spec.host}
}
