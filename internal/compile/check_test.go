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

func render(list []Finding) []string {
	var out []string
	for i := range list {
		f := &list[i]
		out = append(out, fmt.Sprintf("=> %s %s %s@%d %s", f.Severity, f.Rule, f.Pointer, f.Offset, f.Error()))
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

// TestRules checks that the table is complete and that every rule has a case.
func TestRules(t *testing.T) {
	seen := map[string]bool{"too-many-findings": true} // see TestBounded
	for _, c := range readCases(t) {
		for _, f := range Check(parse(t, c.schema), c.options) {
			seen[f.Rule] = true
		}
	}
	ids := map[string]bool{}
	for i, r := range Rules {
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
		if found, ok := RuleByID(r.ID); !ok || found != r {
			t.Errorf("RuleByID(%q) = %v, %v", r.ID, found, ok)
		}
	}
	if _, ok := RuleByID("no-such-rule"); ok {
		t.Error("found a rule that does not exist")
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
					t.Errorf("%s: pointer %q of %s leads nowhere", c.name, f.Pointer, f.Rule)
					break
				}
				v = next
			}
			if f.Offset < 0 || f.Offset >= len(c.schema) {
				t.Errorf("%s: offset %d of %s is outside", c.name, f.Offset, f.Rule)
			}
		}
	}
}
