package manifest

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Lines and columns count from 1, columns in characters. A last line without an end counts.
func TestLines(t *testing.T) {
	for _, c := range []struct {
		text  string
		lines []string
	}{
		{"", []string{""}},
		{"a", []string{"a"}},
		{"a\n", []string{"a"}},
		{"a\nb", []string{"a", "b"}},
		{"a\r\nb\r\n", []string{"a", "b"}},
		{"\n\nc\n", []string{"", "", "c"}},
	} {
		f := &File{Text: []byte(c.text)}
		if f.Lines() != len(c.lines) {
			t.Errorf("%q has %d lines", c.text, f.Lines())
		}
		for i, want := range c.lines {
			if got := f.Line(i + 1); got != want {
				t.Errorf("line %d of %q is %q", i+1, c.text, got)
			}
		}
		if f.Line(0) != "" || f.Line(-1) != "" || f.Line(len(c.lines)+2) != "" {
			t.Errorf("%q has lines before the first or after the last", c.text)
		}
		if after, before := f.Offset(len(c.lines)+2, 1), f.Offset(0, 1); after != len(c.text) || before != len(c.text) {
			t.Errorf("lines that %q does not have are at bytes %d and %d", c.text, before, after)
		}
	}
}

// A position covers a word: what a reader would mark.
func TestTokens(t *testing.T) {
	for text, want := range map[string]string{
		"a: b":          "b",
		"a: b c  ":      "b c",
		"a: b # no":     "b",
		"a: b#c":        "b#c",
		"a: http://x:1": "http://x:1",
		`a: "b \" c" `:  `"b \" c"`,
		`a: "b \\" # c`: `"b \\"`,
		`a: 'b '' c'`:   `'b '`, // the first part of the text
		`a: "b: c"`:     `"b: c"`,
		"a: \"b\n  c\"": `"b`, // what is on the first line
		"a: 'b\n  c'":   `'b`,
		"a: [b, c]":     "[",
		"a: {b: c}":     "{",
		"a: |\n  x":     "|",
		"a: >-\n  x":    ">",
		"ä: ü":          "ü",
		"a: äöü # no":   "äöü",
		"{a: b, c: d}":  "b",
		"{a: b}":        "b",
		"{x: [], a: b}": "b",
	} {
		d := read(t, text)[0]
		p, ok := d.Locate("/a")
		if strings.HasPrefix(text, "ä") {
			p, ok = d.Locate("/ä")
		}
		line := []rune(d.File.Line(p.Line))
		if !ok || p.EndColumn-1 > len(line) || string(line[p.Column-1:p.EndColumn-1]) != want {
			t.Errorf("%q: %v", text, p)
		}
	}
	key, ok := read(t, "first: 1\n'se cond' : 2\n")[0].LocateKey("/se cond")
	if want := (Position{2, 1, 10}); !ok || key != want {
		t.Errorf("%v", key)
	}
}

// A place inside a string, in every way to write one.
func TestInsideStrings(t *testing.T) {
	for _, c := range []struct {
		text         string
		line, column int // of X
	}{
		{"a: one X\n", 1, 8},
		{"a: oX\n", 1, 5},
		{"a: \"oX\"\n", 1, 6},
		{"{\"a\": 1,\n\"b\": \"X\"}", 2, 7},
		{"a: \"one X\"\n", 1, 9},
		{"a: 'one X'\n", 1, 9},
		{"a: |\n  one\n  X\n", 3, 3},
		{"a: |\n  one\n\n    X\n", 4, 5},
		{"a: >\n  one\n  two X\n", 3, 7},
		{"a: >\r\n  one\r\n  X\r\n", 3, 3},
		{"a: |\n\tX\n", 0, 0}, // not YAML
		{"a: one\n  two\n  X\n", 3, 3},
		{"a: äö X\n", 1, 7},
		{"a: \"äö X\"\n", 1, 8},
		{"a: \"\\u00e4 X\"\n", 1, 4}, // the file does not show the character: the string
		{"a: one\n---\na: two X\n", 3, 8},
		{"[1, one X]\n", 1, 9},
		{"{\"a\": \"one X\"}\n", 1, 12},
		{"\n {\"a\":\n \"one X\"}\n", 3, 7},
	} {
		docs, err := Parse(&File{Name: "a.yaml", Text: []byte(c.text)})
		if (err != nil) != (c.line == 0) {
			t.Errorf("%q: %v", c.text, err)
		}
		if err != nil {
			continue
		}
		d := docs[len(docs)-1]
		if p := d.At(bytes.IndexByte(d.JSON, 'X')); p.Line != c.line || p.Column != c.column || p.EndColumn <= p.Column {
			t.Errorf("%q: %v", c.text, p)
		}
	}
	d := read(t, "a: one\n")[0]
	if p := d.At(-5); p != d.At(0) {
		t.Errorf("before the beginning: %v", p)
	}
	if p := d.At(99); p.Line != 1 {
		t.Errorf("after the end: %v", p)
	}
}

