package docs_test

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "rewrite the figures that pages quote")

// run is what docs/results.json says of one run of a benchmark.
type run struct {
	Command, Machine, Date, Commit string
	Figures                        map[string]string
}

// quoted is a figure in a document: the number, its unit, and behind them a comment that names the benchmark and the figure.
var quoted = regexp.MustCompile(`([0-9][0-9.,]*(?:/s| (?:ns|µs|ms|s|KB|MB|GB))?)<!-- ([a-z-]+): ([^>]+?) -->`)

func recorded(t *testing.T) map[string]run {
	t.Helper()
	data, err := os.ReadFile("results.json")
	if err != nil {
		t.Fatal(err)
	}
	var runs map[string]run
	if err := json.Unmarshal(data, &runs); err != nil {
		t.Fatal(err)
	}
	for name, r := range runs {
		if r.Command == "" || r.Machine == "" || r.Commit == "" || len(r.Figures) == 0 {
			t.Errorf("%s lacks its command, machine, commit or figures", name)
		}
		if _, err := time.Parse(time.DateOnly, r.Date); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	return runs
}

// pages are all documents that may quote a figure.
func pages(t *testing.T) []string {
	t.Helper()
	files := []string{"../README.md", "benchmarks.md", "../CHANGELOG.md", "../SECURITY.md", "../conformance/README.md"}
	for _, pattern := range []string{"*.md", "design/*.md", "guides/*.md"} {
		more, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, more...)
	}
	return files
}

// TestGoldenResults: every figure that a document quotes is the one in results.json, which the benchmarks write.
func TestGoldenResults(t *testing.T) {
	runs, found := recorded(t), 0
	for _, file := range pages(t) {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		text := quoted.ReplaceAllStringFunc(string(data), func(quote string) string {
			found++
			m := quoted.FindStringSubmatch(quote)
			value, ok := runs[m[2]].Figures[m[3]]
			switch {
			case !ok:
				t.Errorf("%s quotes %q: results.json has no figure %q of %s", file, m[1], m[3], m[2])
				return quote
			case value != m[1] && !*update:
				t.Errorf("%s quotes %q for %s of %s; results.json has %q: go test ./docs -run Results -update", file, m[1], m[3], m[2], value)
			}
			return value + strings.TrimPrefix(quote, m[1])
		})
		if *update && text != string(data) {
			if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	if found < 50 {
		t.Errorf("only %d figures are quoted: is the form of the comments still that of this test?", found)
	}
}

// TestFiguresAreQuoted: where a page says that benchmarks measured a table, each figure of it names its benchmark.
func TestFiguresAreQuoted(t *testing.T) {
	figure := regexp.MustCompile(`^[0-9][0-9.,]*( (ns|µs|ms|s|KB|MB|GB))?$`)
	design := regexp.MustCompile(`^000[0-9]$`) // a document that has the figure
	for file, heading := range map[string]string{"benchmarks.md": "## Figures", "comparison.md": "## Offline tools", "design/0004-server.md": "## What it costs", "scale.md": "## What things cost"} {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		_, after, ok := strings.Cut(string(data), "\n"+heading+"\n")
		if !ok {
			t.Fatalf("%s has no section %q", file, heading)
		}
		section, _, _ := strings.Cut(after, "\n## ")
		for line := range strings.Lines(section) {
			if !strings.HasPrefix(line, "|") || strings.Contains(line, "by hand") {
				continue
			}
			for _, cell := range strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")[1:] {
				for _, part := range strings.FieldsFunc(cell, func(r rune) bool { return r == ';' || r == '(' || r == ')' }) {
					if part = strings.TrimSpace(part); figure.MatchString(part) && !design.MatchString(part) {
						t.Errorf("%s: %q in %q does not say which benchmark measured it", file, part, strings.TrimSpace(line))
					}
				}
			}
		}
	}
}

// TestReadmeIsMeasured: each measured figure of the README names its benchmark, also in what is no table.
func TestReadmeIsMeasured(t *testing.T) {
	data, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	measured := regexp.MustCompile(`[0-9][0-9.,]*(?: (?:ns|µs|ms|s|KB|MB|GB|runs|passed?)\b|/s\b| of [0-9]+\b)(?:<!--)?`)
	code, found := false, 0
	for line := range strings.Lines(string(data)) {
		if strings.HasPrefix(line, "```") {
			code = !code
		}
		if code {
			continue
		}
		found += len(quoted.FindAllString(line, -1))
		for _, figure := range measured.FindAllString(line, -1) {
			if !strings.HasSuffix(figure, "<!--") {
				t.Errorf("README: %q in %q does not say which benchmark measured it", figure, strings.TrimSpace(line))
			}
		}
	}
	if found < 5 {
		t.Errorf("README quotes only %d figures: is their form still that of this test?", found)
	}
}
