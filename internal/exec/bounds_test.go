package exec_test

import (
	"errors"
	"strconv"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/internal/exec"
)

// TestQuietChanges: changes that are not worth a record are made all the same.
func TestQuietChanges(t *testing.T) {
	n := goldenCase{name: "quiet", lines: []string{spec(`{"type":"integer","default":1}`)}}.plan(t, false)
	for _, c := range []struct {
		object   string
		quiet    exec.Changes
		recorded int
	}{
		{`{}`, 0, 1},
		{`{}`, exec.Defaulted, 0},
		{`{}`, exec.Pruned, 1},
		{`{"y":1}`, exec.Defaulted, 2},
		{`{"y":1}`, exec.Defaulted | exec.Pruned, 0},
	} {
		var r exec.Recorder
		out, _, d, err := exec.Normalize(n, []byte(c.object), exec.Options{Record: &r, Quiet: c.quiet})
		if err != nil || string(out) != `{"x":1}` || len(r.Changes) != c.recorded || d != nil {
			t.Errorf("%s without %s: %s, %v, recorded %v", c.object, namesOf(c.quiet), out, err, r.Changes)
		}
	}
}

func TestErrorsAreUnwrapped(t *testing.T) {
	n := goldenCase{name: "root", lines: []string{`{"type":"object"}`}}.plan(t, false)
	_, _, _, err := exec.Normalize(n, []byte(`[]`), exec.Options{})
	if !errors.Is(err, exec.ErrNotObject) {
		t.Errorf("%v", err)
	}
	if _, _, _, err := exec.Normalize(n, []byte(`{`), exec.Options{}); err == nil {
		t.Error("no error about JSON that ends too early")
	}
}

func TestCoerceMetadata(t *testing.T) {
	for src, want := range map[string]string{
		`{"name":"n","foo":1}`:                  `{"name":"n"}`,
		`{"name":1,"labels":{"b":"1","a":"2"}}`: `{"labels":{"a":"2","b":"1"}}`,
		`{}`:                                    `{}`,
		`[]`:                                    "metadata must be an object",
		`"x"`:                                   "metadata must be an object",
		`{`:                                     "invalid JSON at byte 1: unexpected end of the document",
	} {
		out, err := exec.CoerceMetadata([]byte(src))
		if got := string(out); err != nil && err.Error() != want || err == nil && got != want {
			t.Errorf("%s: %s, %v, want %s", src, out, err, want)
		}
	}
}

// TestDeepDefaults: defaults may be deeper than objects, also those that are written anew
// without duplicate keys.
func TestDeepDefaults(t *testing.T) {
	const deep = 20_000
	n := goldenCase{name: "deep", lines: []string{`{"type":"object","x-kubernetes-preserve-unknown-fields":true}`}}.part(t, true)
	rest := `"a":` + strings.Repeat("[", deep) + strings.Repeat("]", deep) + "}"
	for _, src := range []string{"{" + rest, `{"a":1,` + rest} {
		r, err := exec.ValidateDefault(n, []byte(src))
		if err != nil || string(r.Value) != "{"+rest || len(r.Values) > 0 {
			t.Errorf("%.20s: %.20s of %d bytes, %v, %v", src, r.Value, len(r.Value), violations("", r.Values), err)
		}
	}
}

// TestFillDefaults: nothing else happens to a value than that defaults are filled in. In
// particular nulls stay, which are dropped from objects.
func TestFillDefaults(t *testing.T) {
	for _, c := range []struct{ schema, value, want string }{
		{`{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string","default":"x"}}}`, `{"a":null}`, `{"a":null,"b":"x"}`},
	} {
		n := goldenCase{name: "fill", lines: []string{c.schema}}.part(t, false)
		out, err := exec.FillDefaults(n, []byte(c.value))
		if err != nil || string(out) != c.want {
			t.Errorf("%s: %s, %v, want %s", c.value, out, err, c.want)
		}
	}
	n := goldenCase{name: "fill", lines: []string{`{"type":"string"}`}}.part(t, false)
	if out, err := exec.PrepareDefault(n, []byte(`"`), false); err == nil {
		t.Errorf("a default that is no JSON becomes %s", out)
	}
}

