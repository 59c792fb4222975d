package lsp_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/espalier-dev/espalier/cmd/internal/cli"
	"github.com/espalier-dev/espalier/cmd/internal/lsp"
)

// told is what both sides say about a finding.
type told struct {
	check   string
	line    int
	message string
}

func sorted(all []told) []told {
	slices.SortFunc(all, func(a, b told) int {
		return strings.Compare(strconv.Itoa(1e6+a.line)+a.check+a.message, strconv.Itoa(1e6+b.line)+b.check+b.message)
	})
	return all
}

// command runs check or validate for a file. It reports false if the command cannot run.
func command(t *testing.T, dir string, args ...string) ([]told, bool) {
	t.Helper()
	var out, errOut bytes.Buffer
	args = append(args, "-o", "json", "--config", "none")
	if cli.Main(context.Background(), "espalier", args, strings.NewReader(""), &out, &errOut) > cli.ExitFindings {
		return nil, false
	}
	var report struct {
		Diagnostics []struct {
			Rule    string
			Line    int
			Message string
			Summary string
		}
	}
	if err := json.Unmarshal(out.Bytes(), &report); err != nil {
		t.Fatalf("%v in %s", err, dir)
	}
	var all []told
	for _, d := range report.Diagnostics {
		all = append(all, told{d.Rule, d.Line, cmp.Or(d.Summary, d.Message)})
	}
	return sorted(all), true
}

// TestSameFindingsAsTheCommands compares the server with check and validate for the files of the scripts
// that test the commands.
func TestSameFindingsAsTheCommands(t *testing.T) {
	archives, err := filepath.Glob("../cli/testdata/script/*.txtar")
	if err != nil || len(archives) == 0 {
		t.Fatal("no scripts", err)
	}
	compared, findings := 0, 0
	for _, path := range archives {
		archive, err := txtar.ParseFile(path)
		if err != nil {
			t.Fatal(err)
		}
		files := make(map[string]string)
		for _, f := range archive.Files {
			if ext := filepath.Ext(f.Name); (ext == ".yaml" || ext == ".yml" || ext == ".json") && !strings.HasPrefix(filepath.Base(f.Name), ".") {
				files[f.Name] = string(f.Data)
			}
		}
		if len(files) == 0 {
			continue
		}
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txtar"), func(t *testing.T) {
			for name, text := range files {
				n, m := compare(t, name, text)
				compared += n
				findings += m
			}
		})
	}
	if compared < 100 || findings < 50 {
		t.Errorf("only %d files with %d findings were compared", compared, findings)
	}
}

// compare compares the findings of one file, which has a workspace of its own.
func compare(t *testing.T, name, text string) (files, findings int) {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, filepath.Base(name))
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	want, ok := command(t, dir, "check", "--if-any", path)
	objects, valid := command(t, dir, "validate", "--ignore-missing", path)
	if !ok || !valid {
		return 0, 0 // two CRDs of one kind, for instance
	}
	// Both commands report comments that say too little.
	objects = slices.DeleteFunc(objects, func(f told) bool { return f.check == "suppression" && slices.Contains(want, f) })
	want = append(want, objects...)
	if slices.ContainsFunc(want, func(f told) bool { return f.check == "syntax" || f.check == "object-type" }) {
		return 0, 0 // commands stop at the first error; the server shows files that are no manifests nothing
	}
	c := startIn(t, dir, map[string]any{"ignoreMissing": true})
	c.open(filepath.Base(name), text)
	var got []told
	c.until("the findings of "+name, func() bool {
		all := c.published[c.uri(filepath.Base(name))]
		if len(all) == 0 {
			return false
		}
		got = nil
		for _, d := range all[len(all)-1].Diagnostics {
			got = append(got, toldBy(d, want))
		}
		return true
	})
	if sorted(got); !slices.Equal(got, sorted(want)) {
		t.Errorf("%s: the server reports\n%+v\nthe commands\n%+v", name, got, want)
	}
	return 1, len(want)
}

// toldBy reads a diagnostic of the server. Its message is that of the command or its summary, then the fix.
func toldBy(d lsp.Diagnostic, want []told) told {
	line := d.Range.Start.Line + 1
	for _, f := range want {
		if f.line == line && f.check == d.Code && strings.HasPrefix(d.Message, f.message) {
			return f
		}
	}
	return told{d.Code, line, d.Message}
}
