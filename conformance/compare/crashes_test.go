package compare

import (
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/conformance/oracle"
)

// Only a crash of the reference that DIVERGENCES.md describes ends a comparison.
func TestCrashes(t *testing.T) {
	const rule = `"x-kubernetes-validations":[{"rule":"true"}]`
	for _, below := range []string{
		`"properties":{"b":{"type":"string",` + rule + `}}`,
		`"additionalProperties":{"type":"string",` + rule + `}`,
		`"items":{"type":"string",` + rule + `}`,
	} {
		schema := []byte(`{"type":"object",` + rule + `,"properties":{"a":{"type":"string","items":{"type":"object",` + below + `}}}}`)
		d, theirs := Schema(schema, false)
		if got := crashRow(theirs.Panic); got != "reference-crash" {
			t.Errorf("%s: %s: row %q", below, theirs, got)
		}
		if d != nil {
			t.Errorf("%s: a described crash is a difference:\n%s", below, d)
		}
	}
	known := map[string]string{}
	for in, row := range crashes {
		known[in] = row
	}
	clear(crashes)
	defer func() {
		for in, row := range known {
			crashes[in] = row
		}
	}()
	schema := []byte(`{"type":"object",` + rule + `,"properties":{"a":{"type":"string","items":{"type":"object","properties":{"b":{"type":"string",` + rule + `}}}}}}`)
	if d, _ := Schema(schema, false); d == nil || !strings.Contains(d.Theirs, "panic: ") {
		t.Errorf("a crash that no row describes is no difference: %v", d)
	}
	if d, _ := Costs(schema); d == nil || !strings.Contains(d.Theirs, "crashed") {
		t.Errorf("a crash that no row describes is no difference of costs: %v", d)
	}
	if crashRow(&oracle.Crash{In: "x"}) != "" || crashRow("x") != "" {
		t.Error("an unknown crash has a row")
	}
}