// TestExplanationsAreBounded: there are as many errors as an answer holds, and a count of
// the rest.
func TestExplanationsAreBounded(t *testing.T) {
	const most = 10_000
	n := goldenCase{name: "many", lines: []string{spec(`{"type":"array","items":{"type":"string","enum":["a"]}}`)}}.plan(t, false)
	numbers := func(count int, item string) goldenCase {
		return goldenCase{name: "many", lines: []string{"", `{"x":[` + strings.TrimSuffix(strings.Repeat(item+",", count), ",") + `]}`}}
	}
	for _, c := range []struct{ count, errors, omitted int }{{most / 2, most / 2, 0}, {most, most, 0}, {most + 5, most, 5}} {
		r := exec.Validate(n, numbers(c.count, `"b"`).doc(t, 1), exec.ValidateOptions{})
		if r == nil || len(r.Errors) != c.errors || r.Omitted != c.omitted {
			t.Errorf("%d wrong items: %d errors, %d omitted", c.count, count(r), r.Omitted)
		}
	}
	// Each shows its value, which counts.
	long := `"` + strings.Repeat("b", 1<<20) + `"`
	r := exec.Validate(n, numbers(20, long).doc(t, 1), exec.ValidateOptions{})
	if len(r.Errors) != 16 || r.Omitted != 4 {
		t.Errorf("long values: %d errors, %d omitted", len(r.Errors), r.Omitted)
	}
}

// TestDuplicatesAreBounded: there are as many errors about duplicates as about values.
func TestDuplicatesAreBounded(t *testing.T) {
	const most = 10_000
	n := goldenCase{name: "sets", lines: []string{spec(`{"type":"array","x-kubernetes-list-type":"set","items":{"type":"integer"}}`)}}.plan(t, false)
	for pairs, want := range map[int]int{most - 1: most - 1, most + 5: most} {
		var items []string
		for i := range pairs {
			items = append(items, strconv.Itoa(i), strconv.Itoa(i))
		}
		doc := goldenCase{name: "sets", lines: []string{`{"x":[` + strings.Join(items, ",") + `]}`}}.doc(t, 0)
		if got := count(exec.Validate(n, doc, exec.ValidateOptions{})); got != want {
			t.Errorf("%d duplicates: %d errors, want %d", pairs, got, want)
		}
	}
}

// TestErrorsOfResourcesAreBounded: of many embedded resources only some are explained.
func TestErrorsOfResourcesAreBounded(t *testing.T) {
	const most = 10_000
	n := goldenCase{name: "resources", lines: []string{spec(`{"type":"array","items":{"type":"object","x-kubernetes-embedded-resource":true}}`)}}.plan(t, false)
	for resources, want := range map[int]int{most/2 - 1: most - 2, most / 2: most, most/2 + 5: most} { // each lacks apiVersion and kind
		doc := goldenCase{name: "resources", lines: []string{`{"x":[` + strings.TrimSuffix(strings.Repeat(`{},`, resources), ",") + `]}`}}.doc(t, 0)
		if got := count(exec.Validate(n, doc, exec.ValidateOptions{})); got != want {
			t.Errorf("%d resources: %d errors, want %d", resources, got, want)
		}
	}
}

// TestBranchesAreBounded: logical keywords keep what their branches have found, up to a bound.
func TestBranchesAreBounded(t *testing.T) {
	schema := spec(`{"type":"array","items":{"type":"string"},"anyOf":[{"items":{"minLength":1}}]}`)
	n := goldenCase{name: "branches", lines: []string{schema}}.plan(t, false)
	for _, c := range []struct{ count, branches int }{{1000, 1}, {1001, 0}} {
		doc := goldenCase{name: "branches", lines: []string{`{"x":[` + strings.TrimSuffix(strings.Repeat(`"",`, c.count), ",") + `]}`}}.doc(t, 0)
		r := exec.Validate(n, doc, exec.ValidateOptions{})
		if r == nil || r.Errors[0].Keyword != "anyOf" || len(r.Errors[0].Branches) != c.branches || len(r.Errors) != c.count+1 {
			t.Errorf("%d violations: %d errors, branches %d", c.count, count(r), len(r.Errors[0].Branches))
		}
	}
	// Deep within logical keywords fewer are kept.
	for depth, want := range map[int]int{16: 150, 17: 100} {
		inner := `{"items":{"minLength":1}}`
		for range depth - 1 {
			inner = `{"allOf":[` + inner + `]}`
		}
		n := goldenCase{name: "deep", lines: []string{spec(`{"type":"array","items":{"type":"string"},"allOf":[` + inner + `]}`)}}.plan(t, false)
		doc := goldenCase{name: "deep", lines: []string{`{"x":[` + strings.TrimSuffix(strings.Repeat(`"",`, 150), ",") + `]}`}}.doc(t, 0)
		got := 0
		r := exec.Validate(n, doc, exec.ValidateOptions{})
		for i := range r.Errors {
			if r.Errors[i].Keyword == "minLength" {
				got++
			}
		}
		if got != want {
			t.Errorf("%d logical keywords: %d violations, want %d", depth, got, want)
		}
	}
}
