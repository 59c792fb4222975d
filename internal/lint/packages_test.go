package lint

import (
	"bytes"
	"go/ast"
	"path"
	"slices"
	"strconv"
	"strings"
)

// vagueNames say where code was put, not what it is for.
var vagueNames = []string{"util", "utils", "common", "helper", "helpers", "types", "misc", "shared", "base"}

// checkPackages asks that every package is named for what it is and says so in
// its doc.go.
func checkPackages(t *tree) []Finding {
	var found []Finding
	for dir, files := range t.packages {
		name := packageName(files)
		if name == "" {
			continue // tests only
		}
		if slices.Contains(vagueNames, name) || slices.Contains(vagueNames, path.Base(dir)) {
			found = append(found, Finding{File: dir, Text: "package " + name + " has a vague name: name it for the one thing it does"})
		}
		i := slices.IndexFunc(files, func(f *goFile) bool { return path.Base(f.path) == "doc.go" })
		if i < 0 {
			found = append(found, Finding{File: dir, Text: "package has no doc.go: write one sentence on what it is, then data flow and invariants"})
			continue
		}
		found = append(found, checkPackageComment(files[i], dir, name)...)
	}
	return found
}

func checkPackageComment(f *goFile, dir, name string) []Finding {
	want := "Package " + name + " "
	if name == "main" {
		want = "Command " + path.Base(dir) + " "
	}
	if f.syntax.Doc == nil || !strings.HasPrefix(f.syntax.Doc.Text(), want) {
		return []Finding{{f.path, 1, "package comment must begin with " + strconv.Quote(want) + " so that go doc reads as a sentence"}}
	}
	return nil
}

// packageName is the name in the files that are not tests.
func packageName(files []*goFile) string {
	for _, f := range files {
		if !f.isTest() {
			return f.syntax.Name.Name
		}
	}
	return ""
}

const maxFileLines = 600

// checkSizes keeps files short enough to be read in one sitting. Tests are long where their tables are; generated files are exempt.
func checkSizes(t *tree) []Finding {
	var found []Finding
	for _, files := range t.packages {
		for _, f := range files {
			if f.isTest() || ast.IsGenerated(f.syntax) {
				continue
			}
			if n := bytes.Count(f.source, []byte("\n")); n > maxFileLines {
				found = append(found, Finding{f.path, 0, strconv.Itoa(n) + " lines; at most " + strconv.Itoa(maxFileLines) + ": split it where the subject changes"})
			}
		}
	}
	return found
}

// commentLines calls visit for each line of each comment, without its marker.
func commentLines(f *goFile, visit func(line int, text string)) {
	for _, group := range f.syntax.Comments {
		for _, c := range group.List {
			text := strings.TrimSuffix(strings.TrimPrefix(strings.TrimPrefix(c.Text, "//"), "/*"), "*/")
			for i, l := range strings.Split(text, "\n") {
				visit(f.line(c.Pos())+i, strings.TrimLeft(l, "* \t"))
			}
		}
	}
}
