package splice

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/internal/costtest"
)

// numbered joins n texts that are made from their numbers.
func numbered(n int, format string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, format, i)
	}
	return b.String()
}

// each makes n edits, with pointers made from their numbers.
func each(n int, e Edit, format string) []Edit {
	edits := make([]Edit, n)
	for i := range edits {
		edits[i] = e
		edits[i].Pointer = fmt.Sprintf(format, i)
	}
	return edits
}

// growing are families of texts and edits that grow with n.
var growing = map[string]func(n int) (string, []Edit){
	"one of many siblings": func(n int) (string, []Edit) {
		return numbered(n, "key%08d: v\n"), []Edit{{Op: Set, Pointer: "/key00000000", Value: []byte("1")}}
	},
	"many siblings set": func(n int) (string, []Edit) {
		return numbered(n, "key%08d: v # c\n"), each(n, Edit{Op: Set, Value: []byte(`{"a":"b"}`)}, "/key%08d")
	},
	"many siblings removed": func(n int) (string, []Edit) {
		return "a: 1\n" + numbered(n, "key%08d: v\n"), each(n, Edit{Op: Remove}, "/key%08d")
	},
	"many members added": func(n int) (string, []Edit) {
		return "z: 1\n" + numbered(n, "# %08d\n") + "a: 1\n", each(n, Edit{Op: Insert, Value: []byte(`"v"`), Before: "a"}, "/key%08d")
	},
	"many items added": func(n int) (string, []Edit) {
		return "a:\n- 1\n", slices.Repeat([]Edit{{Op: Insert, Pointer: "/a/-", Value: []byte("1")}}, n)
	},
	"first members of items removed": func(n int) (string, []Edit) {
		return "a:\n" + numbered(n, "- p: %d\n  q: 2\n  r: 3\n"), append(each(n, Edit{Op: Remove}, "/a/%d/p"), each(n, Edit{Op: Remove}, "/a/%d/q")...)
	},
	"members moved": func(n int) (string, []Edit) {
		edits := each(n, Edit{Op: Move}, "/a/%d/to/x")
		for i := range edits {
			edits[i].From = fmt.Sprintf("/a/%d/x", i)
		}
		return "a:\n" + numbered(n, "- y: 2\n  # %d\n  x: 3\n  to:\n    z: 1\n"), edits
	},
	"long scalars": func(n int) (string, []Edit) {
		return "a: |\n" + strings.Repeat("  text # 1\n", n) + "b: x\n" + strings.Repeat("  y\n", n) + "c: 1\n", []Edit{{Op: Set, Pointer: "/c", Value: []byte(`"x"`)}}
	},
	"a line of flow": func(n int) (string, []Edit) {
		return "a: {" + numbered(n, "é%d: [v], ") + "}\n", each(n, Edit{Op: Remove}, "/a/é%d")[1:]
	},
	"a line of flow set": func(n int) (string, []Edit) {
		return strings.Repeat(" ", n) + "a: {" + numbered(n, "key%d: [v], ") + "}\n", each(n, Edit{Op: Set, Value: []byte("1")}, "/a/key%d/0")
	},
	"a line of anchors": func(n int) (string, []Edit) {
		return "a: [" + numbered(n, "&a%d,") + "]\nb: 1\n", []Edit{{Op: Set, Pointer: "/b", Value: []byte("2")}}
	},
	"a line of JSON": func(n int) (string, []Edit) {
		return `{"a":{"z":0` + numbered(n, `,"key%d":1`) + "}}", each(n, Edit{Op: Set, Value: []byte(`{"x":1}`)}, "/a/key%d")
	},
	"lines of JSON": func(n int) (string, []Edit) {
		return "{\n  \"a\": {\n    \"z\": 0" + numbered(n, ",\n    \"key%d\": {}") + "\n  }\n}\n", each(n, Edit{Op: Insert, Value: []byte(`"v"`)}, "/a/key%d/new")
	},
	"items removed": func(n int) (string, []Edit) {
		edits := each(n, Edit{Op: Remove}, "/a/%d")
		slices.Reverse(edits)
		return "a:\n" + numbered(n+1, "-\n\n  b: %d\n"), edits
	},
	"deep flow": func(n int) (string, []Edit) {
		n = min(n, 9000)
		return strings.Repeat("{a: ", n) + "{}" + strings.Repeat("}", n), []Edit{{Op: Set, Pointer: strings.Repeat("/a", n), Value: []byte("1")}}
	},
	"a deep value": func(n int) (string, []Edit) {
		n = min(n, 9000)
		return "a: {b: 1}\n", []Edit{{Op: Set, Pointer: "/a/b", Value: []byte(strings.Repeat(`{"a":`, n) + `"v"` + strings.Repeat("}", n))}}
	},
}

