package trial_test

import (
	"context"
	"fmt"
	"log"

	"github.com/espalier-dev/espalier/crd"
	"github.com/espalier-dev/espalier/crd/conversion"
	"github.com/espalier-dev/espalier/crd/conversion/infer"
	"github.com/espalier-dev/espalier/crd/conversion/trial"
)

// Rules are tested with random objects and edits before they convert real ones.
func ExampleNew() {
	webs, err := crd.Parse([]byte(`{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "webs.example.com"},
		"spec": {"group": "example.com", "scope": "Namespaced", "names": {"plural": "webs", "kind": "Web"}, "versions": [
			{"name": "v1alpha1", "served": true, "storage": false, "schema": {"openAPIV3Schema": {
				"type": "object", "properties": {"spec": {"type": "object", "properties": {"hostName": {"type": "string"}}}}}}},
			{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
				"type": "object", "properties": {"spec": {"type": "object", "properties": {"host": {"type": "string"}}}}}}}
		]}}`))
	if err != nil {
		log.Fatal(err)
	}
	proposal, err := infer.Propose(nil, webs)
	if err != nil {
		log.Fatal(err)
	}
	plan, _, err := conversion.Compile(proposal.CRD)
	if err != nil {
		log.Fatal(err)
	}
	t, err := trial.New(proposal.CRD, plan)
	if err != nil {
		log.Fatal(err)
	}
	result := t.Run(context.Background(), trial.Options{Objects: 10, Violations: 1})
	fmt.Println(result.Objects, "objects,", len(result.Violations), "violations")
	// Output:
	// 20 objects, 0 violations
}
