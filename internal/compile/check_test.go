package compile

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/espalier-dev/espalier/finding"
	"github.com/espalier-dev/espalier/internal/jsondoc"
	"github.com/espalier-dev/espalier/internal/syntax"
)

var update = flag.Bool("update", false, "rewrite the expectations in testdata")

// checkCase is one case of testdata/check: a header line "# name [option]…", the
// schema, and a line "=> severity rule pointer@offset text" for each finding.
type checkCase struct {
	file, name, schema string
	options            CheckOptions
	want               []string
}

var optionPattern = regexp.MustCompile(`\[(\w+)(?:: ([^\]]*))?\]`)

func readCases(t testing.TB) []checkCase {
	t.Helper()
	files, err := filepath.Glob("testdata/check/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal("no test cases", err)
	}
	var cases []checkCase
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		for _, block := range strings.Split(strings.TrimSpace(string(b)), "\n\n") {
			lines := strings.Split(block, "\n")
			if len(lines) < 2 || !strings.HasPrefix(lines[0], "# ") {
				t.Fatalf("%s: not a case: %s", f, block)
			}
			c := checkCase{file: f, name: lines[0], schema: lines[1], want: lines[2:]}
			for _, o := range optionPattern.FindAllStringSubmatch(c.name, -1) {
				switch o[1] {
				case "status":
					c.options.StatusSubresource = true
				case "strict":
					c.options.Strict = true
				case "defaults":
					c.options.DisallowDefaults = o[2]
				default:
					t.Fatalf("%s: unknown option %q", f, o[0])
				}
			}
			cases = append(cases, c)
		}
	}
	return cases
}

