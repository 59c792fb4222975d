package lint

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"strings"
)

// A Finding is one broken house rule.
type Finding struct {
	File string // slash-separated, from the root of the repository
	Line int    // 0 where the whole file or package is meant
	Text string // what is wrong and why it matters
}

func (f Finding) String() string {
	if f.Line == 0 {
		return f.File + ": " + f.Text
	}
	return fmt.Sprintf("%s:%d: %s", f.File, f.Line, f.Text)
}

// A goFile is a parsed Go file.
type goFile struct {
	path   string
	source []byte
	fset   *token.FileSet
	syntax *ast.File
}

func (f *goFile) line(p token.Pos) int { return f.fset.Position(p).Line }

func (f *goFile) isTest() bool { return strings.HasSuffix(f.path, "_test.go") }

// A tree is the repository as the rules see it: its text files, and its Go
// files grouped by directory.
type tree struct {
	text     []textFile
	packages map[string][]*goFile // by directory; "." is the root
}

type textFile struct {
	path    string
	content []byte
}

// readTree reads what a checkout holds. Directories that a checkout does not
// hold (version control, built tools) are skipped by name, because asking git
// would make the rules fail in an unpacked archive.
func readTree(fsys fs.FS) (*tree, error) {
	t := &tree{packages: map[string][]*goFile{}}
	fset := token.NewFileSet()
	err := fs.WalkDir(fsys, ".", func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			switch d.Name() {
			case ".git", ".bin", ".idea", ".vscode":
				return fs.SkipDir
			}
			return nil
		}
		if !d.Type().IsRegular() || d.Name() == ".git" { // in a work tree .git is a file
			return nil
		}
		content, err := fs.ReadFile(fsys, p)
		if err != nil {
			return err
		}
		if isBinary(content) {
			return nil
		}
		t.text = append(t.text, textFile{p, content})
		if !strings.HasSuffix(p, ".go") || inTestdata(p) {
			return nil
		}
		syntax, err := parser.ParseFile(fset, p, content, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		dir := path.Dir(p)
		t.packages[dir] = append(t.packages[dir], &goFile{path: p, source: content, fset: fset, syntax: syntax})
		return nil
	})
	return t, err
}

// isBinary guesses as git does: a NUL byte near the beginning.
func isBinary(content []byte) bool {
	return bytes.IndexByte(content[:min(len(content), 8000)], 0) >= 0
}

func inTestdata(p string) bool {
	return strings.HasPrefix(p, "testdata/") || strings.Contains(p, "/testdata/")
}
