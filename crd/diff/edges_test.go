package diff_test

import (
	"strings"
	"testing"
)

// What branches of logical keywords say, compared with what was said outside them.
func TestBranchesAtTheirEdges(t *testing.T) {
	const nullable = `"type":"object","properties":{"a":{"type":"string","nullable":true,"minLength":3}}`
	for _, c := range []struct{ name, old, now, broken, want, pointer string }{
		// Inside a branch, whose schema has no type, API servers take the factor for an integer.
		{"a multiple moves into a branch", `"type":"number","multipleOf":0.5`, `"type":"number","allOf":[{"multipleOf":0.5}]`, "1", "breaking WS multiple-of-changed 0.5 → 0.5", "/allOf/0/multipleOf"},
		{"the only branch", `"type":"string"`, `"type":"string","anyOf":[{"maxLength":5}]`, `"abcdef"`, "breaking WS max-length-lowered → 5", "/anyOf/0/maxLength"},
		{"a branch that accepts null", nullable, nullable + `,"anyOf":[{"properties":{"a":{"minLength":2}}},{"required":["b"]}]`, "", "", ""},
	} {
		old, now := crdWith(spec(`"f":{`+c.old+`}`)), crdWith(spec(`"f":{`+c.now+`}`))
		changes, err := compare(old, now)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, x := range changes {
			got = append(got, shown(x))
			if !strings.HasSuffix(x.NewPointer, "/properties/f"+c.pointer) {
				t.Errorf("%s: %s", c.name, x.NewPointer)
			}
		}
		if strings.Join(got, "; ") != c.want {
			t.Errorf("%s: %q", c.name, got)
		}
		checkBroken(t, old, now, c.broken, changes)
	}
}
