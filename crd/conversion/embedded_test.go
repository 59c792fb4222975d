package conversion_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/crd/conversion"
)

// twoTemplates is a CRD whose versions have different schemas for the same field.
const twoTemplates = `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"jobs.example.com",
"annotations":{%q:"conversions: [{between: [v1, v2], preserve: %s}]"}},
"spec":{"group":"example.com","scope":"Namespaced","names":{"plural":"jobs","singular":"job","kind":"Job","listKind":"JobList"},"versions":[
{"name":"v1","served":true,"storage":false,"schema":{"openAPIV3Schema":{"type":"object","properties":{"template":%s}}}},
{"name":"v2","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object","properties":{"template":%s}}}}]}}`

// TestEmbeddedResources: an embedded resource is converted as a whole, which loses nothing only if both versions keep the
// same fields of it.
func TestEmbeddedResources(t *testing.T) {
	const (
		keeps  = `{"type":"object","x-kubernetes-embedded-resource":true,"x-kubernetes-preserve-unknown-fields":true}`
		prunes = `{"type":"object","x-kubernetes-embedded-resource":true,"properties":{"spec":{"type":"object","properties":{"a":{"type":"string"}}}}}`
		other  = `{"type":"object","x-kubernetes-embedded-resource":true,"properties":{"spec":{"type":"object","properties":{"b":{"type":"string"}}}}}`
		scalar = `{"x-kubernetes-int-or-string":true}`
		wide   = `{"x-kubernetes-int-or-string":true,"x-kubernetes-preserve-unknown-fields":true}`
	)
	const object = `{"apiVersion":"example.com/v1","kind":"Job","metadata":{"name":"x"},"template":{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"},"spec":{"a":"1"}}}`
	for _, c := range []struct {
		name, old, now string
		undecided      bool
	}{
		{"the same", prunes, prunes, false},
		{"only one keeps unknown fields", keeps, prunes, true},
		{"the other keeps unknown fields", prunes, keeps, true},
		{"other fields", prunes, other, true},
		{"not embedded", prunes, strings.Replace(prunes, `"x-kubernetes-embedded-resource":true,`, "", 1), true},
		{"integers and strings", scalar, wide, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, found, err := conversion.Compile(parse(t, fmt.Sprintf(twoTemplates, conversion.Annotation, "{}", c.old, c.now)))
			if err != nil {
				t.Fatal(err)
			}
			if undecided := len(found) > 0 && strings.Contains(found[0].Detail, "template of v1 is not converted to v2, preserved or declared lost"); undecided != c.undecided || !c.undecided && len(found) > 0 {
				t.Fatalf("got %v", found)
			}
			p, found, err := conversion.Compile(parse(t, fmt.Sprintf(twoTemplates, conversion.Annotation, "everything", c.old, c.now)))
			if err != nil || len(found) > 0 {
				t.Fatal(found, err)
			}
			in := object
			if strings.Contains(c.old, "int-or-string") {
				in = `{"apiVersion":"example.com/v1","kind":"Job","metadata":{"name":"x"},"template":7}`
			}
			there := convert(t, p, in, "v2")
			if copied := !strings.Contains(there, conversion.Preserved); copied == c.undecided {
				t.Errorf("got %s", there)
			}
			if back := convert(t, p, there, "v1"); back != in {
				t.Errorf("got %s", back)
			}
		})
	}
}
