package docs_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"regexp"
	"strings"
	"testing"
)

// programs are the guides about Go packages, and the files that have what they
// show.
var programs = map[string]string{
	"guides/engine.md":    "../crd/guides/engine_test.go",
	"guides/embedding.md": "../server/guides/embedding_test.go",
}

var goBlock = regexp.MustCompile("(?ms)^```go\n(.*?)^```\n")

// TestGuidesAreRun: what a guide shows of Go is in the file of examples that
// belongs to it, word for word, and so compiled and, with its output, run. Every
// example of the file is shown, and none needs what only this module can import.
func TestGuidesAreRun(t *testing.T) {
	for guide, file := range programs {
		t.Run(guide, func(t *testing.T) {
			page, err := os.ReadFile(guide)
			if err != nil {
				t.Fatal(err)
			}
			source, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			shown := map[string]bool{}
			for _, block := range goBlock.FindAllStringSubmatch(string(page), -1) {
				shown[block[1]] = true
				if !contains(string(source), block[1]) && !contains(outdented(string(source)), block[1]) {
					t.Errorf("%s has no\n%s", file, block[1])
				}
			}
			syntax, fset := parsed(t, file, source)
			for _, spec := range syntax.Imports {
				if strings.Contains(spec.Path.Value, "/internal/") {
					t.Errorf("%s imports %s, which readers cannot", file, spec.Path.Value)
				}
			}
			for _, d := range syntax.Decls {
				f, ok := d.(*ast.FuncDecl)
				if !ok || !strings.HasPrefix(f.Name.Name, "Example") {
					continue
				}
				text := string(source[fset.Position(f.Pos()).Offset:fset.Position(f.End()).Offset])
				if !strings.Contains(text, "\n\t// Output:\n") {
					t.Errorf("%s is compiled and not run: it has no output", f.Name.Name)
				}
				if !shown[text+"\n"] && !shown[outdented(body(text))] {
					t.Errorf("%s does not show %s", guide, f.Name.Name)
				}
			}
		})
	}
}

// TestConfigurationsAreRun: each command of espalier that the guide to CI shows in a file for a CI system is also in one of its sessions,
// which are run.
func TestConfigurationsAreRun(t *testing.T) {
	text := page(t, "guides/ci.md")
	run := map[string]bool{}
	for _, session := range regexp.MustCompile("(?ms)^```console\n(.*?)^```\n").FindAllStringSubmatch(text, -1) {
		for _, m := range regexp.MustCompile(`(?m)^\$ (.*)$`).FindAllStringSubmatch(session[1], -1) {
			run[m[1]] = true
		}
	}
	shown := 0
	for _, file := range regexp.MustCompile("(?ms)^```(?:yaml|groovy|sh)\n(.*?)^```\n").FindAllStringSubmatch(text, -1) {
		for _, m := range regexp.MustCompile(`(?m)^\s*(?:- |- run: |sh ')(espalier [a-z].*?)'?$`).FindAllStringSubmatch(file[1], -1) {
			shown++
			if !run[m[1]] {
				t.Errorf("the guide to CI shows %q and does not run it", m[1])
			}
		}
	}
	if shown < 4 {
		t.Errorf("the guide to CI shows %d commands: is this test still about its form?", shown)
	}
}

func parsed(t *testing.T, file string, source []byte) (*ast.File, *token.FileSet) {
	t.Helper()
	fset := token.NewFileSet()
	syntax, err := parser.ParseFile(fset, file, source, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	return syntax, fset
}

// contains reports whether a text has these lines.
func contains(text, lines string) bool {
	return lines != "" && (strings.HasPrefix(text, lines) || strings.Contains(text, "\n"+lines))
}

// body is what is between the first and the last line of a function.
func body(function string) string {
	_, after, _ := strings.Cut(function, "\n")
	return strings.TrimSuffix(after, "}")
}

// outdented is a text with its lines one tab further to the left.
func outdented(text string) string {
	return strings.TrimPrefix(strings.ReplaceAll("\n"+text, "\n\t", "\n"), "\n")
}