// Of a list or an object, the key is shown; a key may contain quotes.
func TestOf(t *testing.T) {
	for text, want := range map[string]Position{
		"one:\n  \"a\\\"b\": {c: 1}\n":           {2, 3, 9},
		"{\n \"a\\\"b\" :\n  {\"c\": 1}}":        {2, 2, 8},
		"{\n \"a\\\\\": {\"c\": 1}}":             {2, 2, 7},
		"- x\n- {c: 1}\n":                        {2, 3, 4},
		"k: [{c: 1}]\n":                          {1, 5, 6},
		"{\"k\":[\n{\"c\": 1}]}":                 {2, 1, 2},
		"{\"k\": {\"x\": 0, \"c\": 1}, \"y\":2}": {1, 2, 5},
	} {
		d := read(t, text)[0]
		at := bytes.LastIndexByte(d.JSON[:bytes.Index(d.JSON, []byte(`"c"`))], '{')
		if got := d.Of(at); got != want {
			t.Errorf("%q: %v, not %v", text, got, want)
		}
	}
	d := read(t, "a: {c: 1}\n")[0]
	for _, at := range []int{-1, len(d.JSON), 0, 1} {
		if got := d.Of(at); got != d.At(at) {
			t.Errorf("of %d: %v, not %v", at, got, d.At(at))
		}
	}
}

// Errors have the line of what is wrong, in the file.
func TestErrorPlaces(t *testing.T) {
	for text, want := range map[string]Position{
		"a: 1\n---\nb: 1\n---\nc: [\n":    {5, 1, 2},
		"a: 1\n---\n  b: *none\n":         {3, 3, 4},
		"a: b: c\n":                       {1, 1, 2},
		"a: 1\n---\nx: &x [*x]\n":         {3, 8, 10},
		"%YAML 1.1\n---\na: 1\nb: b: c\n": {4, 1, 2},
		"a: 1\n---\n<<: [1]\n":            {3, 6, 7},
	} {
		docs, err := Parse(&File{Name: "a.yaml", Text: []byte(text)})
		var e *Error
		if !errors.As(err, &e) || e.Position != want || e.Name != "a.yaml" || e.File == nil {
			t.Errorf("%q: %+v: %v", text, e, err)
		}
		if n := strings.Count(text, "---"); !strings.HasPrefix(text, "%") && len(docs) != n {
			t.Errorf("%q: %d documents come with the error, not %d", text, len(docs), n)
		}
	}
	if got := (&Error{Name: "a.yaml", Msg: "gone"}).Error(); got != "a.yaml: gone" {
		t.Error(got)
	}
}

// The objects of a file know what they are.
func TestObjects(t *testing.T) {
	text := `apiVersion: v1
kind: List
metadata: {name: list, namespace: n}
items:
- {apiVersion: a/v1, kind: A, metadata: {name: one, namespace: s}}
- {kind: B, metadata: 1}
- {apiVersion: 1, kind: C}
---
{apiVersion: v1, kind: Lists, metadata: {name: m}, items: [{}]}
`
	objects, err := Objects(&File{Name: "a.yaml", Text: []byte(text + "---\na: [\n")})
	if err == nil || len(objects) != 4 {
		t.Fatalf("%d objects, %v", len(objects), err)
	}
	for i, want := range []Document{
		{List: "/items/0", APIVersion: "a/v1", Kind: "A", Namespace: "s", Name: "one"}, {List: "/items/1", Kind: "B"}, {List: "/items/2", Kind: "C"}, {APIVersion: "v1", Kind: "Lists", Name: "m", Index: 1},
	} {
		o := objects[i]
		if o.List != want.List || o.APIVersion != want.APIVersion || o.Kind != want.Kind || o.Namespace != want.Namespace || o.Name != want.Name || o.Index != want.Index {
			t.Errorf("object %d: %+v", i, o)
		}
		if p, ok := o.Locate("/kind"); !ok || p.Line != []int{5, 6, 7, 9}[i] {
			t.Errorf("object %d is at %v", i, p)
		}
	}
}

// A caller may append to the JSON of an object, and the others stay as they are.
func TestAppendToObjects(t *testing.T) {
	objects, err := Objects(&File{Name: "a.yaml", Text: []byte("kind: List\nitems: [{a: 1}, {b: 2}]\n")})
	if err != nil || len(objects) != 2 {
		t.Fatalf("%d objects, %v", len(objects), err)
	}
	_ = append(objects[0].JSON, "1234567"...)
	if got := string(objects[1].JSON); got != `{"b":2}` {
		t.Errorf("the second object is %s", got)
	}
}

