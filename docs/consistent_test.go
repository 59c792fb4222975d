package docs_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

func page(t *testing.T, file string) string {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// TestModulesAreListed: CONTRIBUTING names every Go module, and counts them.
func TestModulesAreListed(t *testing.T) {
	numbers := []string{"no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen", "twenty", "twenty-one", "twenty-two", "twenty-three", "twenty-four", "twenty-five", "twenty-six", "twenty-seven", "twenty-eight", "twenty-nine", "thirty"}
	text := page(t, "../CONTRIBUTING.md")
	count := 0
	err := filepath.WalkDir("..", func(path string, entry fs.DirEntry, err error) error {
		if entry != nil && entry.IsDir() && entry.Name() == ".bin" {
			return fs.SkipDir // what was built, of copies of other modules, too
		}
		if err != nil || entry.Name() != "go.mod" {
			return err
		}
		count++
		module := strings.TrimPrefix(filepath.ToSlash(filepath.Dir(path)), "../")
		if module == ".." {
			module = "."
		}
		if !strings.Contains(text, "`"+module+"`") {
			t.Errorf("CONTRIBUTING.md does not name the module %s", module)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if want := "There are " + numbers[count] + " Go modules."; !strings.Contains(text, want) {
		t.Errorf("CONTRIBUTING.md does not say %q", want)
	}
}

// TestDeployFollowsTheGuide: a flag that the guide to production tells operators not to set is set by nothing that we ship.
func TestDeployFollowsTheGuide(t *testing.T) {
	forbidden := regexp.MustCompile("Do not set `(--[a-z-]+)`").FindAllStringSubmatch(page(t, "guides/production.md"), -1)
	if len(forbidden) == 0 {
		t.Fatal("the guide to production forbids no flag: is this test still about its words?")
	}
	err := filepath.WalkDir("../deploy", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || strings.HasSuffix(path, ".go") || strings.HasSuffix(path, ".md") {
			return err
		}
		for _, flag := range forbidden {
			if strings.Contains(page(t, path), flag[1]) {
				t.Errorf("%s sets %s, which the guide to production says not to set", path, flag[1])
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestPagesAreConsistent: sentences that were once untrue, because two pages said two things, do not come back.
func TestPagesAreConsistent(t *testing.T) {
	for file, stale := range map[string][]string{
		"../server/doc.go":              {"one group is let in"},
		"../SECURITY.md":                {"and later patches"},
		"checks/api-version-removed.md": {"No server serves"},
		"guides/envtest.md":             {"Both leave the tests"},
		"../README.md":                  {"240 KB"},
		"design/0002-validation.md":     {"upstream-features"},
		"../.pre-commit-hooks.yaml":     {"rev: main", "@latest"},
		"../action.yml":                 {"@main", "latest"},
		"guides/ci.md":                  {"rev: main", "espalier@main", "@latest"},
	} {
		text := page(t, file)
		for _, words := range stale {
			if strings.Contains(text, words) {
				t.Errorf("%s still says %q", file, words)
			}
		}
	}
	// The corpus is defined in one place; every count of CRDs and schemas that pages give is one of those there.
	corpora := page(t, "../conformance/README.md")
	_, corpora, _ = strings.Cut(corpora, "## The corpora")
	corpora, _, _ = strings.Cut(corpora, "\n## ")
	count := regexp.MustCompile(`\b([23],\d{3}) (?:real |distinct )*(CRDs|schemas|files|real ones)`)
	for _, file := range pages(t) {
		for _, m := range count.FindAllStringSubmatch(page(t, file), -1) {
			if !strings.Contains(corpora, m[1]) {
				t.Errorf("%s counts %s %s, which conformance/README.md does not define", file, m[1], m[2])
			}
		}
	}
}
