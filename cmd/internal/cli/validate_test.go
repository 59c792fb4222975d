package cli

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/espalier-dev/espalier/crd/manifest"
	"github.com/espalier-dev/espalier/docs"
	"github.com/espalier-dev/espalier/finding"
	"github.com/espalier-dev/espalier/internal/jsondoc"
)

// keywordsInSource matches where the engine names the keyword of a violation.
var keywordsInSource = []*regexp.Regexp{
	regexp.MustCompile(`Keyword: +"([^"]+)"`),
	regexp.MustCompile(`Keyword = .*"([^"]+)"`),
	regexp.MustCompile(`\.logicalError\(v, "(\w+)"`),
	regexp.MustCompile(`\.size\(.*"(\w+)", "\w+"\)`),
	regexp.MustCompile(`\.size\(.*"(\w+)"\)`),
	regexp.MustCompile(`plan\.\w+: +\{"(\w+)", "`),
	regexp.MustCompile(`\.outOfRange\([^"]*"\w+", "(\w+)"`),
}

func TestEveryKeywordHasACheck(t *testing.T) {
	found := make(map[string]bool)
	for _, dir := range []string{"../../../internal/exec", "../../../crd/cel"} {
		files, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil || len(files) == 0 {
			t.Fatal(files, err)
		}
		for _, f := range files {
			text, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range keywordsInSource {
				for _, m := range r.FindAllStringSubmatch(string(text), -1) {
					if !strings.HasSuffix(f, "_test.go") {
						found[m[1]] = true
					}
				}
			}
		}
	}
	for k := range found {
		if checkOfKeyword[k] == "" {
			t.Errorf("no rule for violations of %s", k)
		}
	}
	for k := range checkOfKeyword {
		if !found[k] {
			t.Errorf("the engine has no violations of %s", k)
		}
	}
}

func TestObjectChecksHavePages(t *testing.T) {
	count := make(map[finding.ID]int)
	for _, r := range catalog() {
		count[r.ID]++
	}
	for _, r := range objectChecks {
		if count[r.ID] != 1 {
			t.Errorf("there are %d rules called %s", count[r.ID], r.ID)
		}
		page := strings.Join(strings.Fields(docs.Page(r.ID)), " ")
		if !strings.HasPrefix(page, "# "+string(r.ID)+" "+r.Explanation+" ") || docs.Fix(r.ID) == "" {
			t.Errorf("the page of %s does not begin with its explanation, or says nothing about mending", r.ID)
		}
		if !strings.Contains(page, " Severity: "+r.Severity.String()+" · Source: "+r.Source+" ") {
			t.Errorf("the page of %s has another severity or source", r.ID)
		}
	}
}

func documentOf(t testing.TB, text string) *manifest.Document {
	t.Helper()
	docs, err := manifest.Parse(&manifest.File{Name: "a.yaml", Text: []byte(text)})
	if err != nil || len(docs) == 0 {
		t.Fatal(text, err)
	}
	return docs[0].Split()[0]
}

func TestLocate(t *testing.T) {
	d := documentOf(t, `z: 1
list:
- x: 1
- {w: [a, b], "a/b": 2}
same: 1
same: {v: 2}
`)
	// As it is stored: sorted, with defaults.
	object := `{"added":{"deep":[1]},"list":[{"x":1},{"a/b":2,"more":true,"w":["a","b","c"]}],"same":{"v":2},"z":1}`
	for _, c := range []struct {
		at, pointer  string
		line, column int
		there        bool
	}{
		{`{"added"`, "", 1, 1, true},
		{`1}]`, "", 0, 0, false}, // nothing begins here
		{`[1]`, "/added/deep", 1, 1, false},
		{`"list"`, "/list", 2, 1, true},
		{`[{"x"`, "/list", 2, 1, true},
		{`{"x"`, "/list/0", 3, 3, true},
		{`1},{`, "/list/0/x", 3, 6, true},
		{`2,"more"`, "/list/1/a~1b", 4, 22, true},
		{`true`, "/list/1/more", 4, 3, false},
		{`"b","c"`, "/list/1/w/1", 4, 11, true},
		{`"c"]`, "/list/1/w/2", 4, 4, false}, // the list is, and its key is shown
		{`2},"z"`, "/same/v", 6, 11, true},
		{`1}`, "/list/0/x", 3, 6, true},
	} {
		offset := strings.Index(object, c.at)
		l, err := locate(d, []byte(object), []int{offset})
		if err != nil {
			t.Fatal(err)
		}
		s, ok := l.spots[offset]
		if !ok {
			if c.line != 0 {
				t.Errorf("%s is not found", c.at)
			}
			continue
		}
		p := l.position(s)
		if s.pointer != c.pointer || s.there != c.there || p.Line != c.line || p.Column != c.column {
			t.Errorf("%s: %q, there: %v, at %d:%d", c.at, s.pointer, s.there, p.Line, p.Column)
		}
		l.source.Release()
	}
}

