package crd_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/crd"
)

// withField is tree with another field.
func withField(schema string) string { return edited(`"age":`, `"f":`+schema+`,"age":`) }

// Servers tolerate an error in an update if the old CRD had one of the same sort, anywhere.
// The case names the errors of the new field in a CRD that is created, and those in an
// update after the old field.
func TestRatchet(t *testing.T) {
	const (
		list      = `{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["k"],"items":{"type":"object",%s}}`
		set       = `{"type":"array","x-kubernetes-list-type":"set","items":%s}`
		keyAbsent = `"properties":{"k":{"type":"string"}}`
		keyNull   = `"properties":{"k":{"type":"string","nullable":true}},"required":["k"]`
		keyOf     = `"properties":{"k":{"type":"string"}},"required":["k"]`
		keyOther  = `"properties":{"k":{"type":"string","default":"x"}}`
	)
	in := func(frame, part string) string { return fmt.Sprintf(frame, part) }
	optional, nullable, atomic := in(list, keyAbsent), in(list, keyNull), in(set, `{"type":"object"}`)
	for _, c := range []struct{ name, old, now, created, updated string }{
		{"key was optional", optional, optional, "list-map-key-optional", ""},
		{"key was optional, is nullable", optional, nullable, "list-map-key-nullable", ""},
		{"key was nullable", nullable, optional, "list-map-key-optional", ""},
		{"key was required", in(list, keyOf), optional, "list-map-key-optional", "list-map-key-optional"},
		// A key with a default is never absent: it was no error.
		{"key had a default", in(list, keyOther), optional, "list-map-key-optional", "list-map-key-optional"},
		{"key had a default, and is nullable", in(list, keyOther), nullable, "list-map-key-nullable", "list-map-key-nullable"},
		{"key was both", in(list, `"properties":{"k":{"type":"string","default":"x","nullable":true}}`), optional, "list-map-key-optional", ""},
		{"items of a set were nullable", in(set, `{"type":"string","nullable":true}`), optional, "list-map-key-optional", ""},
		{"items of a map were nullable", in(list, keyOf+`,"nullable":true`), optional, "list-map-key-optional", ""},
		{"items of an atomic list were nullable", `{"type":"array","x-kubernetes-list-type":"atomic","items":{"type":"string","nullable":true}}`, optional, "list-map-key-optional", "list-map-key-optional"},
		{"items of a list were nullable", `{"type":"array","items":{"type":"string","nullable":true}}`, optional, "list-map-key-optional", "list-map-key-optional"},
		{"items of a set were not", in(set, `{"type":"string"}`), optional, "list-map-key-optional", "list-map-key-optional"},

		{"set of granular objects", atomic, in(set, `{"type":"object","x-kubernetes-map-type":"granular"}`), "list-set-atomic list-set-objects", ""},
		{"set of atomic objects", in(set, `{"type":"object","x-kubernetes-map-type":"atomic"}`), atomic, "list-set-atomic list-set-objects", "list-set-atomic"},
		{"set of granular objects before", in(set, `{"type":"object","x-kubernetes-map-type":"granular"}`), atomic, "list-set-atomic list-set-objects", ""},
		{"set of sets", in(set, in(set, `{"type":"string"}`)), atomic, "list-set-atomic list-set-objects", "list-set-objects"},
		{"set of atomic lists", in(set, `{"type":"array","x-kubernetes-list-type":"atomic","items":{"type":"string"}}`), atomic, "list-set-atomic list-set-objects", "list-set-atomic list-set-objects"},
		{"set of lists", in(set, `{"type":"array","items":{"type":"string"}}`), atomic, "list-set-atomic list-set-objects", "list-set-atomic list-set-objects"},
		{"set of strings", in(set, `{"type":"string"}`), atomic, "list-set-atomic list-set-objects", "list-set-atomic list-set-objects"},
		{"map of objects", in(list, keyOf), atomic, "list-set-atomic list-set-objects", "list-set-atomic list-set-objects"},
		{"set of nothing", `{"type":"array","x-kubernetes-list-type":"set"}`, atomic, "list-set-atomic list-set-objects", "list-set-atomic list-set-objects"},
		{"map of nothing", `{"type":"array","x-kubernetes-list-type":"map"}`, optional, "list-map-key-optional", "list-map-key-optional"},
		{"not a list", `{"type":"object"}`, atomic, "list-set-atomic list-set-objects", "list-set-atomic list-set-objects"},
	} {
		if got := checksOf(t, withField(c.now), ""); got != c.created {
			t.Errorf("%s: created: %q, not %q", c.name, got, c.created)
		}
		if got := checksOf(t, withField(c.now), withField(c.old)); got != c.updated {
			t.Errorf("%s: updated: %q, not %q", c.name, got, c.updated)
		}
	}
	// What the old CRD had may be below any keyword that holds schemas.
	for _, frame := range []string{
		`{"type":"object","properties":{"x":%s}}`, `{"type":"object","additionalProperties":%s}`, `{"type":"array","items":%s}`, `{"type":"array","items":[%s]}`,
		`{"type":"object","allOf":[%s]}`, `{"type":"object","anyOf":[%s]}`, `{"type":"object","oneOf":[%s]}`, `{"type":"object","not":%s}`,
		`{"type":"object","patternProperties":{"x":%s}}`, `{"type":"array","additionalItems":%s}`, `{"type":"object","definitions":{"x":%s}}`, `{"type":"object","dependencies":{"x":%s}}`,
	} {
		if got := checksOf(t, withField(optional), withField(in(frame, optional))); got != "" {
			t.Errorf("after %s: %s", frame, got)
		}
	}
}

// checksOf lists the checks that fail, for a CRD that is created, or updated from old.
func checksOf(t *testing.T, doc, old string) string {
	t.Helper()
	var before [][]byte
	if old != "" {
		before = append(before, []byte(old))
	}
	found, err := validate([]byte(doc), crd.ValidateOptions{}, before...)
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, f := range found {
		list = append(list, string(f.Check))
	}
	slices.Sort(list)
	return strings.Join(slices.Compact(list), " ")
}
