package catalog

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/crd"
)

func TestIndexes(t *testing.T) {
	t.Parallel()
	const text = `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"annotations":{%s},"name":"parcels.example.com"},
"spec":{"group":"example.com","names":{"kind":"Parcel","plural":"parcels"},"scope":"Namespaced","versions":[
{"name":"v1","schema":{"openAPIV3Schema":{"type":"object"}},"selectableFields":[{"jsonPath":".spec.to"}],"served":true,"storage":true},
{"name":"v2","schema":{"openAPIV3Schema":{"type":"object"}},"selectableFields":[{"jsonPath":".spec.target"}],"served":true,"storage":false}]}}`
	for declared, want := range map[string]any{
		"label:team":                             []Index{{Label: "team"}},
		" field:spec.to ,label:example.com/team": []Index{{Field: "spec.to"}, {Label: "example.com/team"}},
		"field:spec.target":                      []Index{{Field: "spec.target"}},
		"":                                       `"" must be label:KEY or field:PATH`,
		"team":                                   `"team" must be label:KEY or field:PATH`,
		"label:team,":                            `"" must be label:KEY or field:PATH`,
		"label:":                                 `"" is not the key of a label: name part must be non-empty`,
		"label:a b":                              `"a b" is not the key of a label: `,
		"field:spec.other":                       `"spec.other" is not a selectable field: add jsonPath ".spec.other" to selectableFields of a version`,
		"field:.spec.to":                         `".spec.to" is not a selectable field`,
		"label:a, label:a":                       `"label:a" is declared twice`,
		"label:a,label:b,label:c,label:d,label:e,label:f,label:g,label:h,label:i": "a CRD must have at most 8 indexes",
	} {
		d, err := crd.Parse(fmt.Appendf(nil, text, fmt.Sprintf("%q:%q", IndexesAnnotation, declared)))
		if err != nil {
			t.Fatal(err)
		}
		got, err := Indexes(d)
		d.Release()
		if list, ok := want.([]Index); ok {
			if err != nil || !slices.Equal(got, list) {
				t.Errorf("%q: %v, %v", declared, got, err)
			}
		} else if err == nil || !strings.HasPrefix(err.Error(), want.(string)) {
			t.Errorf("%q: %v, want %v", declared, err, want)
		}
	}
	d, err := crd.Parse(fmt.Appendf(nil, text, ""))
	if err != nil {
		t.Fatal(err)
	}
	defer d.Release()
	if got, err := Indexes(d); got != nil || err != nil {
		t.Errorf("a CRD without the annotation: %v, %v", got, err)
	}
}