func TestBelow(t *testing.T) {
	doc, err := jsondoc.Parse([]byte(`{"a":{"b":[{"c":1}],"d.e":2}}`), jsondoc.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	defer doc.Release()
	for path, want := range map[string]string{
		"": `{"a"`, "a": `"a"`, ".a": `"a"`, "a.b": `"b"`, ".a.b[0]": `{"c"`, "a.b[0].c": `"c"`, "a[d.e]": `"d.e"`, "a['b']": `"b"`,
		"a.x": `"a"`, "a.b[7]": `"b"`, "a.b[0].c.d": `"c"`, "[": `{"a"`, "..": `{"a"`, "a..b": `"a"`,
	} {
		s := below(doc, jsondoc.Root, path)
		if got := string(doc.Raw(s.value)); !strings.HasPrefix(got, want) {
			t.Errorf("%q leads to %s", path, got)
		}
	}
}

func TestNearest(t *testing.T) {
	for name, want := range map[string]string{
		"glod": "gold", "Gold": "gold", "sliver": "silver", "gold": "", "x": "", "platinum": "", "fre": "free", strings.Repeat("g", 100): "",
	} {
		if got := nearest(name, []string{"silver", "gold", "free"}); got != want {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// scenario returns a file of a script.
func scenario(t testing.TB, script, file string) []byte {
	t.Helper()
	archive, err := txtar.ParseFile(filepath.Join("testdata", "script", script))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range archive.Files {
		if f.Name == file {
			return f.Data
		}
	}
	t.Fatal(script, "has no", file)
	return nil
}

func scenarioResources(t testing.TB) resources {
	t.Helper()
	all := make(resources)
	if err := all.add(documentOf(t, string(scenario(t, "validate.txtar", "crd.yaml"))), nil); err != nil {
		t.Fatal(err)
	}
	return all
}

// FuzzValidate validates whatever there is: it does not panic, and what it finds is
// in the file.
func FuzzValidate(f *testing.F) {
	for _, name := range []string{"bad.yaml", "good.yaml", "unknown.yaml", "strange.yaml"} {
		f.Add(string(scenario(f, "validate.txtar", name)), false)
	}
	for _, name := range []string{"new.yaml", "status.yaml", "moved.yaml"} {
		f.Add(string(scenario(f, "validate_update.txtar", name)), true)
	}
	f.Add("apiVersion: example.com/v1\nkind: Web\nmetadata: {name: a, labels: {a: 1}, ownerReferences: [{b: 1}], x: 2}\nspec: &s {ports: [{<<: {}}]}\n", false)
	all := scenarioResources(f)
	f.Fuzz(func(t *testing.T, text string, update bool) {
		file := &manifest.File{Name: "a.yaml", Text: []byte(text)}
		docs, err := manifest.Parse(file)
		if err != nil {
			return
		}
		v := &validator{resources: all, options: validateOptions{fields: fieldsStrict}}
		var found findings
		for _, d := range docs {
			for _, object := range d.Split() {
				if update {
					v.old = map[identity]*manifest.Document{all.identity(typeMetaOf(object)): object}
				}
				v.document(object, &found)
			}
		}
		for _, d := range found.diagnostics {
			if _, ok := checkByID(d.Check); !ok || d.Message == "" || d.Why == "" {
				t.Errorf("%q: incomplete: %+v", text, d)
			}
			if d.Line < 1 || d.Line > file.Lines()+1 || d.Column < 1 || d.EndColumn <= d.Column {
				t.Errorf("%q: %s is at %s", text, d.Message, d.Place)
			}
		}
	})
}
