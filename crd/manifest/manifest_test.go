package manifest

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	kubectl "sigs.k8s.io/yaml"
)

func read(t *testing.T, text string) []*Document {
	t.Helper()
	docs, err := Parse(&File{Name: "a.yaml", Text: []byte(text)})
	if err != nil {
		t.Fatal(err)
	}
	return docs
}

// scalarsOfYAML are plain scalars whose meaning differs among the versions of
// YAML and their libraries.
var scalarsOfYAML = strings.Fields(`yes no on off y n Y N true True TRUE tRue false null Null NULL ~ 0 1 -1 +1 007 0o7 0x1F 0b11
	1_000 1.5 .5 5. 1e3 1E+3 .inf -.inf .nan 12:30:45 2001-12-14 2001-12-14t21:59:43.10-05:00 << = 9223372036854775807
	9223372036854775808 18446744073709551616 -9223372036854775809 1.0 0.1 a-b ../x 1.2.3 v1 foo@bar !x !!str !!int,5 1k tru
	Yes NO oN ON oFF 0644 089 1. -0 -0.0 +.inf 1e400 1- 2+ aGk=`)

func TestScalarsAsKubectl(t *testing.T) {
	for _, s := range scalarsOfYAML {
		for _, text := range []string{
			"a: " + s + "\n", "a: '" + s + "'\n", "- " + s + "\n", "? " + s + "\n: 1\n", "a: !!str " + s + "\n", "a: !!int " + s + "\n",
			"a: !!float " + s + "\n", "a: !!bool " + s + "\n", "a: !!null " + s + "\n", "a: !!binary " + s + "\n", "? !!binary " + s + "\n: 1\n",
		} {
			compare(t, text)
		}
	}
}

// compare demands that a document means what it means to kubectl, unless one of
// the two libraries refuses it.
func compare(t *testing.T, text string) {
	t.Helper()
	want, err := kubectl.YAMLToJSON([]byte(text))
	if err != nil {
		return
	}
	docs, err := Parse(&File{Name: "a.yaml", Text: []byte(text)})
	if err != nil || len(docs) == 0 {
		return
	}
	var a, b any
	if err := json.Unmarshal(docs[0].JSON, &a); err != nil {
		t.Errorf("%q: %s: %v", text, docs[0].JSON, err)
		return
	}
	if err := json.Unmarshal(want, &b); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(a, b) {
		t.Errorf("%q: %s, by kubectl %s", text, docs[0].JSON, want)
	}
}

func TestDocuments(t *testing.T) {
	for text, want := range map[string]string{
		"a: 1\n---\n# nothing\n---\nb: [x, 'y']\n":         `{"a":1} {"b":["x","y"]}`,
		"base: &b {x: 1, z: 2}\nthis:\n  <<: *b\n  z: 3\n": `{"base":{"x":1,"z":2},"this":{"z":3,"x":1}}`,
		"- &a {x: 1}\n- &b {x: 2, z: 3}\n- <<: [*a, *b]\n": `[{"x":1},{"x":2,"z":3},{"x":1,"z":3}]`,
		"a: &l [1]\nb: *l\n":                               `{"a":[1],"b":[1]}`,
		"a: |\n  one\n  two\nb: >-\n  one\n  two\n":        `{"a":"one\ntwo\n","b":"one two"}`,
		"a: 1\na: 2\n":             `{"a":1,"a":2}`,
		"{\"a\": 1}\n{\"b\": 2}\n": `{"a": 1} {"b": 2}`,
		"{\"a\": 1,} # not JSON\n": `{"a":1}`,
		"1: x\ny: v\n1.5: z\n":     `{"1":"x","true":"v","1.5":"z"}`,
		"kind: List\nitems:\n- kind: A\n- kind: BList\n  items: [{kind: C}]\n": `{"kind":"A"} {"kind":"BList","items":[{"kind":"C"}]}`,
		"%YAML 1.1\n---\na: 1\n...\n---\nb: 2\n":                               `{"a":1} {"b":2}`,
		"--- {a: 1}\n---\r\nb: |\n  ---\n--- # c\n":                            `{"a":1} {"b":"---\n"}`,
		"kind: 00\nitems: [1]\n":                                               `{"kind":0,"items":[1]}`,
		"# comment only\n":                                                     ``,
		"apiVersion: v1\nkind: List\nitems: none\n":                            `{"apiVersion":"v1","kind":"List","items":"none"}`,
		"\ufeff{\"a\": \"\u00e4\"}":                                            "{\"a\":\"\u00e4\"}",
		"a: \"\\u00e4\\n\"\n":                                                  "{\"a\":\"\u00e4\\n\"}",
	} {
		var got []string
		for _, d := range read(t, text) {
			for _, o := range d.Split() {
				got = append(got, string(o.JSON))
			}
		}
		if g := strings.Join(got, " "); g != want {
			t.Errorf("%q:\n got %s\nwant %s", text, g, want)
		}
	}
}

