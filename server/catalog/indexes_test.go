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
{"name":"v2","schema":{"openAPIV3Schema":{"type":"object","properties":{"metadata":{"type":"object","properties":{"names":{"type":"array","maxItems":1,"items":{"type":"string"}}}},
"tags":{"type":"array","maxItems":64,"items":{"type":"string"}},"spec":{"type":"object","properties":{"ports":{"type":"array","maxItems":3,"items":{"type":"integer"}},
"many":{"type":"array","maxItems":65,"items":{"type":"string"}},"any":{"type":"array","items":{"type":"string"}},"objects":{"type":"array","maxItems":3,"items":{"type":"object"}},"text":{"type":"string","maxItems":3}}}}}},"selectableFields":[{"jsonPath":".spec.target"}],"served":true,"storage":false}]}}`
	for declared, want := range map[string]any{
		"label:team":                             []Index{{Label: "team"}},
		" field:spec.to ,label:example.com/team": []Index{{Field: "spec.to"}, {Label: "example.com/team"}},
		"field:spec.target":                      []Index{{Field: "spec.target"}},
		"field:tags[], field:spec.ports[]":       []Index{{Field: "tags[]"}, {Field: "spec.ports[]"}},
		"field:spec.none[]":                      `"spec.none[]" is not an array that can be indexed: the schema has no property "none"`,
		"field:spec.many[]":                      `"spec.many[]" is not an array that can be indexed: its schema must have maxItems, at most 64`,
		"field:spec.any[]":                       `"spec.any[]" is not an array that can be indexed: its schema must have maxItems`,
		"field:spec.objects[]":                   `"spec.objects[]" is not an array that can be indexed: its type must be array, with items of type string`,
		"field:spec.text[]":                      `"spec.text[]" is not an array that can be indexed: its type must be array`,
		"field:spec.ports":                       `"spec.ports" is not a selectable field`,
		"field:metadata.names[]":                 `"metadata.names[]" is not an array that can be indexed: write the names of members`,
		"field:[]":                               `"[]" is not an array that can be indexed: write the names of members`,
		"field:.tags[]":                          `".tags[]" is not an array that can be indexed: write the names of members`,
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
