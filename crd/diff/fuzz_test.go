package diff_test

import (
	"testing"

	"github.com/espalier-dev/espalier/crd/diff"
	"github.com/espalier-dev/espalier/finding"
)

// FuzzCompare compares what the fuzzer makes of CRDs: there are no panics, nothing differs from itself, and what
// is reported is in the table.
func FuzzCompare(f *testing.F) {
	schemas := []string{
		`{"type":"object"}`,
		spec(`"f":{"type":"integer","maximum":3},"g":{"type":"string","pattern":"^a+$","enum":["a"]}`),
		spec(`"f":{"type":"number","anyOf":[{"minimum":2.5},{"not":{"multipleOf":2}}],"nullable":true}`),
		spec(`"f":{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["a"],"items":{"type":"object","properties":{"a":{"type":"string"}}}}`),
		spec(`"f":{"x-kubernetes-int-or-string":true,"default":1},"g":{"type":"object","additionalProperties":{"type":"string"}}`),
		spec(`"f":{"type":"integer","x-kubernetes-validations":[{"rule":"self > 1 || self.all(x, has(x.y))"}]}`),
		spec(`"f":{"type":"object","x-kubernetes-embedded-resource":true,"x-kubernetes-preserve-unknown-fields":true,"allOf":[{"required":["a"]}]}`),
	}
	for i, a := range schemas {
		f.Add(crdWith(a), crdWith(schemas[(i+1)%len(schemas)]))
	}
	f.Add([]byte(`{"apiVersion":"apiextensions.k8s.io/v1beta1","kind":"CustomResourceDefinition","spec":{"version":"v1","validation":{"openAPIV3Schema":{"items":[{}],"additionalProperties":true}}}}`), crdWith(`null`))
	known := map[finding.ID]bool{}
	for _, r := range diff.Checks() {
		known[r.ID] = true
	}
	f.Fuzz(func(t *testing.T, old, now []byte) {
		changes, err := compare(old, now)
		if err != nil {
			return
		}
		for _, c := range changes {
			if !known[c.Check] || c.Message == "" {
				t.Errorf("%+v", c)
			}
		}
		for _, x := range [][]byte{old, now} {
			if same, err := compare(x, x); err != nil || len(same) > 0 {
				t.Errorf("differs from itself: %+v %v", same, err)
			}
		}
	})
}

// FuzzSchemas fuzzes the schemas alone, which get farther.
func FuzzSchemas(f *testing.F) {
	f.Add(spec(`"f":{"type":"integer","maximum":3}`), spec(`"f":{"type":"integer","allOf":[{"maximum":2}]}`))
	f.Add(spec(`"f":{"type":"string","pattern":"a|b"}`), spec(`"f":{"type":"string","pattern":"\\b(?i)A$","format":"date"}`))
	f.Add(spec(`"f":{"oneOf":[{},{"type":"string"}]}`), spec(`"f":{"anyOf":[{"not":{}},{"enum":[null,1,"a"]}]}`))
	f.Fuzz(func(t *testing.T, old, now string) {
		if _, err := compare(crdWith(old), crdWith(now)); err != nil {
			return
		}
		if same, err := compare(crdWith(now), crdWith(now)); err != nil || len(same) > 0 {
			t.Errorf("differs from itself: %+v %v", same, err)
		}
	})
}
