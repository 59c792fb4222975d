package lint

import (
	"flag"
	"os"
	"strings"
	"testing"
	"testing/fstest"
)

var update = flag.Bool("update", false, "rewrite the source of the picture of imports")

// TestGoldenImports holds docs/pictures/imports.txt, from which the picture is drawn, against the imports.
func TestGoldenImports(t *testing.T) {
	tree, err := readTree(os.DirFS(root))
	if err != nil {
		t.Fatal(err)
	}
	graph := importGraph(tree)
	for _, text := range upward(graph) {
		t.Errorf("%s, which is above it", text)
	}
	file := root + "/docs/pictures/imports.txt"
	if *update {
		if err := os.WriteFile(file, []byte(graph), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if text, err := os.ReadFile(file); err != nil || string(text) != graph {
		t.Errorf("%s is not what the packages import (%v): go test ./internal/lint -run GoldenImports -update, then make pictures", file, err)
	}
}

func TestImportGraph(t *testing.T) {
	tree, err := readTree(fstest.MapFS{
		"crd/a.go":                {Data: []byte("package crd\n\nimport _ \"" + module + "/server/apis/builtin\"\n")},
		"server/apis/b.go":        {Data: []byte("package apis\n\nimport _ \"" + module + "/crd\"\n")},
		"server/apis/b_test.go":   {Data: []byte("package apis\n\nimport _ \"" + module + "/server\"\n")},
		"server/gctune/gctune.go": {Data: []byte("package gctune\n")},
	})
	if err != nil {
		t.Fatal(err)
	}
	graph := importGraph(tree)
	if !strings.HasSuffix(graph, "\ncrd -> server/apis\nserver/apis -> crd\n") {
		t.Errorf("got %s", graph)
	}
	if found := upward(graph); len(found) != 1 || found[0] != "crd imports server/apis" {
		t.Errorf("found %q", found)
	}
}

// TestRootIsSmall counts what the engine's package exports: users have to read all of it.
func TestRootIsSmall(t *testing.T) {
	tree, err := readTree(os.DirFS(root))
	if err != nil {
		t.Fatal(err)
	}
	names := exportedNames(tree.packages["."])
	if len(names) < 20 || len(names) > 40 {
		t.Errorf("the root package exports %d names, and must not export more than 40: %q", len(names), names)
	}
}
