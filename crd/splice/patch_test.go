package splice

import (
	"encoding/json"
	"strings"
	"testing"
)

// TestPatch: the same edits in a decoded document.
func TestPatch(t *testing.T) {
	const text = `{"a":{"b":[1,2,3],"c":{"d":null}},"x/y":{"~":1},"z":"s"}`
	for _, c := range []struct{ edits, after string }{
		{`set /z 1`, `{"a":{"b":[1,2,3],"c":{"d":null}},"x/y":{"~":1},"z":1}`},
		{`set /a/b/0 9 ; set /a/b/2 7`, `{"a":{"b":[9,2,7],"c":{"d":null}},"x/y":{"~":1},"z":"s"}`},
		{`insert /a/b/0 9`, `{"a":{"b":[9,1,2,3],"c":{"d":null}},"x/y":{"~":1},"z":"s"}`},
		{`insert /a/b/3 9`, `{"a":{"b":[1,2,3,9],"c":{"d":null}},"x/y":{"~":1},"z":"s"}`},
		{`insert /a/b/- 9`, `{"a":{"b":[1,2,3,9],"c":{"d":null}},"x/y":{"~":1},"z":"s"}`},
		{`insert /a/b/- {"e":1} ; set /a/b/3/e 2`, `{"a":{"b":[1,2,3,{"e":2}],"c":{"d":null}},"x/y":{"~":1},"z":"s"}`},
		{`remove /a/b/0 ; remove /a/b/1`, `{"a":{"b":[2],"c":{"d":null}},"x/y":{"~":1},"z":"s"}`},
		{`remove /a/b/2 ; remove /z`, `{"a":{"b":[1,2],"c":{"d":null}},"x/y":{"~":1}}`},
		{`set /a/c/d 1`, `{"a":{"b":[1,2,3],"c":{"d":1}},"x/y":{"~":1},"z":"s"}`},
		{`set /x~1y/~0 2 ; insert /x~1y/~1~01 3`, `{"a":{"b":[1,2,3],"c":{"d":null}},"x/y":{"/~1":3,"~":2},"z":"s"}`},
		{`move /a/y from=/z`, `{"a":{"b":[1,2,3],"c":{"d":null},"y":"s"},"x/y":{"~":1}}`},
		{`copy /a/y from=/x~1y ; set /a/y/~0 5`, `{"a":{"b":[1,2,3],"c":{"d":null},"y":{"~":5}},"x/y":{"~":1},"z":"s"}`},
		{`copy /y from=/a/b/1`, `{"a":{"b":[1,2,3],"c":{"d":null}},"x/y":{"~":1},"y":2,"z":"s"}`},
		{`move /y from=/a/b/0`, `{"a":{"b":[2,3],"c":{"d":null}},"x/y":{"~":1},"y":1,"z":"s"}`},

		{`set  1`, `error: set : a whole document cannot be edited`},
		{`remove `, `error: remove : a whole document cannot be edited`},
		{`set /y 1`, `error: set /y: the place does not exist`},
		{`remove /a/y`, `error: remove /a/y: the place does not exist`},
		{`insert /a/c/d 1`, `error: insert /a/c/d: the place already exists`},
		{`insert /y/b 1`, `error: insert /y/b: the place does not exist`},
		{`insert /z/b 1`, `error: insert /z/b: the place does not exist`},
		{`set /a/b/3 1`, `error: set /a/b/3: the place does not exist`},
		{`set /a/b/-1 1`, `error: set /a/b/-1: the place does not exist`},
		{`set /a/b/- 1`, `error: set /a/b/-: the place does not exist`},
		{`set /a/b/x 1`, `error: set /a/b/x: the place does not exist`},
		{`remove /a/b/3`, `error: remove /a/b/3: the place does not exist`},
		{`remove /a/b/-`, `error: remove /a/b/-: the place does not exist`},
		{`insert /a/b/4 1`, `error: insert /a/b/4: the place does not exist`},
		{`insert /a/b/3/x 1`, `error: insert /a/b/3/x: the place does not exist`},
		{`insert /a/b/-/x 1`, `error: insert /a/b/-/x: the place does not exist`},
		{`set /a/b/0/x 1`, `error: set /a/b/0/x: the place does not exist`},
		{`copy /y from=/a/b/3`, `error: copy /y: the place does not exist`},
		{`copy /y from=/a/b/-1`, `error: copy /y: the place does not exist`},
		{`copy /y from=/a/b/x`, `error: copy /y: the place does not exist`},
		{`copy /y from=/a/x`, `error: copy /y: the place does not exist`},
		{`copy /y from=/z/x`, `error: copy /y: the place does not exist`},
		{`copy /z from=/a`, `error: copy /z: the place already exists`},
		{`move /y from=/x`, `error: move /y: the place does not exist`},
		{`set /z {`, `error: set /z: unexpected EOF`},
	} {
		t.Run(c.edits, func(t *testing.T) {
			document, err := decode([]byte(text))
			if err != nil {
				t.Fatal(err)
			}
			_, edits := readEdits(t, strings.ReplaceAll(c.edits, " ; ", "\n"))
			out, err := Patch(document, edits)
			got := ""
			if err != nil {
				got = "error: " + err.Error()
			} else if raw, err := json.Marshal(out); err == nil {
				got = string(raw)
			}
			if got != c.after {
				t.Errorf("got  %s\nwant %s", got, c.after)
			}
		})
	}
}

