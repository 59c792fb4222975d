package deploy

import (
	"bytes"
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// write has the tests write what is made from something else, instead of comparing it. It is not called update: `make golden` looks for that name in the root module.
var write = flag.Bool("write", false, "write the manifests and the chart's copies anew")

const (
	chartDir      = "helm/espalier"
	manifestFile  = "kubernetes/server.yaml"
	rulesFile     = "prometheus/rules.yaml"
	dashboardFile = "grafana/dashboard.json"
)

func read(t *testing.T, file string) []byte {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// same fails if file does not hold want; with -write it is made to.
func same(t *testing.T, file string, want []byte) {
	t.Helper()
	if *write {
		if err := os.WriteFile(file, want, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if !bytes.Equal(read(t, file), want) {
		t.Errorf("%s is not what it is made from: run `go test -run %s -write` in deploy/ and read the difference", file, t.Name())
	}
}

// The chart can read files of its own folder only.
func TestChartHasRulesAndDashboard(t *testing.T) {
	for _, file := range []string{rulesFile, dashboardFile} {
		same(t, filepath.Join(chartDir, "files", filepath.Base(file)), read(t, file))
	}
}

// Whatever is shipped is plain text with a line end, without tabs in YAML, and without trailing blanks.
func TestFilesAreClean(t *testing.T) {
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.HasSuffix(path, ".go") || strings.HasPrefix(path, "go.") {
			return err
		}
		text := string(read(t, path))
		if !strings.HasSuffix(text, "\n") || strings.HasSuffix(text, "\n\n") {
			t.Errorf("%s does not end with one line end", path)
		}
		for i, line := range strings.Split(text, "\n") {
			if strings.TrimRight(line, " \t\r") != line {
				t.Errorf("%s:%d ends with blanks", path, i+1)
			}
			if strings.HasSuffix(path, ".yaml") && strings.Contains(line, "\t") {
				t.Errorf("%s:%d has a tab", path, i+1)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