func TestEmptyFiles(t *testing.T) {
	for _, text := range []string{"", "\n", "  \n\t\n", "---\n", "null\n", "# nothing\n"} {
		if docs, err := Objects(&File{Name: "a.yaml", Text: []byte(text)}); len(docs) > 0 || err != nil && !strings.Contains(text, "\t") {
			t.Errorf("%q: %v %v", text, docs, err)
		}
	}
}

// Merge keys: what the mapping has itself prevails, then earlier mappings, at any depth.
func TestMerges(t *testing.T) {
	for text, want := range map[string]string{
		"- &a {x: 1}\n- &b {<<: *a, w: 2}\n- {<<: *b, z: 3}\n": `[{"x":1},{"w":2,"x":1},{"z":3,"w":2,"x":1}]`,
		"- &a {x: 1, w: 1}\n- {w: 2, <<: *a}\n":                `[{"x":1,"w":1},{"w":2,"x":1}]`,
		"- &a {x: 1}\n- &b {x: 2}\n- {<<: [*b, *a]}\n":         `[{"x":1},{"x":2},{"x":2}]`,
		"{<<: {x: 1, w: {z: 2}}}":                              `{"x":1,"w":{"z":2}}`,
		"- {<<: {}}\n":                                         `[{}]`,
		"- &k key\n- {*k : 1}\n":                               `["key",{"key":1}]`,
		"\"<<\": 1\n":                                          `{"\u003c\u003c":1}`,
		"a: &a {b: 1}\nc: *a\nd: [*a, *a]\n":                   `{"a":{"b":1},"c":{"b":1},"d":[{"b":1},{"b":1}]}`,
		"# c\na: !!str 1\nb: !!int \"2\"\nc: 0o7\nd: 1e3\ne: 12345678901234567890\n": `{"a":"1","b":2,"c":7,"d":1000,"e":12345678901234567890}`,
	} {
		if got := string(read(t, text)[0].JSON); got != want {
			t.Errorf("%q:\n got %s\nwant %s", text, got, want)
		}
	}
}

// Files that are named, found below folders, or read.
func TestFiles(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	for _, name := range []string{"a/x.yaml", "a/.b/y.yaml", "c/z.json", "skip/v.yml", "none/w.txt", ".h/u.yaml"} {
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte("a: 1"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	skip := func(p string) bool { return filepath.Base(p) == "skip" || filepath.Base(p) == "z.json" }
	for _, c := range []struct {
		paths string
		skip  func(string) bool
		want  string
	}{
		{"a", nil, "a/x.yaml"},
		{".", nil, "a/x.yaml c/z.json skip/v.yml"},
		{".", skip, "a/x.yaml"},
		{"skip", skip, "skip/v.yml"}, // named itself
		{"c/z.json", skip, "c/z.json"},
		{".h", nil, ".h/u.yaml"},
		{"a a/x.yaml a", nil, "a/x.yaml"},
		{"c/*.json", skip, ""}, // it matches, and is left out
		{"**/*.y?ml", skip, "a/x.yaml"},
		{"none", nil, "<none: no file called *.yaml, *.yml or *.json is below this folder>"},
		{"x/*.yaml", nil, "<x/*.yaml: no file matches>"},
		{"x/[", nil, "<x/[: syntax error in pattern>"},
		{"x", nil, "<stat x: no such file or directory>"},
	} {
		files, err := Expand(strings.Fields(c.paths), c.skip)
		got := strings.Join(files, " ")
		if err != nil {
			got = "<" + err.Error() + ">"
		}
		if got != c.want {
			t.Errorf("%s: %s, not %s", c.paths, got, c.want)
		}
	}
	f, err := Open("a/x.yaml", nil)
	if err != nil || f.Name != "a/x.yaml" || string(f.Text) != "a: 1" {
		t.Error(f, err)
	}
	if _, err := Open("nothing", nil); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
	if err := os.Truncate("a/x.yaml", maxFile); err != nil {
		t.Fatal(err)
	}
	if f, err := Open("a/x.yaml", nil); err != nil || len(f.Text) != maxFile {
		t.Error("a file of the greatest size:", err)
	}
	if err := os.Truncate("a/x.yaml", maxFile+1); err != nil {
		t.Fatal(err)
	}
	if _, err := Open("a/x.yaml", nil); err == nil || err.Error() != "a/x.yaml: larger than 64 MiB" {
		t.Error(err)
	}
	if _, err := Open(Stdin, bytes.NewReader(make([]byte, maxFile+1))); err == nil || err.Error() != "<stdin>: larger than 64 MiB" {
		t.Error(err)
	}
}
