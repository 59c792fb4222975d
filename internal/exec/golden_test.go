package exec_test

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/internal/compile"
	"github.com/espalier-dev/espalier/internal/exec"
	"github.com/espalier-dev/espalier/internal/jsondoc"
	"github.com/espalier-dev/espalier/internal/plan"
	"github.com/espalier-dev/espalier/internal/syntax"
)

var update = flag.Bool("update", false, "rewrite the expectations in testdata")

// goldenCase is one case of testdata/golden: a line "# name [option]…", lines of JSON, the
// first of them a schema, and a line "=> …" for each result.
type goldenCase struct {
	name  string
	lines []string
}

func (c goldenCase) has(option string) bool { return strings.Contains(c.name, "["+option+"]") }

// golden compares the results of all cases of a file with those written there.
func golden(t *testing.T, file string, lines int, results func(*testing.T, goldenCase) []string) {
	t.Helper()
	file = filepath.Join("testdata", "golden", file)
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, block := range strings.Split(strings.TrimSpace(string(b)), "\n\n") {
		all := strings.Split(block, "\n")
		if len(all) <= lines || !strings.HasPrefix(all[0], "# ") {
			t.Fatalf("%s: not a case: %s", file, block)
		}
		c := goldenCase{name: all[0], lines: all[1 : 1+lines]}
		got, want := results(t, c), all[1+lines:]
		for i := range got {
			got[i] = "=> " + got[i]
		}
		if !*update && !slices.Equal(got, want) {
			t.Errorf("%s: %s\ngot\n%s\nwant\n%s", file, strings.Join(all[:1+lines], "\n"), strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		out = append(out, strings.Join(append(all[:1+lines:1+lines], got...), "\n"))
	}
	if *update {
		if err := os.WriteFile(file, []byte(strings.Join(out, "\n\n")+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// part compiles the schema of a field.
func (c goldenCase) part(t *testing.T, defaults bool) *plan.Node {
	t.Helper()
	n := goldenCase{name: c.name, lines: []string{spec(c.lines[0])}}.plan(t, defaults)
	return n.Props.At(n.Props.Lookup([]byte("x"))).Node
}

// plan compiles the schema.
func (c goldenCase) plan(t *testing.T, defaults bool) *plan.Node {
	t.Helper()
	d, err := jsondoc.Parse([]byte(c.lines[0]), jsondoc.Limits{})
	if err != nil {
		t.Fatalf("%s: %v", c.name, err)
	}
	defer d.Release()
	s, problems := syntax.Parse(d, jsondoc.Root)
	if len(problems) > 0 {
		t.Fatalf("%s: %v", c.name, problems)
	}
	n, err := compile.Lower(s, compile.LowerOptions{Strict: c.has("strict"), ValidationOnly: c.has("any"), Defaults: defaults})
	if err != nil {
		t.Fatalf("%s: %v", c.name, err)
	}
	t.Cleanup(func() { plan.Release(n) })
	return n
}

func (c goldenCase) doc(t *testing.T, line int) *jsondoc.Doc {
	t.Helper()
	d := canonical([]byte(c.lines[line]))
	if d == nil {
		t.Fatalf("%s: %s is no object", c.name, c.lines[line])
	}
	t.Cleanup(d.Release)
	return d
}

var changeNames = []struct {
	change exec.Changes
	name   string
}{
	{exec.Mismatched, "mismatched"}, {exec.Duplicated, "duplicated"}, {exec.Pruned, "pruned"},
	{exec.NullDropped, "null-dropped"}, {exec.Coerced, "coerced"}, {exec.Defaulted, "defaulted"},
}

func namesOf(changes exec.Changes) string {
	var names []string
	for _, c := range changeNames {
		if changes&c.change != 0 {
			names = append(names, c.name)
		}
	}
	return strings.Join(names, ",")
}

// TestGoldenNormalize shows what becomes of objects, and what is said about it. Without a report
// objects take shorter ways, to the same result.
func TestGoldenNormalize(t *testing.T) {
	golden(t, "normalize.txt", 2, func(t *testing.T, c goldenCase) (lines []string) {
		n := c.plan(t, false)
		o := exec.Options{Storage: c.has("storage"), NoDefaults: c.has("no defaults")}
		plain, happened, _, plainErr := exec.Normalize(n, []byte(c.lines[1]), o)
		o.Record = new(exec.Recorder)
		out, changes, _, err := exec.Normalize(n, []byte(c.lines[1]), o)
		if err != nil {
			var at *exec.Error
			if !errors.As(err, &at) || plainErr == nil || plainErr.Error() != err.Error() {
				t.Fatalf("%s: %v and %v", c.name, err, plainErr)
			}
			return []string{fmt.Sprintf("error %s@%d %s", at.Path, at.Offset, err)}
		}
		if plainErr != nil || string(plain) != string(out) || happened != changes {
			t.Errorf("%s: without a report %s (%s, %v)", c.name, plain, namesOf(happened), plainErr)
		}
		o.Keep = true
		_, _, d, err := exec.Normalize(n, []byte(c.lines[1]), o)
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, string(out), fmt.Sprintf("changes %q, kept %v", namesOf(changes), d != nil))
		if d != nil {
			d.Release()
		}
		again, _, _, err := exec.Normalize(n, out, exec.Options{Storage: o.Storage, NoDefaults: o.NoDefaults})
		if err != nil || string(again) != string(out) {
			t.Errorf("%s: once more: %s, %v", c.name, again, err)
		}
		for _, x := range o.Record.Changes[:len(o.Record.Changes)/2] { // recorded twice
			lines = append(lines, strings.TrimSuffix(fmt.Sprintf("%s %s@%d %s; %s", namesOf(x.What), x.Path, x.Offset, x.Detail, x.Nearest), "; "))
		}
		return lines
	})
}

func violation(v *exec.Violation) string {
	s := fmt.Sprintf("%s %s@%d %s", v.Keyword, v.At, v.Offset, v.Error())
	for _, b := range v.Branches {
		var names []string
		for i := range b {
			names = append(names, b[i].Keyword+" "+b[i].At)
		}
		s += " {" + strings.Join(names, ", ") + "}"
	}
	return s
}

func violations(kind string, list []exec.Violation) (lines []string) {
	for i := range list {
		lines = append(lines, kind+violation(&list[i]))
	}
	return lines
}

// TestGoldenValidate shows the errors of objects: new ones, and with [ratchet] changed ones.
func TestGoldenValidate(t *testing.T) {
	golden(t, "validate.txt", 3, func(t *testing.T, c goldenCase) []string {
		n, d := c.plan(t, false), c.doc(t, 1)
		var o exec.ValidateOptions
		if c.lines[2] != "-" {
			o.Old, o.Ratchet, o.ReadOnly = c.doc(t, 2), c.has("ratchet"), c.has("read-only")
		}
		switch {
		case c.has("namespaced"):
			o.Scope = exec.Namespaced
		case c.has("cluster"):
			o.Scope = exec.Cluster
		}
		result := exec.Validate(n, d, o)
		if !o.Ratchet && o.Scope == exec.AnyScope && !o.ReadOnly && exec.Valid(n, d, false) != (result == nil) {
			t.Errorf("%s: the checker and the explanation differ", c.name)
		}
		// What normalization has found to be of its type needs no second look.
		text := d.Raw(jsondoc.Root)
		if out, changes, _, err := exec.Normalize(n, text, exec.Options{}); err == nil && changes == 0 && string(out) == string(text) &&
			exec.Valid(n, d, true) != exec.Valid(n, d, false) {
			t.Errorf("%s: typed and untyped differ", c.name)
		}
		if result == nil {
			return []string{"valid"}
		}
		lines := append(violations("", result.Errors), violations("warning ", result.Warnings)...)
		return append(lines, violations("", result.ReadOnly)...)
	})
}

// TestValidateDefault shows the errors of defaults, and the default as it is filled in.
func TestGoldenValidateDefault(t *testing.T) {
	golden(t, "default.txt", 2, func(t *testing.T, c goldenCase) (lines []string) {
		r, err := exec.ValidateDefault(c.part(t, true), []byte(c.lines[1]))
		if err != nil {
			return []string{"error " + err.Error()}
		}
		if r.Unknown != nil {
			lines = append(lines, "unknown "+violation(r.Unknown))
		}
		lines = append(lines, violations("metadata ", r.Metadata)...)
		lines = append(lines, violations("", r.Values)...)
		lines = append(lines, "value "+string(r.Value))
		out, err := exec.PrepareDefault(c.part(t, false), []byte(c.lines[1]), c.has("kept"))
		return append(lines, fmt.Sprintf("prepared %s %v", out, err))
	})
}

// TestValidateMetaDefault shows the errors of a default of metadata.name or .labels.
func TestGoldenValidateMetaDefault(t *testing.T) {
	golden(t, "meta-default.txt", 3, func(t *testing.T, c goldenCase) (lines []string) {
		r, err := exec.ValidateMetaDefault(c.part(t, true), []byte(c.lines[1]), []byte(c.lines[2]))
		if err != nil {
			return []string{"error " + err.Error()}
		}
		lines = append(violations("metadata ", r.Metadata), violations("", r.Values)...)
		return append(lines, "value "+string(r.Value))
	})
}

// TestGoldenFields shows the fields that the creator of an object owns, and whether a change to
// another object sets any.
func TestGoldenFields(t *testing.T) {
	golden(t, "fields.txt", 3, func(t *testing.T, c goldenCase) []string {
		n, old, now := c.plan(t, false), c.doc(t, 1), c.doc(t, 2)
		out, ok := exec.AppendFields(nil, n, old, "status")
		text := "not to be said"
		if ok {
			text = string(out)
			if !json.Valid(out) {
				t.Errorf("%s: no JSON: %s", c.name, out)
			}
		}
		return []string{text, fmt.Sprintf("kept by the change %v, by the reverse %v", exec.FieldsKept(n, old, now, "status"), exec.FieldsKept(n, now, old, "status"))}
	})
}

// visitor reports the values that have rules, and finds fault with all of them.
type visitor struct {
	lines []string
	after int // how many are visited, if not 0
}

func (v *visitor) Run(run *exec.RuleRun) {
	run.Visit(func(s *exec.RuleSite) bool {
		line := fmt.Sprintf("%q %s", s.Path(), run.Doc.Raw(s.Value))
		if s.HasOld {
			line += fmt.Sprintf(" was %s", run.Old.Raw(s.Old))
		}
		for _, x := range []struct {
			is   bool
			name string
		}{{s.Resource, "resource"}, {s.Unchanged(), "unchanged"}} {
			if x.is {
				line += " " + x.name
			}
		}
		v.lines = append(v.lines, line)
		x := exec.Violation{Path: s.Path(), Keyword: "x-kubernetes-validations"}
		if s.Unchanged() {
			run.Warnings = append(run.Warnings, x)
		} else {
			run.Errors = append(run.Errors, x)
		}
		return len(v.lines) != v.after
	})
}

// TestGoldenRuleSites shows where rules apply, and which old values belong to them.
func TestGoldenRuleSites(t *testing.T) {
	golden(t, "rules.txt", 3, func(t *testing.T, c goldenCase) []string {
		n, d := c.plan(t, false), c.doc(t, 1)
		v := &visitor{}
		o := exec.ValidateOptions{Rules: v, Ratchet: c.has("ratchet")}
		if c.lines[2] != "-" {
			o.Old = c.doc(t, 2)
		}
		if c.has("uncounted") {
			o.Counts = func(x *exec.Violation) bool { return x.Keyword != "enum" }
		}
		result := exec.Validate(n, d, o)
		lines := slices.Clone(v.lines)
		if result == nil {
			return append(lines, "no result")
		}
		for i := range result.Errors {
			if x := &result.Errors[i]; x.Keyword != "x-kubernetes-validations" || x.Detail != "" {
				lines = append(lines, "error "+violation(x))
			}
		}
		if got := len(v.lines) - len(result.Warnings); len(v.lines) > 0 && got != len(result.Errors) && !c.has("uncounted") {
			t.Errorf("%s: %d errors and %d warnings of %d", c.name, len(result.Errors), len(result.Warnings), len(v.lines))
		}
		for stop := 1; stop < len(v.lines); stop++ {
			some := &visitor{after: stop}
			o.Rules = some
			exec.Validate(n, d, o)
			if len(some.lines) != stop {
				t.Errorf("%s: %d values are visited after the visit ended with %d", c.name, len(some.lines), stop)
			}
		}
		return append(lines, fmt.Sprintf("%d warnings", len(result.Warnings)))
	})
}
