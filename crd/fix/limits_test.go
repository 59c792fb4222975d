package fix_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/crd/fix"
)

// What grows with the product of what a schema says has a limit, and the note says which.
func TestLimits(t *testing.T) {
	repeat := func(n int, f func(i int) string) string {
		var list []string
		for i := range n {
			list = append(list, f(i))
		}
		return strings.Join(list, ",")
	}
	fields := func(n int, schema string) string {
		return `"properties":{` + repeat(n, func(i int) string { return fmt.Sprintf(`"f%d":%s`, i, schema) }) + `}`
	}
	// A branch of 1,000 values, which is about each field.
	branch := `{"additionalProperties":{"type":"string","enum":[` + repeat(997, func(i int) string { return fmt.Sprintf(`"%d"`, i) }) + `]}}`
	long := strings.Repeat("x", 100_000)
	for _, c := range []struct{ name, schema, want string }{
		{"references", `{"properties":{"f":{"$ref":"#/definitions/d0"}},"definitions":{` + repeat(18, func(i int) string {
			return fmt.Sprintf(`"d%d":{"properties":{"a":{"$ref":"#/definitions/d%d"},"b":{"$ref":"#/definitions/d%d"}}}`, i, i+1, i+1)
		}) + `,"d18":{"type":"string"}}}`, "unsupported-ref the references of this schema expand to more than 100000 values"},
		{"as many branches as there may be", `{` + fields(100, `{"type":"string"}`) + `,"allOf":[` + branch + `]}`, ""},
		{"one more", `{` + fields(101, `{"type":"string"}`) + `,"allOf":[` + branch + `]}`, "junctor-additional-properties the branches of this schema combine in more than 100000 ways"},
		{"long notes", `{` + fields(170, `{"$ref":"#/definitions/s"}`) + `,"definitions":{"s":{"$ref":"#/definitions/` + long + `"},"` + long + `":{"properties":{"x":{"$ref":"#/definitions/` + long + `"}}}}}`,
			"too-many-findings too many notes about the changes to show"},
	} {
		r, err := fix.CRD(fmt.Appendf(nil, `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","spec":{"versions":[{"name":"v1","schema":{"openAPIV3Schema":%s}}]}}`, c.schema))
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, n := range r.Notes {
			if n.Kind == fix.Cannot {
				got = append(got, fmt.Sprintf("%s %s", n.Check, n.Text))
			}
		}
		if strings.Join(got, "; ") != c.want || r.Changed != (c.want == "") {
			t.Errorf("%s: changed %t, %.1000q", c.name, r.Changed, got)
		}
	}
}
