package crd_test

import (
	"strings"
	"testing"

	"github.com/espalier-dev/espalier"
	"github.com/espalier-dev/espalier/crd"
	"github.com/espalier-dev/espalier/finding"
)

// undecodable is a CRD with values that no server can decode, in all parts, and with other errors.
const undecodable = `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"as.example.com","labels":{"a":1}},
"spec":{"group":"example.com","names":{"plural":"as","kind":"A","shortNames":"a"},"scope":"Everywhere","versions":[
{"name":"v1","served":"yes","storage":true,"schema":{"openAPIV3Schema":{"type":"object","properties":{
"b":{"type":"integer","exclusiveMinimum":5},"c":{"type":"strin"},"d":{"type":"string","maxLenght":3,"maxLength":"3"}}}}}]}}`

func TestUndecodable(t *testing.T) {
	d, err := crd.Parse([]byte(undecodable))
	if err != nil {
		t.Fatal(err)
	}
	defer d.Release()
	if found, err := crd.Validate(d, crd.ValidateOptions{}); err == nil || found != nil {
		t.Errorf("a server decodes it: %v", found)
	}
	var places []string
	found, err := crd.Validate(d, crd.ValidateOptions{Undecodable: func(e *espalier.SyntaxError) {
		places = append(places, e.Pointer)
		if rest := undecodable[e.Offset:]; e.Pointer == "/metadata/labels/a" && !strings.HasPrefix(rest, "1}") {
			t.Errorf("%s is at %.10q", e.Pointer, rest)
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	const schema = "/spec/versions/0/schema/openAPIV3Schema/properties/"
	want := "/metadata/labels/a /spec/names/shortNames /spec/versions/0/served " + schema + "b/exclusiveMinimum " + schema + "d/maxLength"
	if got := strings.Join(places, " "); got != want {
		t.Errorf("undecodable:\n%s\nwant\n%s", got, want)
	}
	for _, check := range []finding.ID{"scope-unknown", "type-unknown", "unknown-keyword"} {
		n := 0
		for _, f := range found {
			if f.Check == check {
				n++
			}
		}
		if n != 1 {
			t.Errorf("%s is found %d times in %v", check, n, found)
		}
	}
}