func TestRefused(t *testing.T) {
	bomb := "a: &a [x,x,x,x,x,x,x,x,x,x]\n"
	for c := 'b'; c < 'l'; c++ {
		p := string(c - 1)
		bomb += string(c) + ": &" + string(c) + " [*" + strings.Repeat(p+",*", 9) + p + "]\n"
	}
	for text, want := range map[string]string{
		"a: 1\nb: [\n":               "a.yaml:2: did not find expected node content",
		"x: 1\n---\na: 1\nb: [\n":    "a.yaml:4: did not find",
		"x: 1\n---\n~: 1\n":          "a.yaml:3: a key must be",
		"a: 1\nb:\n- c\nd\n- e":      "a.yaml:4: could not find expected ':'",
		"a:\n  b: 1\n c: 2\n":        "a.yaml:3: did not find expected key",
		"a: b: c\n":                  "a.yaml:1: mapping values are not allowed in this context",
		"a: &a [*a]\n":               `a.yaml:1: anchor "a" contains itself`,
		"a: &a\n  <<: *a\n  b: 1\n":  `contains itself`,
		"<<: 1\n":                    "a.yaml:1: a merge key (<<) takes a mapping or a list of mappings",
		"? [1]\n: 2\n":               "a.yaml:1: a key must be a scalar",
		"~: 2\n":                     "a.yaml:1: a key must be a string, a number or a boolean",
		"a: *nothing\n":              "unknown anchor 'nothing' referenced",
		bomb:                         "aliases expand this document beyond 16 MiB",
		strings.Repeat("[", 20000):   "",
		strings.Repeat("- ", 100000): "",
	} {
		_, err := Parse(&File{Name: "a.yaml", Text: []byte(text)})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: %v", text, err)
		}
	}
}

func TestPositions(t *testing.T) {
	text := `# head
apiVersion: v1   # comment
kind: List
items:
- spec:
    "a b": {x: [1, "two"]}
    rule: |
      self.x > 1 &&
        self.y
    folded: >-
      self.a
      == self.b
    plain: self.a == self.b
    empty:
    ä: ü
`
	o := read(t, text)[0].Split()[0]
	f := o.File
	show := func(p Position) string {
		line := []rune(f.Line(p.Line))
		if p.Column < 1 || p.EndColumn-1 > len(line) {
			return "outside"
		}
		return string(line[p.Column-1 : p.EndColumn-1])
	}
	for pointer, want := range map[string]string{
		"/spec/a b":       "{",
		"/spec/a b/x/1":   `"two"`,
		"/spec/rule":      "|",
		"/spec/plain":     "self.a == self.b",
		"/spec/ä":         "ü",
		"/spec":           `"a b"`,
		"/spec/nowhere/x": "spec",
		"/spec/a b/y":     `"a b"`,
	} {
		if p, _ := o.Locate(pointer); show(p) != want {
			t.Errorf("%s: %q at %v", pointer, show(p), p)
		}
	}
	for pointer, want := range map[string]string{"/spec/a b": `"a b"`, "/spec/rule": "rule", "/spec/empty": "empty", "/spec/a b/x/0": "1", "": "spec"} {
		if p, ok := o.LocateKey(pointer); show(p) != want || !ok {
			t.Errorf("key of %s: %q at %v", pointer, show(p), p)
		}
	}
	// Inside strings, in every style.
	for _, c := range []struct {
		in, of string
		line   int
	}{
		{"self.y", `1 \u0026\u0026\n  self.y`, 9}, {"== self.b", "self.a == self.b", 12}, {"1 ", `self.x \u003e 1`, 8},
	} {
		i := strings.Index(string(o.JSON), c.of)
		at := i + strings.Index(string(o.JSON[i:]), c.in)
		p := o.At(at)
		if p.Line != c.line || !strings.HasPrefix(string([]rune(f.Line(p.Line))[p.Column-1:]), c.in[:1]) {
			t.Errorf("%q: line %d column %d: %s", c.in, p.Line, p.Column, f.Line(p.Line))
		}
	}
	for at, want := range map[string]string{`{"x":`: `"a b"`, `[1`: "x", `{"a b"`: "spec", `"self.a == self.b","empty"`: "self.a == self.b"} {
		if p := o.Of(strings.Index(string(o.JSON), at)); show(p) != want {
			t.Errorf("of %s: %q at %v", at, show(p), p)
		}
	}
	j := read(t, "{\n \"a\": {\n  \"b\": true}}")[0]
	if p, ok := j.Locate("/a/b"); !ok || p != (Position{3, 8, 12}) {
		t.Errorf("in JSON: %v", p)
	}
	if p := j.Of(strings.LastIndex(string(j.JSON), "{")); p != (Position{2, 2, 5}) {
		t.Errorf("in JSON: %v", p)
	}
}

