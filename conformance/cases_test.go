package conformance

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/conformance/compare"
	"github.com/espalier-dev/espalier/conformance/oracle"
)

var record = flag.Bool("record", false, "write what the reference says about the cases to testdata/cases/*/want.txt")

// A caseGroup is some cases of one schema.
type caseGroup struct {
	Schema json.RawMessage `json:"schema"`
	Scope  string          `json:"scope"`
	Cases  []caseData      `json:"cases"`
}

// caseData is one case. Without an object it is about the schema.
type caseData struct {
	Name         string          `json:"name"`
	Object       json.RawMessage `json:"object"`
	Old          json.RawMessage `json:"old"`
	NoRatcheting bool            `json:"noRatcheting"`
	Storage      bool            `json:"storage"`
}

// families are the folders of testdata/cases, each with what its cases are about.
func families(t *testing.T) []string {
	t.Helper()
	dirs, err := filepath.Glob("testdata/cases/*")
	if err != nil || len(dirs) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	return dirs
}

// eachCase visits the cases of a family in a fixed order.
func eachCase(t *testing.T, dir string, visit func(name string, g *caseGroup, c *caseData)) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%s has no cases: %v", dir, err)
	}
	seen := map[string]bool{}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var groups []caseGroup
		dec := json.NewDecoder(bytes.NewReader(data))
		dec.DisallowUnknownFields()
		if err := dec.Decode(&groups); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		for i := range groups {
			g := &groups[i]
			for j := range g.Cases {
				name := strings.TrimSuffix(filepath.Base(file), ".json") + ": " + g.Cases[j].Name
				if seen[name] {
					t.Errorf("%s: %q is there twice", file, name)
				}
				seen[name] = true
				visit(name, g, &g.Cases[j])
			}
		}
	}
}

// TestCases runs every case through both sides. want.txt holds what the reference says, so that a case cannot come to
// test something else, or nothing.
func TestCases(t *testing.T) {
	for _, dir := range families(t) {
		t.Run(filepath.Base(dir), func(t *testing.T) {
			var said strings.Builder
			eachCase(t, dir, func(name string, g *caseGroup, c *caseData) {
				d, text := runCase(t, filepath.Base(dir), g, c)
				if d != nil {
					t.Errorf("%s\n%s", name, d)
				}
				fmt.Fprintf(&said, "%s\n", name)
				for line := range strings.SplitSeq(text, "\n") {
					fmt.Fprintf(&said, "\t%s\n", line)
				}
			})
			file := filepath.Join(dir, "want.txt")
			if *record {
				if err := os.WriteFile(file, []byte(said.String()), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if said.String() != string(want) {
				t.Errorf("the reference says something else than %s: %s", file, firstDifference(said.String(), string(want)))
			}
		})
	}
}

func firstDifference(a, b string) string {
	x, y := strings.Split(a, "\n"), strings.Split(b, "\n")
	for i := range min(len(x), len(y)) {
		if x[i] != y[i] {
			return fmt.Sprintf("line %d:\n%s\nwant\n%s", i+1, x[i], y[i])
		}
	}
	return fmt.Sprintf("%d lines, want %d", len(x), len(y))
}

// runCase compares one case and returns what the reference says.
func runCase(t *testing.T, family string, g *caseGroup, c *caseData) (*compare.Difference, string) {
	t.Helper()
	schema := compact(t, g.Schema)
	if c.Object == nil {
		d, theirs := compare.Schema(schema, false)
		text := theirs.String()
		if family == "cel-cost" && d == nil {
			d, _ = compare.Costs(schema)
			costs, _, err := oracle.Costs(schema)
			if err != nil {
				t.Fatal(err)
			}
			for _, cost := range costs {
				text += "\n" + cost.String()
			}
		}
		return d, text
	}
	pair, d := compare.Compile(schema)
	if pair == nil {
		return d, "does not compile"
	}
	if family == "pruning" || family == "defaulting" {
		source := oracle.Request
		if c.Storage {
			source = oracle.Storage
		}
		d, out := pair.Normalize(c.Object, source)
		return d, out.String()
	}
	o := oracle.ValidateOptions{Ratchet: !c.NoRatcheting}
	switch g.Scope {
	case "namespaced":
		o.Scope = oracle.Namespaced
	case "cluster":
		o.Scope = oracle.Cluster
	}
	if c.Old != nil {
		o.Old = canonical(t, c.Old)
	}
	d, theirs, row := pair.Validate(canonical(t, c.Object), o)
	text := theirs.Text()
	if row != "" {
		text += "\n(see DIVERGENCES.md: " + row + ")"
	}
	return d, text
}

func compact(t *testing.T, raw json.RawMessage) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := json.Compact(&b, raw); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func canonical(t *testing.T, raw json.RawMessage) []byte {
	t.Helper()
	obj, err := oracle.Decode(raw)
	if err != nil {
		t.Fatal(err)
	}
	return oracle.Marshal(obj)
}

// TestReadmeCountsCases keeps the table of README.md true.
func TestReadmeCountsCases(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	stated := map[string]string{}
	for _, m := range regexp.MustCompile(`(?m)^\| ([a-z-]+) \| (\d+) \|`).FindAllStringSubmatch(string(readme), -1) {
		stated[m[1]] = m[2]
	}
	var names []string
	for _, dir := range families(t) {
		family, n := filepath.Base(dir), 0
		names = append(names, family)
		eachCase(t, dir, func(string, *caseGroup, *caseData) { n++ })
		if stated[family] != strconv.Itoa(n) {
			t.Errorf("README.md states %q cases of %s; there are %d", stated[family], family, n)
		}
		if n < 20 {
			t.Errorf("%s has only %d cases", family, n)
		}
	}
	for family := range stated {
		if !slices.Contains(names, family) {
			t.Errorf("README.md mentions %s, which has no cases", family)
		}
	}
}
