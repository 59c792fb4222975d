package crd_test

import (
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/crd"
)

// An update may bring defaults with unknown fields if the CRD had one that pruning
// changes before: here the metadata of the outer resource drops what is a resource
// within it.
func TestUnprunedDefaultWithinMetadata(t *testing.T) {
	const frame = `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"webs.example.org"},"spec":{"group":"example.org",
		"scope":"Namespaced","names":{"plural":"webs","kind":"Web"},"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object","properties":{%s}}}}]}}`
	const unknown = `"a":{"type":"object","default":{"b":1}}`
	const within = `"e":{"type":"object","x-kubernetes-embedded-resource":true,"properties":{"metadata":{"type":"object","properties":{
		"finalizers":{"type":"object","x-kubernetes-embedded-resource":true,"properties":{"metadata":{"type":"object","properties":{"name":{"type":"string","default":"n"}}}}}}}}}`
	for old, refused := range map[string]bool{within: false, `"e":{"type":"string"}`: true} {
		found, err := validate([]byte(strings.Replace(frame, "%s", unknown, 1)), crd.ValidateOptions{}, []byte(strings.Replace(frame, "%s", old, 1)))
		if err != nil {
			t.Fatal(err)
		}
		got := false
		for _, f := range found {
			got = got || strings.Contains(f.Detail, "must not have unknown fields")
		}
		if got != refused {
			t.Errorf("after %.60s: refused %t", old, got)
		}
	}
}
