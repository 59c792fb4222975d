package fix_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/tools/txtar"
	"sigs.k8s.io/yaml"

	"github.com/espalier-dev/espalier"
	"github.com/espalier-dev/espalier/crd"
	"github.com/espalier-dev/espalier/crd/cel"
	"github.com/espalier-dev/espalier/crd/fix"
	"github.com/espalier-dev/espalier/crd/manifest"
	"github.com/espalier-dev/espalier/crd/splice"
	"github.com/espalier-dev/espalier/finding"
	"github.com/espalier-dev/espalier/internal/compile"
	"github.com/espalier-dev/espalier/internal/costtest"
)

var update = flag.Bool("update", false, "rewrite the archives in testdata")

// TestGoldenCases runs the archives of testdata. in.yaml is a CRD, or a schema
// to be put into one; want.yaml is the same after the edits, made in the text;
// edits.txt and notes.txt are what Definition says.
func TestGoldenCases(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			archive := txtar.Parse(data)
			got := run(t, archive.Files[0].Data)
			got.Comment = archive.Comment
			if out := txtar.Format(got); *update {
				if err := os.WriteFile(file, out, 0o644); err != nil {
					t.Fatal(err)
				}
			} else if !bytes.Equal(out, data) {
				t.Errorf("got\n%s\nwant\n%s", out, data)
			}
		})
	}
}

// run fixes a CRD and checks what must hold for all of them.
func run(t *testing.T, in []byte) *txtar.Archive {
	t.Helper()
	document := in
	schema := !bytes.Contains(in, []byte("kind: CustomResourceDefinition"))
	if schema {
		document = wrap(in)
	}
	docs, err := manifest.Parse(&manifest.File{Text: document})
	if err != nil {
		t.Fatal(err)
	}
	asJSON := docs[0].JSON
	r, err := fix.CRD(asJSON)
	if err != nil {
		t.Fatal(err)
	}
	check(t, asJSON, r)
	edited, err := splice.Apply(document, 0, splices(r.Edits))
	if err != nil {
		t.Fatal(err)
	}
	editedJSON, err := yaml.YAMLToJSON(edited)
	if err != nil {
		t.Fatal(err)
	}
	if !equal(t, editedJSON, r.JSON) {
		t.Errorf("the edits make\n%s\nbut the result is\n%s", editedJSON, r.JSON)
	}
	var edits, notes bytes.Buffer
	for _, e := range r.Edits {
		fmt.Fprintf(&edits, "%s %s [%s] %s\n", e.Op, short(e.Pointer), e.Check, e.Why)
	}
	for _, n := range r.Notes {
		fmt.Fprintf(&notes, "%s %s [%s] %s\n", n.Kind, short(n.Pointer), n.Check, n.Text)
	}
	if schema {
		edited = unwrap(edited)
	}
	return &txtar.Archive{Files: []txtar.File{
		{Name: "in.yaml", Data: in}, {Name: "want.yaml", Data: edited},
		{Name: "edits.txt", Data: edits.Bytes()}, {Name: "notes.txt", Data: notes.Bytes()},
	}}
}

const inCRD = "/spec/versions/0/schema/openAPIV3Schema"

func short(pointer string) string {
	return strings.Replace(pointer, inCRD, "…", 1)
}

const header = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: trees.orchard.example
spec:
  group: orchard.example
  scope: Namespaced
  names: {kind: Tree, plural: trees}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
