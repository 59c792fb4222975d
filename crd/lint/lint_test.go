package lint

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/espalier-dev/espalier/crd"
	"github.com/espalier-dev/espalier/finding"
	"github.com/espalier-dev/espalier/internal/costtest"
)

// all switches every rule on.
func all() Options {
	var o Options
	for _, r := range Checks {
		o.Enable = append(o.Enable, r.ID)
	}
	return o
}

// mustParse wraps the YAML of a schema, or of a whole CRD.
func mustParse(t testing.TB, text string) *crd.CRD {
	t.Helper()
	raw, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	if !strings.Contains(text, "kind: CustomResourceDefinition") {
		raw = fmt.Appendf(nil, `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","spec":{"versions":[`+
			`{"name":"v1","served":true,"storage":true,"subresources":{"status":{}},"schema":{"openAPIV3Schema":%s}}]}}`, raw)
	}
	d, err := crd.Parse(raw)
	if err != nil {
		t.Fatalf("%v in %s", err, raw)
	}
	return d
}

// of returns the findings of one rule.
func of(t testing.TB, check finding.ID, text string) []finding.Finding {
	t.Helper()
	d := mustParse(t, text)
	found, err := Check(d, all())
	if err != nil {
		t.Fatal(err)
	}
	inRange(t, d, found)
	return slices.DeleteFunc(found, func(f finding.Finding) bool { return f.Check != check })
}

// inRange demands that findings lead to what they are about.
func inRange(t testing.TB, d *crd.CRD, found []finding.Finding) {
	t.Helper()
	var document any
	if err := json.Unmarshal(d.JSON, &document); err != nil {
		t.Fatal(err)
	}
	for _, f := range found {
		if f.Offset <= 0 || f.Offset >= len(d.JSON) {
			t.Errorf("%v has the offset %d in %d bytes", f, f.Offset, len(d.JSON))
		}
		if f.Detail == "" || f.Fix == "" || f.Path == "" {
			t.Errorf("%v is incomplete", f)
		}
		at := document
		for token := range strings.SplitSeq(strings.TrimPrefix(f.Pointer, "/"), "/") {
			token = strings.NewReplacer("~1", "/", "~0", "~").Replace(token)
			switch x := at.(type) {
			case map[string]any:
				next, ok := x[token]
				if !ok {
					t.Errorf("%v points to %s, where there is nothing", f, f.Pointer)
					return
				}
				at = next
			case []any:
				var i int
				if _, err := fmt.Sscan(token, &i); err != nil || i >= len(x) {
					t.Errorf("%v points to %s, where there is nothing", f, f.Pointer)
					return
				}
				at = x[i]
			}
		}
	}
}

func TestFinding(t *testing.T) {
	found := of(t, "bounds-contradict", `{type: object, properties: {spec: {type: object, properties: {a/b: {type: string, minLength: 3, maxLength: 2}}}}}`)
	if len(found) != 1 {
		t.Fatal(found)
	}
	f := found[0]
	if f.Path != "spec.versions[0].schema.openAPIV3Schema.properties[spec].properties[a/b].minLength" ||
		f.Pointer != "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/a~1b/minLength" ||
		f.Severity != finding.Warning || !strings.Contains(f.Error(), ".minLength: minLength 3 is above maxLength 2") {
		t.Errorf("%+v", f)
	}
}

func TestOptions(t *testing.T) {
	d := mustParse(t, `{type: object, properties: {a: {type: string, minLength: 3, maxLength: 2}}}`)
	count := func(o Options, check finding.ID) int {
		found, err := Check(d, o)
		if err != nil {
			t.Fatal(err)
		}
		return len(slices.DeleteFunc(found, func(f finding.Finding) bool { return f.Check != check }))
	}
	if n := count(Options{}, "bounds-contradict"); n != 1 {
		t.Errorf("%d findings of a rule that is on", n)
	}
	if n := count(Options{Disable: []finding.ID{"bounds-contradict"}}, "bounds-contradict"); n != 0 {
		t.Errorf("%d findings of a rule that is disabled", n)
	}
	if n := count(Options{}, "description-missing"); n != 0 {
		t.Errorf("%d findings of a rule that is off", n)
	}
	if n := count(Options{Enable: []finding.ID{"description-missing"}}, "description-missing"); n != 1 {
		t.Errorf("%d findings of a rule that is enabled", n)
	}
	if _, err := Check(d, Options{Enable: []finding.ID{"no-such"}}); err == nil || !strings.Contains(err.Error(), "no-such") {
		t.Errorf("an unknown rule is enabled: %v", err)
	}
	if found, err := Check(mustParse(t, `{type: object, properties: {a: {type: 1, minLength: 3, maxLength: 2}}}`), Options{}); err != nil || len(found) != 0 {
		t.Errorf("a schema that no server reads: %v, %v", found, err)
	}
}