func TestExpand(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"b.yaml", "a/c.yml", "a/d.json", "a/e.txt", ".git/f.yaml", "a/.hidden.yaml", "skip/g.yaml"} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("a: 1"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	skip := func(p string) bool { return filepath.Base(p) == "skip" }
	files, err := Expand([]string{Stdin, filepath.Join(dir, "b.yaml"), dir, filepath.Join(dir, "**/*.y*ml")}, skip)
	if err != nil {
		t.Fatal(err)
	}
	hidden, err := Expand([]string{filepath.Join(dir, "*/.*.yaml")}, nil)
	if err != nil || len(hidden) != 1 || filepath.Base(hidden[0]) != ".hidden.yaml" {
		t.Errorf("a pattern that asks for hidden files: %v %v", hidden, err)
	}
	for i := range files {
		files[i] = strings.TrimPrefix(filepath.ToSlash(files[i]), filepath.ToSlash(dir)+"/")
	}
	if got := strings.Join(files, " "); got != "- b.yaml a/c.yml a/d.json skip/g.yaml" {
		t.Error(got)
	}
	for _, p := range []string{"nothing.yaml", "nothing/*.yaml", filepath.Join(dir, "a", "e.txt", "x")} {
		if _, err := Expand([]string{p}, nil); err == nil {
			t.Errorf("%s expands", p)
		}
	}
	f, err := Open(Stdin, strings.NewReader("a: 1"))
	if err != nil || f.Name != "<stdin>" || string(f.Text) != "a: 1" {
		t.Error(f, err)
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range scalarsOfYAML {
		f.Add("a: " + s + "\nb:\n- " + s)
	}
	f.Add("a: &a {b: 1}\nc: {<<: *a, d: |\n  x}\n---\n{}")
	f.Fuzz(func(t *testing.T, text string) {
		docs, err := Parse(&File{Name: "a.yaml", Text: []byte(text)})
		if err != nil {
			return
		}
		for _, d := range docs {
			if !json.Valid(d.JSON) {
				t.Fatalf("%q: %q is no JSON", text, d.JSON)
			}
			for _, o := range d.Split() {
				if p, _ := o.Locate("/spec"); p.Line < 1 {
					t.Fatalf("%q: %s is nowhere", text, o.JSON)
				}
			}
			for at := range len(d.JSON) + 1 {
				if p := d.At(at); p.Line < 1 || p.Line > len(d.File.starts()) || p.EndColumn <= p.Column {
					t.Fatalf("%q: offset %d is at %v", text, at, p)
				}
			}
		}
		// kubectl's library knows one document, and another way of the
		// non-specific tag.
		if len(docs) == 1 && !strings.Contains(text, "---") && !strings.ContainsAny(text, ".!%") && !looksLikeJSON([]byte(text)) {
			compare(t, text)
		}
	})
}
