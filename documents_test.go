package espalier_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"
	"sigs.k8s.io/yaml"

	"github.com/espalier-dev/espalier"
	"github.com/espalier-dev/espalier/finding"
	"github.com/espalier-dev/espalier/internal/jsondoc"
	"github.com/espalier-dev/espalier/internal/syntax"
)

var update = flag.Bool("update", false, "rewrite the expectations in testdata/documents; read the difference before you commit it")

// TestDocuments runs every example of the documents that Espalier implements.
// testdata/documents/README.md says which archive is which example and what
// the sections of an archive mean.
func TestDocuments(t *testing.T) {
	files, err := filepath.Glob("testdata/documents/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no archives: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			d, err := readDocument(file)
			if err != nil {
				t.Fatal(err)
			}
			got := d.run(t)
			if *update {
				d.write(t, file, got)
				return
			}
			for _, name := range expectations {
				want := string(d.sections[name])
				if filepath.Ext(name) == ".json" {
					want = indent(t, []byte(want))
				}
				if got[name] != want {
					t.Errorf("%s is\n%swant\n%s", name, got[name], want)
				}
			}
		})
	}
}

// expectations are the sections that a run produces; the others are its input.
// A section that a run leaves empty is not in the archive.
var expectations = []string{"error.txt", "findings.txt", "skeleton.json", "skeleton-findings.txt", "want.json", "report.txt", "errors.txt", "cases.txt", "published.json"}

type document struct {
	archive  *txtar.Archive
	sections map[string][]byte

	check     espalier.CheckOptions
	compile   espalier.CompileOptions
	normalize espalier.NormalizeOptions
}

func readDocument(file string) (*document, error) {
	a, err := txtar.ParseFile(file)
	if err != nil {
		return nil, err
	}
	d := &document{archive: a, sections: map[string][]byte{}}
	for _, f := range a.Files {
		switch {
		case slices.Contains(expectations, f.Name):
		case slices.Contains([]string{"schema", "structural", "dropped", "object", "cases", "options"}, strings.TrimSuffix(f.Name, filepath.Ext(f.Name))):
		default:
			return nil, fmt.Errorf("no section is called %s", f.Name)
		}
		d.sections[f.Name] = f.Data
	}
	return d, d.readOptions()
}

