package report

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"strings"
	"testing"

	"github.com/owenrumney/go-sarif/v3/pkg/report/v210/sarif"

	"github.com/espalier-dev/espalier/crd/manifest"
	"github.com/espalier-dev/espalier/finding"
)

func sample() *Report {
	f := &manifest.File{Name: "b.yaml", Text: []byte("spec:\n  type: objekt # no\n")}
	return &Report{
		Noun: "CRD",
		Subjects: []Subject{
			{"b.yaml", "CustomResourceDefinition/b"}, {"a.yaml", "CustomResourceDefinition/a"}, {"b.yaml", "CustomResourceDefinition/c"},
		},
		Diagnostics: []Diagnostic{
			{Check: "late", Severity: finding.Info, Message: "by the way", Place: Place{File: "a.yaml"}},
			{Check: "type-unknown", Severity: finding.Error, Message: `spec.type: Unsupported value: "objekt"`, Why: "type is one of six.",
				Fix: "write:\n  type: object", Object: "CustomResourceDefinition/b", Path: "spec.type", Pointer: "/spec/type",
				Place: At(f, manifest.Position{Line: 2, Column: 9, EndColumn: 15}),
				Notes: []Note{{Message: "and more"}, {Message: "the other", Place: Place{File: "c.yaml", Line: 1, Column: 1, EndColumn: 2, Excerpt: "x"}}}},
			{Check: "early", Severity: finding.Warning, Message: "100%, yes:\nno", Object: "CustomResourceDefinition/b", Place: Place{File: "b.yaml", Line: 1}},
		},
		Checks: []CheckInfo{{Check: finding.Check{ID: "type-unknown", Explanation: "type is one of six."}, Help: "# type-unknown\n"}},
	}
}

func write(t *testing.T, r *Report, format string, o Options) string {
	t.Helper()
	var out bytes.Buffer
	r.Sort()
	if err := r.Write(&out, format, o); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestText(t *testing.T) {
	want := `b.yaml:1: warning: 100%, yes: [early]
    text: 100%, yes:
          no

b.yaml:2:9: error: spec.type: Unsupported value: "objekt" [type-unknown]
 2 |   type: objekt # no
   |         ^^^^^^
    why: type is one of six.
    note: and more
    note: c.yaml:1:1: the other
 1 | x
   | ^
    fix: write:
           type: object

a.yaml: info: by the way [late]

1 error, 1 warning, 1 info in 3 CRDs
`
	if got := write(t, sample(), "text", Options{}); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if got := write(t, &Report{Subjects: make([]Subject, 1)}, "", Options{}); got != "nothing found in 1 object\n" {
		t.Errorf("%q", got)
	}
	colored := write(t, sample(), "text", Options{Color: true})
	if !strings.Contains(colored, "\x1b[1;31merror:\x1b[0m") {
		t.Errorf("no colours: %q", colored)
	}
}

// TestTextIsSafe has a file try to move the cursor, and long lines.
func TestTextIsSafe(t *testing.T) {
	long := strings.Repeat("ä", 300) + "X" + strings.Repeat("b", 300)
	for column := range 620 {
		r := &Report{Diagnostics: []Diagnostic{{Check: "r", Severity: finding.Error, Message: "a\x1b[2Jb\u202ec",
			Place: Place{File: "f", Line: 7, Column: column, EndColumn: column + 5, Excerpt: long}}}}
		got := write(t, r, "text", Options{})
		if strings.ContainsAny(got, "\x1b\u202e") {
			t.Fatalf("%q", got)
		}
		lines := strings.Split(got, "\n")
		if column == 301 && (!strings.Contains(lines[1], "X") || []rune(lines[2])[strings.IndexRune(string([]rune(lines[2])), '^')] != '^') {
			t.Errorf("the place is not shown: %q", got)
		}
		for _, l := range lines[1:] {
			if len([]rune(l)) > maxWidth+20 {
				t.Fatalf("line of %d", len(l))
			}
		}
	}
}

func TestJSON(t *testing.T) {
	var out struct {
		SchemaVersion int
		Summary       map[string]int
		Subjects      []Subject
		Diagnostics   []map[string]any
	}
	if err := json.Unmarshal([]byte(write(t, sample(), "json", Options{})), &out); err != nil {
		t.Fatal(err)
	}
	d := out.Diagnostics[1]
	if out.SchemaVersion != 1 || out.Summary["error"] != 1 || len(out.Subjects) != 3 || d["severity"] != "error" ||
		d["line"] != 2.0 || d["file"] != "b.yaml" || d["excerpt"] != "  type: objekt # no" {
		t.Errorf("%+v", out)
	}
	if got := write(t, &Report{}, "json", Options{}); !strings.Contains(got, `"diagnostics": []`) {
		t.Error(got)
	}
}

// TestSARIF has the output validated against the schema of the standard by the
// library.
func TestSARIF(t *testing.T) {
	for _, r := range []*Report{sample(), {}} {
		text := write(t, r, "sarif", Options{Version: "v1.2.3"})
		parsed, err := sarif.FromString(text)
		if err != nil {
			t.Fatal(err)
		}
		if err := parsed.Validate(); err != nil {
			t.Errorf("%v\n%s", err, text)
		}
		if len(parsed.Runs) != 1 || len(parsed.Runs[0].Results) != len(r.Diagnostics) {
			t.Errorf("%s", text)
		}
	}
}

func TestGitHub(t *testing.T) {
	want := `::warning file=b.yaml,line=1,title=early::100%25, yes:%0Ano
::error file=b.yaml,line=2,col=9,endColumn=15,title=type-unknown::spec.type: Unsupported value: "objekt"%0Atype is one of six.%0Awrite:%0A  type: object
::notice file=a.yaml,title=late::by the way
`
	if got := write(t, sample(), "github", Options{}); got != want {
		t.Errorf("%s", got)
	}
}

func TestJUnit(t *testing.T) {
	text := write(t, sample(), "junit", Options{Command: "check"})
	var out junitSuites
	if err := xml.Unmarshal([]byte(text), &out); err != nil {
		t.Fatal(err)
	}
	// Three subjects, and the file that a diagnostic without one is about.
	if out.Tests != 4 || out.Failures != 2 || len(out.Suites) != 2 || out.Suites[0].Name != "b.yaml" || strings.Count(out.Suites[0].Cases[0].Failure.Text, "b.yaml:") != 2 {
		t.Errorf("%s", text)
	}
}

func TestUnknown(t *testing.T) {
	if err := sample().Write(&bytes.Buffer{}, "xml", Options{}); err == nil {
		t.Error("there is a format xml")
	}
}