// TestCostIsLinear: ten times as much, of text and of edits, takes about ten
// times as long.
func TestCostIsLinear(t *testing.T) {
	costtest.Limit(t)
	for name, family := range growing {
		t.Run(name, func(t *testing.T) {
			at := func(n int) costtest.Input {
				text, edits := family(n)
				return costtest.Input{Size: n, Run: func() { mustApply(t, text, edits) }}
			}
			costtest.Linear(t, at(200), at(2000))
		})
	}
}

// TestGrowingTexts applies what TestCostIsLinear measures, with sizes that take no time.
func TestGrowingTexts(t *testing.T) {
	for name, family := range growing {
		t.Run(name, func(t *testing.T) {
			text, edits := family(50)
			mustApply(t, text, edits)
		})
	}
}

func mustApply(t *testing.T, text string, edits []Edit) {
	t.Helper()
	if _, err := Apply([]byte(text), 0, edits); err != nil {
		t.Fatal(err)
	}
}

// TestDocumentsAtOnce is about many documents, each with edits.
func TestDocumentsAtOnce(t *testing.T) {
	const n = 3000
	edits := make(map[int][]Edit)
	for i := range n {
		edits[i] = []Edit{{Op: Remove, Pointer: "/b"}, {Op: Insert, Pointer: "/c", Value: []byte("1")}}
	}
	out, err := ApplyAll([]byte(strings.Repeat("a: 1 # a\nb: 2\n---\n", n)), edits)
	if err != nil {
		t.Fatal(err)
	}
	if want := strings.Repeat("a: 1 # a\nc: 1\n---\n", n); string(out) != want {
		t.Errorf("%.200s", out)
	}
	if _, err := ApplyAll([]byte("a: 1\n"), map[int][]Edit{0: edits[0][1:], 1: edits[0]}); err == nil || err.Error() != "the file has no document 1" {
		t.Errorf("a document that is not there: %v", err)
	}
}

// TestTooMuchIsRefused: edits that need each other take time that grows with
// their number times the text, so there is a bound.
func TestTooMuchIsRefused(t *testing.T) {
	text := []byte("a: 1\nb: 2\n")
	edits := map[int][]Edit{0: slices.Repeat([]Edit{{Op: Set, Pointer: "/a", Value: []byte("2")}}, 30)}
	if _, err := apply(text, edits, 20*len(text)); err == nil || !strings.Contains(err.Error(), "depend on each other") {
		t.Errorf("got %v", err)
	}
	if _, err := apply(text, edits, 30*len(text)); err != nil {
		t.Error(err)
	}
}

func BenchmarkApply(b *testing.B) {
	for name, family := range growing {
		text, edits := family(4000)
		b.Run(strings.ReplaceAll(name, " ", "-"), func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				if _, err := Apply([]byte(text), 0, edits); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// TestMadeAtOnce: edits that do not depend on each other take one pass, so that
// even the smallest bound allows them.
func TestMadeAtOnce(t *testing.T) {
	text := "a:\n- 1\n- x: 1\n  0: 2\n  1: 3\nb: 2\nc:\n  d: 1\n"
	for name, edits := range map[string]string{
		"items that come last":    "insert /a/- 1\ninsert /a/- 2\ninsert /a/- 3",
		"copies that come last":   "copy /a/- from=/b\ncopy /a/- from=/c",
		"items from the last one": "remove /a/1\nremove /a/0",
		"items that stay":         "set /a/0 1\nset /a/1/x 2\ninsert /a/- 3",
		"an item before a change": "remove /a/1\nset /a/0 3",
		"names that are numbers":  "remove /a/1/0\nset /a/1/1 2",
		"siblings":                "set /b 1\nremove /c/d\ninsert /c/e 2\ninsert /f 1",
		"moves":                   "move /c/b from=/b\ninsert /g 1\nset /c/d 2",
	} {
		t.Run(name, func(t *testing.T) {
			_, all := readEdits(t, edits)
			if _, err := apply([]byte(text), map[int][]Edit{0: all}, 1); err != nil {
				t.Error(err)
			}
		})
	}
	for name, edits := range map[string]string{
		"the same twice":       "set /b 1\nset /b 22",
		"items in their place": "insert /a/0 1\nset /a/0 2",
		"inside a new one":     "set /b {}\ninsert /b/c 1",
	} {
		t.Run(name, func(t *testing.T) {
			_, all := readEdits(t, edits)
			if _, err := apply([]byte(text), map[int][]Edit{0: all}, 1); err == nil {
				t.Error("made at once")
			}
			if _, err := apply([]byte(text), map[int][]Edit{0: all}, 3*len(text)); err != nil {
				t.Error(err)
			}
		})
	}
}