func (d *document) readOptions() error {
	for line := range strings.Lines(string(d.sections["options"])) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		yes, err := strconv.ParseBool(value)
		switch key {
		case "inherit-preserve":
			d.compile.InheritPreserve = yes
		case "status-subresource":
			d.check.StatusSubresource = yes
		case "storage":
			if yes {
				d.normalize.Source = espalier.Storage
			}
		default:
			err = fmt.Errorf("no option is called %s", key)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// input returns a section that may be written as YAML or JSON, as JSON, or nil.
func (d *document) input(t *testing.T, name string) []byte {
	t.Helper()
	if y, ok := d.sections[name+".yaml"]; ok {
		j, err := yaml.YAMLToJSON(y)
		if err != nil {
			t.Fatalf("%s.yaml: %v", name, err)
		}
		return j
	}
	return d.sections[name+".json"]
}

// run checks the schema, derives its skeleton where the archive asks for one,
// publishes it if it has unions, and normalizes and validates the object.
func (d *document) run(t *testing.T) map[string]string {
	got := map[string]string{}
	schema := d.input(t, "schema")
	findings, err := espalier.Check(schema, d.check)
	if err != nil {
		got["error.txt"] = err.Error() + "\n"
		if _, err := espalier.Compile(schema, d.compile); err == nil {
			t.Error("a schema that cannot be read compiles")
		}
		return got
	}
	got["findings.txt"] = renderFindings(findings)

	if _, ok := d.sections["skeleton.json"]; ok {
		skeleton := skeletonOf(t, schema)
		got["skeleton.json"] = indent(t, skeleton)
		if _, ok := d.sections["skeleton-findings.txt"]; ok {
			findings, err := espalier.Check(skeleton, d.check)
			if err != nil {
				t.Fatal("skeleton: ", err)
			}
			got["skeleton-findings.txt"] = renderFindings(findings)
		}
	}

	_, err = espalier.Compile(schema, d.compile)
	if refused := new(espalier.SchemaError); hasErrors(findings) != errors.As(err, &refused) {
		t.Errorf("the check finds\n%sand Compile says: %v", got["findings.txt"], err)
	}
	got["cases.txt"] = d.cases(t, schema)
	if structural := d.input(t, "structural"); structural != nil {
		schema = structural
	}
	object := d.input(t, "object")
	if bytes.Contains(schema, []byte("x-kubernetes-unions")) {
		got["published.json"] = d.published(t, schema, object)
	}
	if object == nil {
		return got
	}
	got["want.json"], got["report.txt"] = d.normalized(t, schema, object)
	got["errors.txt"] = d.validated(t, schema, object)
	if dropped := d.input(t, "dropped"); dropped != nil {
		bytes, report := d.normalized(t, dropped, object)
		if bytes != got["want.json"] || report != got["report.txt"] {
			t.Errorf("without value validations the object becomes\n%s%snot\n%s%s", bytes, report, got["want.json"], got["report.txt"])
		}
	}
	return got
}

// normalized runs the object through a schema without findings, as bytes and
// as a value, and through the result again.
func (d *document) normalized(t *testing.T, schema, object []byte) (result, report string) {
	t.Helper()
	s, err := espalier.Compile(schema, d.compile)
	if err != nil {
		t.Fatal(err)
	}
	o := d.normalize
	o.Report = &espalier.Report{}
	r, err := s.Normalize(object, o)
	if err != nil {
		t.Fatal(err)
	}
	report = renderReport(o.Report)
	if union := unionOf(o.Report); union != r.Changes {
		t.Errorf("Changes is %b, the report's %b", r.Changes, union)
	}

	again, err := s.Normalize(r.Bytes, d.normalize)
	if err != nil || !bytes.Equal(again.Bytes, r.Bytes) || again.Changes&^espalier.Mismatched != 0 {
		t.Errorf("normalizing the result changes it to %s (%b, %v)", again.Bytes, again.Changes, err)
	}

	value := valueOf(t, object)
	changes, err := s.NormalizeValue(value, d.normalize)
	if err != nil {
		t.Fatal(err)
	}
	marshalled, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(marshalled, r.Bytes) || changes != r.Changes {
		t.Errorf("as a value the object becomes\n%s (%b), as bytes\n%s (%b)", marshalled, changes, r.Bytes, r.Changes)
	}
	return indent(t, r.Bytes), report
}

// validated says what is wrong with the object after it is normalized, one
// after the other and in one call.
func (d *document) validated(t *testing.T, schema, object []byte) string {
	t.Helper()
	s, err := espalier.Compile(schema, d.compile)
	if err != nil {
		t.Fatal(err)
	}
	r, err := s.Normalize(object, d.normalize)
	if err != nil {
		t.Fatal(err)
	}
	v, err := s.Validate(r.Bytes, espalier.ValidateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	_, admitted, err := s.Admit(object, espalier.AdmitOptions{Source: d.normalize.Source})
	if err != nil {
		t.Fatal(err)
	}
	errs := renderErrors(v)
	if at := renderErrors(admitted); at != errs {
		t.Errorf("Admit says\n%sValidate\n%s", at, errs)
	}
	return errs
}

// cases validates the objects of the archive that are not normalized, one in each
// line. A schema that is not structural is good enough for that, unless clusters
// do not take it at all; then the one that was made structural has to do.
func (d *document) cases(t *testing.T, schema []byte) string {
	t.Helper()
	lines := d.sections["cases.jsonl"]
	if lines == nil {
		return ""
	}
	s, err := espalier.Compile(schema, d.compile)
	if refused := new(espalier.SchemaError); errors.As(err, &refused) {
		o := d.compile
		o.ValidationOnly = true
		s, err = espalier.Compile(schema, o)
		if structural := d.input(t, "structural"); err != nil && structural != nil {
			s, err = espalier.Compile(structural, d.compile)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for line := range strings.Lines(string(lines)) {
		v, err := s.Validate([]byte(line), espalier.ValidateOptions{})
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		b.WriteString(line)
		if v.Valid() {
			b.WriteString("  valid\n")
		}
		for e := range strings.Lines(renderErrors(v)) {
			b.WriteString("  " + e)
		}
	}
	return b.String()
}

// published returns the schema with its unions unfolded, which has to pass the
// check as the schema does, and to give the object the same result.
func (d *document) published(t *testing.T, schema, object []byte) string {
	t.Helper()
	out, err := espalier.UnfoldUnions(schema)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := espalier.UnfoldUnions(out); err != nil || !bytes.Equal(again, out) {
		t.Errorf("published again the schema is %s (%v)", again, err)
	}
	before, err := espalier.Check(schema, d.check)
	if err != nil {
		t.Fatal(err)
	}
	after, err := espalier.Check(out, d.check)
	if err != nil || renderFindings(after) != renderFindings(before) {
		t.Errorf("in the published schema the check finds\n%s(%v)", renderFindings(after), err)
	}
	if object != nil && (d.validated(t, out, object) == "") != (d.validated(t, schema, object) == "") {
		t.Errorf("the published schema says %q", d.validated(t, out, object))
	}
	return indent(t, out)
}

func renderErrors(v espalier.Validation) string {
	var b strings.Builder
	for i := range v.Errors {
		b.WriteString(v.Errors[i].Error() + "\n")
	}
	return b.String()
}

func renderFindings(findings []finding.Finding) string {
	var b strings.Builder
	for _, f := range findings {
		fmt.Fprintf(&b, "%s [%s] %s\n", f.Severity, f.Check, f.Error())
	}
	return b.String()
}

func hasErrors(findings []finding.Finding) bool {
	return slices.ContainsFunc(findings, func(f finding.Finding) bool { return f.Severity == finding.Error })
}

// renderReport sorts by path and leaves out reasons and suggestions: the
// documents say what is dropped, no more.
func renderReport(r *espalier.Report) string {
	changes := slices.Clone(r.Changes)
	slices.SortStableFunc(changes, func(a, b espalier.Change) int { return strings.Compare(a.Path, b.Path) })
	var b strings.Builder
	for _, c := range changes {
		fmt.Fprintf(&b, "%s %s\n", c.What, c.Path)
	}
	return b.String()
}

func unionOf(r *espalier.Report) (union espalier.Changes) {
	for _, c := range r.Changes {
		union |= c.What
	}
	return union
}

func skeletonOf(t *testing.T, schema []byte) []byte {
	t.Helper()
	d, err := jsondoc.Parse(schema, jsondoc.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Release()
	s, problems := syntax.Parse(d, jsondoc.Root)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	out, err := json.Marshal(skeleton(s).schema())
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func valueOf(t *testing.T, object []byte) map[string]any {
	t.Helper()
	d, err := jsondoc.Parse(object, jsondoc.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Release()
	value, ok := d.Any(jsondoc.Root).(map[string]any)
	if !ok {
		t.Fatal("the object is not an object")
	}
	return value
}

// indent renders JSON for reading: two spaces, sorted keys, nothing escaped
// that need not be.
func indent(t *testing.T, document []byte) string {
	t.Helper()
	if len(document) == 0 {
		return ""
	}
	var value any
	in := json.NewDecoder(bytes.NewReader(document))
	in.UseNumber()
	if err := in.Decode(&value); err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	out := json.NewEncoder(&b)
	out.SetEscapeHTML(false)
	out.SetIndent("", "  ")
	if err := out.Encode(value); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// write replaces the expectations in the archive by what a run produced. A new
// section goes where expectations says, after the inputs.
func (d *document) write(t *testing.T, file string, got map[string]string) {
	t.Helper()
	var out []txtar.File
	for _, f := range d.archive.Files {
		if slices.Contains(expectations, f.Name) {
			if got[f.Name] == "" {
				continue
			}
			f.Data = []byte(got[f.Name])
			delete(got, f.Name)
		}
		out = append(out, f)
	}
	for _, name := range expectations {
		if got[name] != "" {
			out = append(out, txtar.File{Name: name, Data: []byte(got[name])})
		}
	}
	d.archive.Files = out
	if err := os.WriteFile(file, txtar.Format(d.archive), 0o644); err != nil {
		t.Fatal(err)
	}
}
