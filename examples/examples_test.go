package examples_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestReadmes: each example has a README of one screen, with a title, commands, what to look at, and where to go on.
func TestReadmes(t *testing.T) {
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	index := read(t, "README.md")
	examples := 0
	for _, entry := range entries {
		if !entry.IsDir() {
			continue
		}
		folder := entry.Name()
		examples++
		text := read(t, filepath.Join(folder, "README.md"))
		for _, part := range []string{"# ", "\n```sh\n", "\n| look at | for |\n", "\nRead on: "} {
			if !strings.Contains(text, part) {
				t.Errorf("the README of %s has no %q", folder, part)
			}
		}
		if n := strings.Count(text, "\n"); n > 60 {
			t.Errorf("the README of %s has %d lines, which is more than a screen", folder, n)
		}
		if !strings.Contains(index, "("+folder+"/README.md)") {
			t.Errorf("README.md does not list %s", folder)
		}
	}
	if examples < 4 {
		t.Errorf("there are %d examples", examples)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