// TestTexts is about texts as a whole: what is no YAML, and which document of
// several is edited.
func TestTexts(t *testing.T) {
	set := []Edit{{Op: Set, Pointer: "/a", Value: []byte("2")}}
	for _, c := range []struct {
		name, text string
		edits      map[int][]Edit
		after      string
	}{
		{"no edits", "a:   [", nil, "a:   ["},
		{"no edits of a document", "a:   [", map[int][]Edit{0: {}}, "a:   ["},
		{"some documents", "a: 1\n---\na: 1 # c\n---\na: 1\n", map[int][]Edit{0: set, 2: set}, "a: 2\n---\na: 1 # c\n---\na: 2\n"},
		{"some without edits", "a: 1\n---\na: 1 # c\n", map[int][]Edit{0: {}, 1: set}, "a: 1\n---\na: 2 # c\n"},
		{"passes in one of them", "a: 1\n---\na: 1\n", map[int][]Edit{0: set, 1: append(set[:1:1], Edit{Op: Set, Pointer: "/a", Value: []byte("3")})}, "a: 2\n---\na: 3\n"},
		{"an end mark", "a: 1\n...\n---\n# c\na: 1\n", map[int][]Edit{1: set}, "a: 1\n...\n---\n# c\na: 2\n"},
		{"beside the mark", "--- {a: 1}\n--- # c\na: 1\n", map[int][]Edit{0: set, 1: set}, "--- {a: 2}\n--- # c\na: 2\n"},
		{"no document", "", map[int][]Edit{0: set}, "error: the file has no document 0"},
		{"no such document", "a: 1\n", map[int][]Edit{0: set, 2: set, 1: set}, "error: the file has no document 1"},
		{"no such document, negative", "a: 1\n", map[int][]Edit{-1: set}, "error: the file has no document -1"},
		{"no YAML", "a: [\n", map[int][]Edit{0: set}, "error: yaml: "},
		{"no YAML in another document", "a: 1\n---\nb: [\n", map[int][]Edit{0: set}, "error: "},
		{"a scalar", "x\n", map[int][]Edit{0: set}, "error: set /a: the place does not exist"},
		{"a comment", "# c\n", map[int][]Edit{0: set}, "error: the file has no document 0"},
	} {
		t.Run(c.name, func(t *testing.T) {
			out, err := ApplyAll([]byte(c.text), c.edits)
			if want, ok := strings.CutPrefix(c.after, "error: "); ok {
				if err == nil || !strings.HasPrefix(err.Error(), want) {
					t.Errorf("got %q and error %v, want %s", out, err, want)
				}
				return
			}
			if err != nil || string(out) != c.after {
				t.Errorf("got %q and error %v, want %q", out, err, c.after)
			}
		})
	}
}

// TestFarRight: blanks before new lines are bounded, since each of them takes
// as many.
func TestFarRight(t *testing.T) {
	pad := func(n int) string { return strings.Repeat(" ", n) }
	const tooFar = "the new value would be indented by more than 2000 columns"
	for _, c := range []struct{ name, before, edit, after string }{
		{"a member", "a:\n" + pad(2000) + "b: 1\n", "set /a/b 2", "a:\n" + pad(2000) + "b: 2\n"},
		{"a member too far", "a:\n" + pad(2001) + "b: 1\n", "set /a/b 2", "error: set /a/b: " + tooFar},
		{"a new member", "a:\n" + pad(2000) + "b: 1\n", "insert /a/c 2", "a:\n" + pad(2000) + "b: 1\n" + pad(2000) + "c: 2\n"},
		{"a new member too far", "a:\n" + pad(2001) + "b: 1\n", "insert /a/c 2", "error: line 2: " + tooFar},
		{"an object too far", "a:\n" + pad(2000) + "b: 1\n", `set /a/b {"c":1}`, "error: set /a/b: " + tooFar},
		{"an item", "a:\n" + pad(1998) + "- 1\n", "set /a/0 2", "a:\n" + pad(1998) + "- 2\n"},
		{"an item too far", "a:\n" + pad(1999) + "- 1\n", "set /a/0 2", "error: set /a/0: " + tooFar},
		{"a new item too far", "a:\n" + pad(1999) + "- 1\n", "insert /a/- 2", "error: line 2: " + tooFar},
		{"a gap", "a: [1," + pad(2000) + "2]\n", "insert /a/- 3", "a: [1," + pad(2000) + "2," + pad(2000) + "3]\n"},
		{"a gap too wide", "a: [1," + pad(2001) + "2]\n", "insert /a/- 3", "a: [1," + pad(2001) + "2, 3]\n"},
		{"a line of flow", "a: [\n" + pad(2000) + "1]\n", "insert /a/- 3", "a: [\n" + pad(2000) + "1,\n" + pad(2000) + "3]\n"},
		{"a line of flow too far", "a: [\n" + pad(2001) + "1]\n", "insert /a/- 3", "a: [\n" + pad(2001) + "1, 3]\n"},
		{"removed too far", "a:\n" + pad(2001) + "b: 1\n" + pad(2001) + "c: 1\n", "remove /a/b", "a:\n" + pad(2001) + "c: 1\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, edits := readEdits(t, c.edit)
			out, err := Apply([]byte(c.before), 0, edits)
			got := string(out)
			if err != nil {
				got = "error: " + err.Error()
			}
			if got != c.after {
				t.Errorf("got %q", strings.ReplaceAll(got, pad(1000), "<1000>"))
			}
		})
	}
}
