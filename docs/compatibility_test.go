package docs_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestCompatibilityVersions: each version in COMPATIBILITY.md is that of the go.mod that the comment behind it names.
func TestCompatibilityVersions(t *testing.T) {
	text := page(t, "../COMPATIBILITY.md")
	found := regexp.MustCompile(`(\S+)<!-- go\.mod: (\S+) (\S+) -->`).FindAllStringSubmatch(text, -1)
	if len(found) < 10 {
		t.Fatalf("the page names %d versions: is this test still about its form?", len(found))
	}
	for _, m := range found {
		module := page(t, filepath.Join("..", m[2], "go.mod"))
		required := regexp.MustCompile(`(?m)^(?:require )?\s*` + regexp.QuoteMeta(m[3]) + ` (\S+)`).FindStringSubmatch(module)
		switch {
		case required == nil:
			t.Errorf("%s/go.mod does not require %s", m[2], m[3])
		case m[3] == "go" && !strings.HasPrefix(required[1], m[1]+"."), m[3] != "go" && required[1] != m[1]:
			t.Errorf("COMPATIBILITY.md says %s of %s, and %s/go.mod %s", m[1], m[3], m[2], required[1])
		}
	}
	// No version of Kubernetes' libraries stands there without being compared.
	for _, version := range regexp.MustCompile(`v0\.\d\d\.\d+\S*`).FindAllString(text, -1) {
		if !strings.Contains(version, "<!--") {
			t.Errorf("nothing compares %s with a go.mod", version)
		}
	}
}

// TestCompatibilityPackages: COMPATIBILITY.md says of each package that others can import whether it is kept, once.
func TestCompatibilityPackages(t *testing.T) {
	_, text, _ := strings.Cut(page(t, "../COMPATIBILITY.md"), "\n### Go packages\n")
	text, _, _ = strings.Cut(text, "\n## ")
	listed := map[string]bool{} // whether a package was found
	for _, row := range regexp.MustCompile(`(?m)^\| (.*?) \|`).FindAllStringSubmatch(text, -1) {
		for _, name := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(row[1], -1) {
			if _, twice := listed[name[1]]; twice {
				t.Errorf("the page has %s twice", name[1])
			}
			listed[name[1]] = false
		}
	}
	for _, module := range []string{".", "finding", "docs", "crd", "server", "cmd"} {
		err := filepath.WalkDir(filepath.Join("..", module), func(path string, entry fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			name, err := filepath.Rel("..", path)
			if err != nil || !entry.IsDir() {
				return err
			}
			if base := entry.Name(); module == "." && name != "." || base == "internal" || base == "testdata" {
				return fs.SkipDir
			}
			if !hasGo(t, path) {
				return nil
			}
			name = filepath.ToSlash(name)
			for at, suffix := name, ""; ; suffix = "/..." {
				if _, ok := listed[at+suffix]; ok {
					listed[at+suffix] = true
					return nil
				}
				up := strings.LastIndex(at, "/")
				if suffix == "/..." && up < 0 {
					t.Errorf("COMPATIBILITY.md does not say whether the package %s is kept", name)
					return nil
				}
				if suffix == "/..." {
					at = at[:up]
				}
			}
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for name, found := range listed {
		if !found {
			t.Errorf("COMPATIBILITY.md has %s, which is no package", name)
		}
	}
}

// hasGo reports whether a folder is a package that can be imported.
func hasGo(t *testing.T, dir string) bool {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if name := entry.Name(); strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go") {
			return true
		}
	}
	return false
}
