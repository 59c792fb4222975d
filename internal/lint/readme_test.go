package lint

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"strings"
)

// readmeExamples are the blocks of Go in a Markdown document.
func readmeExamples(markdown string) (blocks []string, err error) {
	for {
		_, rest, ok := strings.Cut(markdown, "\n```go\n")
		if !ok {
			return blocks, nil
		}
		block, rest, ok := strings.Cut(rest, "\n```\n")
		if !ok {
			return nil, errors.New("the go block does not end")
		}
		blocks = append(blocks, block)
		markdown = "\n" + rest
	}
}

// exampleBody is the body of a function as a reader would write it at the
// margin: without the braces and one level of indentation.
func exampleBody(source []byte, name string) (string, error) {
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, "example_test.go", source, parser.SkipObjectResolution)
	if err != nil {
		return "", err
	}
	for _, d := range file.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok || f.Name.Name != name {
			continue
		}
		from, to := fset.Position(f.Body.Lbrace).Offset, fset.Position(f.Body.Rbrace).Offset
		lines := strings.Split(strings.Trim(string(source[from+1:to]), "\n"), "\n")
		for i, l := range lines {
			lines[i] = strings.TrimPrefix(l, "\t")
		}
		return strings.Join(lines, "\n"), nil
	}
	return "", fmt.Errorf("no function %s", name)
}
