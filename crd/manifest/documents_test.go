package manifest_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/crd/manifest"
	"github.com/espalier-dev/espalier/crd/splice"
)

// Index is the number of a document in its file: documents that are null count, and what
// has no content at all does not. Edits find their document by it.
func TestIndex(t *testing.T) {
	for text, want := range map[string]string{
		"a: 1\n":                       "0:1",
		"---\na: 1\n":                  "0:2",
		"null\n---\na: 3\n":            "1:3",
		"~\n---\nnull\n---\na: 5\n":    "2:5",
		"# comment\n---\na: 3\n":       "0:3",
		"---\n---\na: 3\n":             "1:3",
		"a: 1\n---\n---\na: 4\n":       "0:1 2:4",
		"a: 1\n---\n# no\n---\na: 5\n": "0:1 2:5",
		"%YAML 1.1\n---\nnull\n---\na: 5\n...\n---\na: 7\n": "1:5 2:8",
		"{\"a\": 1}\n{\"a\": 2}":                            "0:1 1:2",
		"--- null\n--- {a: 2}\n":                            "1:2",
		"a: 1\n---x\n---\na: 4\n":                           "1:4!", // not a document's beginning, and not YAML
	} {
		docs, err := manifest.Parse(&manifest.File{Name: "a.yaml", Text: []byte(text)})
		var got []string
		for _, d := range docs {
			p, ok := d.Locate("/a")
			if !ok {
				t.Errorf("%q: %s has no a", text, d.JSON)
			}
			got = append(got, fmt.Sprintf("%d:%d", d.Index, p.Line))
			if strings.HasPrefix(text, "{") || err != nil {
				continue
			}
			edited, err := splice.Apply([]byte(text), d.Index, []splice.Edit{{Op: splice.Set, Pointer: "/a", Value: []byte("9")}})
			if err != nil {
				t.Errorf("%q: document %d: %v", text, d.Index, err)
				continue
			}
			file := &manifest.File{Text: edited}
			if line := file.Line(p.Line); !strings.Contains(line, "9") {
				t.Errorf("%q: document %d: the edit is not in line %d:\n%s", text, d.Index, p.Line, edited)
			}
		}
		want, wrong := strings.CutSuffix(want, "!")
		if strings.Join(got, " ") != want || (err != nil) != wrong {
			t.Errorf("%q: %v, not %s: %v", text, got, want, err)
		}
	}
}

// A document that cannot be read hides no other, and its errors have their places.
func TestErrors(t *testing.T) {
	const text = "a: [\n---\na: 1\n---\nb: é� \xff\n---\na: 2\n---\nb: \x01\n"
	docs, err := manifest.Parse(&manifest.File{Name: "a.yaml", Text: []byte(text)})
	if len(docs) != 2 || docs[0].Index != 1 || docs[1].Index != 3 {
		t.Errorf("%d documents", len(docs))
	}
	var got []string
	for _, err := range manifest.Errors(err) {
		var placed *manifest.Error
		if !errors.As(err, &placed) {
			t.Fatalf("%v has no place", err)
		}
		got = append(got, fmt.Sprintf("%d:%d %s", placed.Position.Line, placed.Position.Column, placed.Msg))
	}
	want := []string{"2:1 did not find expected node content", "5:7 invalid leading UTF-8 octet", "9:4 control characters are not allowed"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, not %q", got, want)
	}
	if one := errors.New("one"); !slices.Equal(manifest.Errors(one), []error{one}) {
		t.Error("one error is not itself")
	}
	if list := manifest.Errors(nil); len(list) != 0 {
		t.Errorf("no error is %v", list)
	}
	if _, err := manifest.Parse(&manifest.File{Text: []byte(strings.Repeat("a: [\n---\n", 500))}); len(manifest.Errors(err)) != 100 {
		t.Errorf("%d errors of one file", len(manifest.Errors(err)))
	}
}

// Pointers that begin alike lead to different items.
func TestPointers(t *testing.T) {
	var text strings.Builder
	text.WriteString("versions:\n")
	for i := range 12 {
		fmt.Fprintf(&text, "- name: v%d\n", i)
	}
	text.WriteString("a/b: 1\na~b: 2\na~1b: 3\n\"\": 4\n")
	docs, err := manifest.Parse(&manifest.File{Name: "a.yaml", Text: []byte(text.String())})
	if err != nil || len(docs) != 1 {
		t.Fatal(docs, err)
	}
	d := docs[0]
	for pointer, want := range map[string]int{
		"/versions/1/name": 3, "/versions/10/name": 12, "/versions/0": 2, "/versions/11": 13, "/a~1b": 14, "/a~0b": 15, "/a~01b": 16, "/": 17, "": 1,
	} {
		if p, ok := d.Locate(pointer); !ok || p.Line != want {
			t.Errorf("%s is at %v, %t", pointer, p, ok)
		}
	}
	for pointer, want := range map[string]int{"/versions/12": 1, "/versions/x": 1, "/versions/1/x": 3, "/versions/10/x": 12, "/versions/-1": 1, "/a~1b/c": 14, "/none": 1} {
		if p, ok := d.Locate(pointer); ok || p.Line != want {
			t.Errorf("%s, which does not exist, is at %v, %t", pointer, p, ok)
		}
	}
}

// What does not exist is shown at the key of the nearest parent; an item has no key, and
// is shown itself.
func TestPlacesOfWhatIsAbsent(t *testing.T) {
	for _, c := range []struct {
		text, pointer string
		value, key    manifest.Position
	}{
		{`{"a": [{"b": 1}]}`, "/a/0/c", manifest.Position{Line: 1, Column: 8, EndColumn: 9}, manifest.Position{Line: 1, Column: 8, EndColumn: 9}},
		{`{"a": [{"b": 1}]}`, "/a/1", manifest.Position{Line: 1, Column: 2, EndColumn: 5}, manifest.Position{Line: 1, Column: 2, EndColumn: 5}},
		{`{"a": [{"b": 1}]}`, "/c", manifest.Position{Line: 1, Column: 1, EndColumn: 2}, manifest.Position{Line: 1, Column: 1, EndColumn: 2}},
		{"a:\n- {b: 1}\n", "/a/0/c", manifest.Position{Line: 2, Column: 3, EndColumn: 4}, manifest.Position{Line: 2, Column: 3, EndColumn: 4}},
		{"a:\n- {b: 1}\n", "/a/0/b", manifest.Position{Line: 2, Column: 7, EndColumn: 8}, manifest.Position{Line: 2, Column: 4, EndColumn: 5}},
		{"a:\n- {b: 1}\n", "/a/0", manifest.Position{Line: 2, Column: 3, EndColumn: 4}, manifest.Position{Line: 2, Column: 3, EndColumn: 4}},
		{"a:\n  bc: {}\n", "/a/bc/d", manifest.Position{Line: 2, Column: 3, EndColumn: 5}, manifest.Position{Line: 2, Column: 3, EndColumn: 5}},
	} {
		docs, err := manifest.Parse(&manifest.File{Name: "a.yaml", Text: []byte(c.text)})
		if err != nil || len(docs) != 1 {
			t.Fatal(docs, err)
		}
		value, _ := docs[0].Locate(c.pointer)
		key, _ := docs[0].LocateKey(c.pointer)
		if value != c.value || key != c.key {
			t.Errorf("%q %s: %+v, key %+v", c.text, c.pointer, value, key)
		}
	}
}
