package diff_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/crd/diff"
)

var update = flag.Bool("update", false, "rewrite the reports in testdata")

// reports are all that users read about the changes of a test: messages, advice and
// pointers. They are in testdata, one file for each test.
type reports struct {
	text  strings.Builder
	cases int
}

// add appends the report of one case.
func (r *reports) add(name string, changes []diff.Change) {
	const field = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/f"
	r.cases++
	fmt.Fprintf(&r.text, "# %s\n", name)
	for _, x := range changes {
		at := []string{x.OldPointer, x.NewPointer}
		for i := range at {
			if rest, ok := strings.CutPrefix(at[i], field); ok {
				at[i] = "f" + rest
			}
		}
		fmt.Fprintf(&r.text, "%s: %q %q\n\t%s\n", x.Check, at[0], at[1], x.Message)
		if x.Fix != "" {
			fmt.Fprintf(&r.text, "\tfix: %s\n", x.Fix)
		}
	}
}

// check compares the reports with the file of the test. Where only some of the cases have
// run, there is nothing to compare.
func (r *reports) check(t *testing.T, cases int) {
	t.Helper()
	if r.cases != cases {
		return
	}
	path := filepath.Join("testdata", t.Name()+".txt")
	if *update {
		if err := os.WriteFile(path, []byte(r.text.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	file, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	got, want := strings.Split(r.text.String(), "\n"), strings.Split(string(file), "\n")
	name := ""
	for i := range max(len(got), len(want)) {
		a, b := lineOf(got, i), lineOf(want, i)
		if a != b {
			t.Fatalf("%s: the report differs from %s:%d (-update rewrites it):\n%s\nexpected:\n%s", name, path, i+1, a, b)
		}
		if strings.HasPrefix(a, "# ") {
			name = a[2:]
		}
	}
}

func lineOf(lines []string, i int) string {
	if i < len(lines) {
		return lines[i]
	}
	return ""
}