func parse(t testing.TB, src string) *syntax.Schema {
	t.Helper()
	d, err := jsondoc.Parse([]byte(src), jsondoc.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Release()
	s, problems := syntax.Parse(d, jsondoc.Root)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	return s
}

func render(list []finding.Finding) []string {
	var out []string
	for i := range list {
		f := &list[i]
		out = append(out, fmt.Sprintf("=> %s %s %s@%d %s", f.Severity, f.Check, f.Pointer, f.Offset, f.Error()))
	}
	return out
}

func TestCheckGolden(t *testing.T) {
	files := map[string]string{}
	for _, c := range readCases(t) {
		got := render(Check(parse(t, c.schema), c.options))
		files[c.file] += strings.Join(append([]string{c.name, c.schema}, got...), "\n") + "\n\n"
		if !*update && !slices.Equal(got, c.want) {
			t.Errorf("%s: %s\n%s\ngot\n%s\nwant\n%s", c.file, c.name, c.schema, strings.Join(got, "\n"), strings.Join(c.want, "\n"))
		}
	}
	if *update {
		for name, text := range files {
			if err := os.WriteFile(name, []byte(strings.TrimSuffix(text, "\n")), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestChecks checks that the table is complete and that every rule has a case.
func TestChecks(t *testing.T) {
	seen := map[finding.ID]bool{"too-many-findings": true} // see TestBounded
	for _, c := range readCases(t) {
		for _, f := range Check(parse(t, c.schema), c.options) {
			seen[f.Check] = true
		}
	}
	ids := map[finding.ID]bool{}
	for i, r := range Checks {
		if r.ID == "" || r.Explanation == "" || r.Source == "" {
			t.Errorf("rule %d is not in the table: %+v", i, r)
		}
		if ids[r.ID] {
			t.Errorf("rule %s is in the table twice", r.ID)
		}
		ids[r.ID] = true
		if !seen[r.ID] {
			t.Errorf("rule %s has no case in testdata/check", r.ID)
		}
	}
}

func TestCheckPath(t *testing.T) {
	s := parse(t, `{"nullable":true,"properties":{"a":{}},"$ref":"x"}`)
	o := CheckOptions{Path: field.NewPath("spec", "versions").Index(2).Child("schema", "openAPIV3Schema"), StatusSubresource: true}
	got := Check(s, o)
	want := []string{"spec.versions[2].schema.openAPIV3Schema", "spec.versions[2].schema.openAPIV3Schema.$ref", "spec.versions[2].schema.openAPIV3Schema.nullable"}
	for i, f := range got {
		if i >= len(want) || f.Path != want[i] {
			t.Fatalf("finding %d is at %s", i, f.Path)
		}
	}
	if len(got) != len(want) {
		t.Fatalf("got %d findings", len(got))
	}
	o.Path = nil
	if got := Check(s, o); got[0].Path != "$ref" || got[1].Path != "<nil>" {
		t.Errorf("without a path: %v", render(got))
	}
	if Check(nil, o) != nil {
		t.Error("a missing schema has findings")
	}
}

// TestPointers checks that every pointer of a finding leads somewhere, and
// that a finding about something present is at its offset.
func TestPointers(t *testing.T) {
	for _, c := range readCases(t) {
		d, err := jsondoc.Parse([]byte(c.schema), jsondoc.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		s, _ := syntax.Parse(d, jsondoc.Root)
		for _, f := range Check(s, c.options) {
			v := jsondoc.Root
			for _, token := range strings.Split(f.Pointer, "/")[1:] {
				token = strings.NewReplacer("~1", "/", "~0", "~").Replace(token)
				next, ok := d.Get(v, token)
				if !ok && d.Kind(v) == jsondoc.Array {
					var i int
					if _, err := fmt.Sscan(token, &i); err == nil {
						next, ok = d.Index(v, i)
					}
				}
				if !ok {
					t.Errorf("%s: pointer %q of %s leads nowhere", c.name, f.Pointer, f.Check)
					break
				}
				v = next
			}
			if f.Offset < 0 || f.Offset >= len(c.schema) {
				t.Errorf("%s: offset %d of %s is outside", c.name, f.Offset, f.Check)
			}
		}
	}
}

// TestTolerance checks that each tolerance takes away the findings it is about,
// and no others.
func TestTolerance(t *testing.T) {
	s := parse(t, `{"type":"object","properties":{
		"type":{"type":"strange"},
		"default":{"type":"object","default":{"x":1}},
		"set":{"type":"array","x-kubernetes-list-type":"set","items":{"type":"object"}},
		"map":{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["k"],"items":{"type":"object","nullable":true,"properties":{"k":{"type":"string","nullable":true}}}}}}`)
	found := func(o CheckOptions) (ids []string) {
		for _, f := range Check(s, o) {
			if f.Severity == finding.Error {
				ids = append(ids, string(f.Check))
			}
		}
		slices.Sort(ids)
		return ids
	}
	all := []string{"default-unknown-fields", "list-items-nullable", "list-map-key-nullable", "list-map-key-optional", "list-set-atomic", "type-unknown"}
	for _, c := range []struct {
		tolerance Tolerance
		without   []string
	}{
		{Tolerance{}, nil},
		{Tolerance{Types: true}, all[5:]},
		{Tolerance{UnprunedDefaults: true}, all[:1]},
		{Tolerance{ListSets: true}, all[4:5]},
		{Tolerance{ListKeys: true}, all[1:4]},
		{Tolerance{true, true, true, true}, all},
	} {
		want := slices.DeleteFunc(slices.Clone(all), func(id string) bool { return slices.Contains(c.without, id) })
		if got := found(CheckOptions{Tolerance: c.tolerance}); !slices.Equal(got, want) {
			t.Errorf("%+v: %v, not %v", c.tolerance, got, want)
		}
	}
}

func TestUnpruned(t *testing.T) {
	for schema, want := range map[string]bool{
		`{"type":"object","default":{"a":1},"properties":{"a":{"type":"integer"}}}`:                                                                                                    false,
		`{"type":"object","default":{"b":1.0},"properties":{"a":{"type":"integer"}}}`:                                                                                                  true,
		`{"type":"object","additionalProperties":{"type":"object","default":{"b":1}}}`:                                                                                                 true,
		`{"type":"array","x-kubernetes-preserve-unknown-fields":true,"items":{"type":"object","default":{"b":1}}}`:                                                                     false,
		`{"type":"array","x-kubernetes-preserve-unknown-fields":true,"items":{"type":"array","items":{"type":"object","default":{"b":1}}}}`:                                            false,
		`{"type":"object","x-kubernetes-embedded-resource":true,"x-kubernetes-preserve-unknown-fields":true,"default":{"apiVersion":"v1","kind":"K","metadata":{"name":"n"}}}`:         false,
		`{"type":"object","x-kubernetes-embedded-resource":true,"x-kubernetes-preserve-unknown-fields":true,"default":{"apiVersion":"v1","kind":"K","metadata":{"name":"n","foo":1}}}`: true,
		`{"type":"object","x-kubernetes-embedded-resource":true,"properties":{"metadata":{"type":"object","properties":{"foo":{"type":"string","default":"x"}}}}}`:                     true,
		`{"type":"object","x-kubernetes-embedded-resource":true,"properties":{"metadata":{"type":"object","properties":{"name":{"type":"string","default":"x"}}}}}`:                    false,
	} {
		s := parse(t, `{"type":"object","properties":{"p":`+schema+`}}`)
		if got := Validate(s, CheckOptions{Pruning: true}).Unpruned; got != want {
			t.Errorf("%s: %v", schema, got)
		}
		if Validate(s, CheckOptions{}).Unpruned {
			t.Errorf("%s: found out without being asked", schema)
		}
	}
	for _, schema := range []string{
		`{"type":"object","default":1,"properties":{"a":{"type":"object","default":{"x":1}}}}`,
		`{"type":"object","items":{"type":"string","default":"x"},"properties":{"a":{"type":"object","default":{"x":1}}}}`,
	} {
		if Validate(parse(t, schema), CheckOptions{Pruning: true}).Unpruned {
			t.Errorf("%s: upstream gives up", schema)
		}
	}
}

func TestFollowPath(t *testing.T) {
	s := parse(t, `{"type":"object","properties":{"a":{"type":"object","properties":{"b.c":{"type":"string"}}},"m":{"type":"object","additionalProperties":{"type":"integer"}},"any":{"type":"object","additionalProperties":true}}}`)
	for _, c := range []struct {
		path     string
		brackets bool
		want     string
	}{
		{".a", true, "a object"}, {".a['b.c']", true, "a.b.c string"}, {".m.k", false, "m[k] integer"}, {".any.x", false, "any[x] nothing"},
		{"a", true, "expected [ or . but got: a"}, {".", true, "unexpected end of JSON path"}, {".a.x", true, "does not refer to a valid field"},
		{".any.x.y", true, "does not refer to a valid field"}, {".a['b.c']", false, "array notation is not allowed"},
		{".a[b]", true, "expected single quoted string but got b"}, {".m['k'", true, "unexpected end of JSON path"}, {".m['k'.", true, "expected ] but got ."},
		{`.m['\q']`, true, "invalid string literal"},
	} {
		at, found, err := FollowPath(s, c.path, c.brackets)
		got := ""
		switch {
		case err != nil:
			got = err.Error()
		case found == nil:
			got = at.String() + " nothing"
		default:
			got = at.String() + " " + found.Type
		}
		if got != c.want {
			t.Errorf("%s: %s, not %s", c.path, got, c.want)
		}
	}
}

func TestConversionProblem(t *testing.T) {
	for schema, want := range map[string]string{
		`{"type":"object","properties":{"a":{"x-kubernetes-preserve-unknown-fields":true}}}`: "",
		`{"properties":{"a":{"id":"x"},"b":{"$schema":"y"}}}`:                                "OpenAPIV3Schema 'id' is not supported",
		`{"items":[{}]}`: "OpenAPIV3Schema 'items' must be a schema, but is an array",
		`{"additionalProperties":{"not":{"x-kubernetes-preserve-unknown-fields":false}}}`: "internal error: 'x-kubernetes-preserve-unknown-fields' must be true or undefined",
		`{"items":{"allOf":[{}],"anyOf":[{},{"id":"x"}],"oneOf":[{"$schema":"y"}]}}`:      "OpenAPIV3Schema 'id' is not supported",
		`{"allOf":[{},{"id":"x"}],"anyOf":[{"$schema":"y"}]}`:                             "OpenAPIV3Schema 'id' is not supported",
		`{"oneOf":[{},{"id":"x"}],"not":{"$schema":"y"}}`:                                 "OpenAPIV3Schema 'id' is not supported",
		`{"items":{"definitions":{"a":{}}}}`:                                              "OpenAPIV3Schema 'definitions' is not supported",
	} {
		if got := ConversionProblem(parse(t, schema)); got != want {
			t.Errorf("%s: %s", schema, got)
		}
	}
}
