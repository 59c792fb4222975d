package fix_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/crd/fix"
)

// reports are all that users see of the fixes in the tests that are running: the result,
// with its members in order, the edits and the notes.
var reports = map[string]*strings.Builder{}

// record adds a fix to the report of a test. When the test is done, the report is
// compared with its file in testdata; -update rewrites the file.
func record(t *testing.T, in string, r fix.Result) {
	t.Helper()
	b := reports[t.Name()]
	if b == nil {
		b = &strings.Builder{}
		reports[t.Name()] = b
		t.Cleanup(func() {
			delete(reports, t.Name()) // tests may run twice
			compareReport(t, b.String())
		})
	}
	result := string(r.JSON)
	if _, schema, ok := strings.Cut(result, `{"openAPIV3Schema":`); ok && strings.HasPrefix(result, `{"apiVersion":"apiextensions.k8s.io/v1","kind":`) {
		result = strings.TrimSuffix(schema, `}}]}}`)
	}
	fmt.Fprintf(b, "# %s\n%s\n", in, result)
	for _, e := range r.Edits {
		fmt.Fprintf(b, "%s %s", e.Op, short(e.Pointer))
		if e.From != "" {
			fmt.Fprintf(b, " from %s", short(e.From))
		}
		if e.Before != "" {
			fmt.Fprintf(b, " before %s", e.Before)
		}
		fmt.Fprintf(b, " [%s] %s\n", e.Check, e.Why)
	}
	for _, n := range r.Notes {
		fmt.Fprintf(b, "%s %s [%s] %s\n", n.Kind, short(n.Pointer), n.Check, n.Text)
	}
}

func compareReport(t *testing.T, report string) {
	path := filepath.Join("testdata", t.Name()+".txt")
	if *update {
		if err := os.WriteFile(path, []byte(report), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	file, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(file) == report {
		return
	}
	got, want := strings.Split(report, "\n"), strings.Split(string(file), "\n")
	in := ""
	for i := range min(len(got), len(want)) {
		if got[i] != want[i] {
			t.Errorf("%s: the report differs from %s:%d (-update rewrites it):\n%s\nexpected:\n%s", in, path, i+1, got[i], want[i])
			return
		}
		if strings.HasPrefix(got[i], "# ") {
			in = got[i][2:]
		}
	}
	t.Errorf("the report has %d lines, and %s %d", len(got), path, len(want))
}