// TestTable: identifiers are unique and the table is complete.
func TestTable(t *testing.T) {
	seen := map[finding.ID]bool{}
	for _, r := range Checks {
		if seen[r.ID] || r.Explanation == "" || r.Source == "" {
			t.Errorf("%+v", r)
		}
		seen[r.ID] = true
		if string(r.ID) != strings.ToLower(string(r.ID)) || strings.ContainsAny(string(r.ID), " _") {
			t.Errorf("%s is not spelled like the others", r.ID)
		}
	}
}

// growing are schemas that grow with n.
var growing = map[string]func(n int) string{
	"wide": func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, `,"p%d":{"type":"object","properties":{"x":{"type":"string","default":"y"}}}`, i)
		}
		return `{"type":"object","properties":{` + b.String()[1:] + `}}`
	},
	"deep": func(n int) string {
		n /= 5 // schemas may not nest 10,000 deep
		return strings.Repeat(`{"type":"object","properties":{"a":`, n) + `{"type":"string"}` + strings.Repeat(`}}`, n)
	},
	"required": func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, `,"p%d"`, i)
		}
		return `{"type":"object","required":[` + b.String()[1:] + `]}`
	},
	"rules": func(n int) string {
		var b strings.Builder
		for i := range n / 10 {
			fmt.Fprintf(&b, `,{"rule":"has(self.a) && self.a == oldSelf.a || %d > self.b"}`, i)
		}
		return `{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"integer"}},"x-kubernetes-validations":[` + b.String()[1:] + `]}`
	},
	"reads": func(n int) string {
		var required, properties, rules strings.Builder
		for i := range n / 10 {
			fmt.Fprintf(&required, `,"p%d"`, i)
			fmt.Fprintf(&properties, `,"p%d":{"type":"string"},"q%[1]d":{"type":"string"}`, i)
			fmt.Fprintf(&rules, `,{"rule":"has(self.q%d) == has(self.q0) && self.p%[1]d != self.q%[1]d"}`, i)
		}
		return `{"type":"object","required":[` + required.String()[1:] + `],"properties":{` + properties.String()[1:] + `},"x-kubernetes-validations":[` + rules.String()[1:] + `]}`
	},
}

// TestCostIsLinear: a CRD ten times as large takes about ten times as long,
// however it is nested.
func TestCostIsLinear(t *testing.T) {
	costtest.Limit(t)
	for name, build := range growing {
		t.Run(name, func(t *testing.T) {
			at := func(n int) costtest.Input {
				text := build(n)
				d := mustParse(t, text)
				return costtest.Input{Size: len(text), Run: func() { mustCheck(t, d) }}
			}
			costtest.Linear(t, at(1_000), at(10_000))
		})
	}
}

// TestGrowingSchemas checks what TestCostIsLinear measures, with sizes that take no time.
func TestGrowingSchemas(t *testing.T) {
	for _, build := range growing {
		mustCheck(t, mustParse(t, build(100)))
	}
}

func mustCheck(t *testing.T, d *crd.CRD) {
	t.Helper()
	if _, err := Check(d, Options{Disable: []finding.ID{"missing-bounds"}}); err != nil {
		t.Fatal(err)
	}
}

// TestBounded: findings in a deep schema do not take memory without end.
func TestBounded(t *testing.T) {
	const depth = 4000
	text := strings.Repeat(`{"type":"object","properties":{"metadata":{"type":"object"},"a":`, depth) + `{"type":"string"}` + strings.Repeat(`}}`, depth)
	found, err := Check(mustParse(t, text), Options{})
	if err != nil {
		t.Fatal(err)
	}
	size := 0
	for _, f := range found {
		size += len(f.Path) + len(f.Pointer) + len(f.Detail) + len(f.Fix)
	}
	if size > maxBytes+1<<20 || len(found) < 100 {
		t.Errorf("%d findings of %d bytes", len(found), size)
	}
}

// FuzzCheck: whatever the CRD is, nothing panics and findings are in it.
func FuzzCheck(f *testing.F) {
	for _, c := range cases {
		f.Add([]byte(c.text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		raw, err := yaml.YAMLToJSON(text)
		if err != nil || len(raw) > 1<<16 {
			return
		}
		for _, document := range [][]byte{raw, fmt.Appendf(nil, `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","spec":{"versions":[{"schema":{"openAPIV3Schema":%s}}]}}`, raw)} {
			d, err := crd.Parse(document)
			if err != nil {
				continue
			}
			found, err := Check(d, all())
			if err != nil {
				t.Fatal(err)
			}
			for _, x := range found {
				if x.Offset < 0 || x.Offset >= len(document) {
					t.Fatalf("%v at %d of %d", x, x.Offset, len(document))
				}
			}
		}
	})
}