`

const indent = "        "

func wrap(schema []byte) []byte {
	out := []byte(header)
	for line := range bytes.Lines(schema) {
		out = append(append(out, indent...), line...)
	}
	return out
}

func unwrap(document []byte) []byte {
	var out []byte
	for line := range bytes.Lines(bytes.TrimPrefix(document, []byte(header))) {
		out = append(out, bytes.TrimPrefix(line, []byte(indent))...)
	}
	return out
}

func splices(edits []fix.Edit) []splice.Edit {
	out := make([]splice.Edit, len(edits))
	for i, e := range edits {
		out[i] = splice.Edit{Op: splice.Op(e.Op), Pointer: e.Pointer, From: e.From, Value: e.Value, Before: e.Before}
	}
	return out
}

func equal(t *testing.T, a, b []byte) bool {
	t.Helper()
	var x, y any
	if err := json.Unmarshal(a, &x); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &y); err != nil {
		t.Fatal(err)
	}
	return reflect.DeepEqual(x, y)
}

// check is what holds for every CRD: the result is accepted as
// structural, or there is a note that says what is not; and fixing it again
// does nothing.
func check(t *testing.T, document []byte, r fix.Result) {
	t.Helper()
	if r.Changed != (len(r.Edits) > 0) {
		t.Errorf("Changed is %v with %d edits", r.Changed, len(r.Edits))
	}
	if !r.Changed && !bytes.Equal(r.JSON, document) {
		t.Error("the CRD has changed without edits")
	}
	var value any
	if err := json.Unmarshal(document, &value); err != nil {
		t.Fatal(err)
	}
	patched, err := splice.Patch(value, splices(r.Edits))
	if err != nil {
		t.Fatalf("the edits do not fit: %v", err)
	}
	raw, err := json.Marshal(patched)
	if err != nil {
		t.Fatal(err)
	}
	if !equal(t, raw, r.JSON) {
		t.Errorf("the edits make\n%s\nbut the result is\n%s", raw, r.JSON)
	}
	cannot := false
	for _, n := range r.Notes {
		cannot = cannot || n.Kind == fix.Cannot
		if n.Text == "" || !known(n.Check) {
			t.Errorf("a note without text, or with an unknown rule: %+v", n)
		}
	}
	for _, e := range r.Edits {
		if e.Why == "" || !known(e.Check) {
			t.Errorf("an edit without a reason, or with an unknown rule: %+v", e)
		}
	}
	after, err := crd.Parse(r.JSON)
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range after.Versions {
		if v.Schema == nil {
			continue
		}
		found, err := espalier.Check(v.Schema, espalier.CheckOptions{StatusSubresource: v.Status})
		if err != nil && !cannot {
			t.Errorf("the schema cannot be read: %v", err)
		}
		for _, x := range found {
			if x.Severity == finding.Error && !cannot {
				t.Errorf("the schema is refused, and no note says so: %s\n%s", x.Error(), v.Schema)
			}
		}
	}
	again, err := fix.CRD(r.JSON)
	if err != nil {
		t.Fatal(err)
	}
	if again.Changed {
		t.Errorf("fixing the result changes it again: %+v\n%s", again.Edits[0], r.JSON)
	}
}

// TestHostile fixes schemas that are large in one way or another, in a time
// that says that the cost is not quadratic.
func TestHostile(t *testing.T) {
	if testing.Short() {
		t.Skip("one goroutine with much to do: it runs without the race detector")
	}
	const many = 20_000
	repeat := func(n int, f func(i int) string) string {
		var list []string
		for i := range n {
			list = append(list, f(i))
		}
		return strings.Join(list, ",")
	}
	nested := func(n int, open, end string) string {
		return strings.Repeat(open, n) + "{}" + strings.Repeat(end, n)
	}
	for name, schema := range map[string]string{
		"fields":      `{"properties":{` + repeat(many, func(i int) string { return fmt.Sprintf(`"f%d":{"minLength":1}`, i) }) + `}}`,
		"branches":    `{"oneOf":[` + repeat(many, func(i int) string { return fmt.Sprintf(`{"properties":{"f%d":{"type":"string"}}}`, i) }) + `]}`,
		"one field":   `{"anyOf":[` + repeat(many, func(int) string { return `{"properties":{"f":{"type":"string"}}}` }) + `]}`,
		"metadata":    `{"properties":{"metadata":{"properties":{` + repeat(many, func(i int) string { return fmt.Sprintf(`"f%d":{}`, i) }) + `}}}}`,
		"deep fields": nested(3000, `{"properties":{"f":`, `}}`),
		"deep items":  nested(3000, `{"items":`, `}`),
		"deep oneOf":  nested(3000, `{"oneOf":[{"type":"string"},`, `]}`),
		"deep not":    nested(3000, `{"not":{"type":"string","properties":{"f":`, `}}}`),
		"references": `{"properties":{"f":{"$ref":"#/definitions/d0"}},"definitions":{` + repeat(40, func(i int) string {
			return fmt.Sprintf(`"d%d":{"properties":{"a":{"$ref":"#/definitions/d%d"},"b":{"$ref":"#/definitions/d%d"}}}`, i, i+1, i+1)
		}) + `,"d40":{"type":"string"}}}`,
		"maps in branches": `{"allOf":[` + nested(12, `{"additionalProperties":{"allOf":[`, `]}}`) + `],"properties":{` + repeat(many, func(i int) string { return fmt.Sprintf(`"f%d":{}`, i) }) + `}}`,
	} {
		t.Run(name, func(t *testing.T) {
			document := fmt.Appendf(nil, `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","spec":{"versions":[{"name":"v1","schema":{"openAPIV3Schema":%s}}]}}`, schema)
			var r fix.Result
			var err error
			costtest.Within(t, 20*time.Second, func() { r, err = fix.CRD(document) })
			if err != nil {
				t.Fatal(err)
			}
			if !r.Changed && len(r.Notes) == 0 {
				t.Error("nothing is changed, and nothing said")
			}
		})
	}
}

func known(check finding.ID) bool {
	all := slices.Concat(compile.Checks, crd.Checks, cel.Checks)
	return check == "syntax" || slices.ContainsFunc(all, func(r finding.Check) bool { return r.ID == check })
}

// FuzzCRD fixes arbitrary CRDs.
func FuzzCRD(f *testing.F) {
	for _, archive := range archives(f) {
		if document, err := yaml.YAMLToJSON(archive.Files[0].Data); err == nil {
			f.Add(document)
		}
	}
	f.Fuzz(func(t *testing.T, document []byte) {
		r, err := fix.CRD(document)
		if err == nil {
			check(t, document, r)
		}
	})
}

// FuzzSchema fixes arbitrary schemas.
func FuzzSchema(f *testing.F) {
	for _, archive := range archives(f) {
		if schema, err := yaml.YAMLToJSON(archive.Files[0].Data); err == nil {
			f.Add(schema, false)
		}
	}
	f.Add([]byte(`{"properties":{"a":{"oneOf":[{"type":"integer"},{"type":"string"}]}},"not":{"properties":{"b":{"type":"string"}}}}`), true)
	f.Fuzz(func(t *testing.T, schema []byte, beta bool) {
		if !json.Valid(schema) {
			return
		}
		version := "v1"
		if beta {
			version = "v1beta1"
		}
		document := fmt.Appendf(nil, `{"apiVersion":"apiextensions.k8s.io/%s","kind":"CustomResourceDefinition","spec":{"versions":[{"name":"v1","schema":{"openAPIV3Schema":%s}}]}}`, version, schema)
		r, err := fix.CRD(document)
		if err != nil {
			t.Fatal(err)
		}
		check(t, document, r)
	})
}

func archives(tb testing.TB) []*txtar.Archive {
	tb.Helper()
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		tb.Fatalf("no cases: %v", err)
	}
	var list []*txtar.Archive
	for _, file := range files {
		archive, err := txtar.ParseFile(file)
		if err != nil {
			tb.Fatal(err)
		}
		list = append(list, archive)
	}
	return list
}
