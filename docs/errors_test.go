package docs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestErrorsAreListed: the guide to errors has every cause that the server gives.
func TestErrorsAreListed(t *testing.T) {
	text := page(t, "guides/errors.md")
	declared := regexp.MustCompile(`(?m)^(?:const )?\s*\w+ +metav1\.CauseType = "(\w+)"`)
	found := 0
	err := filepath.WalkDir("../server", func(path string, _ os.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
			return err
		}
		source, err := os.ReadFile(path)
		for _, m := range declared.FindAllStringSubmatch(string(source), -1) {
			if found++; !strings.Contains(text, "\n| `"+m[1]+"` | ") {
				t.Errorf("guides/errors.md has no line about the cause %s of %s", m[1], path)
			}
		}
		return err
	})
	if err != nil || found < 5 {
		t.Errorf("%d causes found: %v", found, err)
	}
}
