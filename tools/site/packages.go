package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/doc"
	"go/doc/comment"
	"go/format"
	"go/parser"
	"go/token"
	"io"
	"os/exec"
	"path/filepath"
	"strings"
)

// public are the modules whose packages others import.
var public = []string{"./...", "./crd/...", "./server/..."}

// packages writes a page for each package that others can import.
func (s *site) packages(ctx context.Context) error {
	cmd := exec.CommandContext(ctx, "go", append([]string{"list", "-json=ImportPath,Name,Doc,Dir,GoFiles"}, public...)...)
	cmd.Dir = s.root
	cmd.Env = append(cmd.Environ(), "GOWORK=")
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("list the packages: %w", err)
	}
	list := strings.Builder{}
	for in := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p struct {
			ImportPath, Name, Doc, Dir string
			GoFiles                    []string
		}
		if err := in.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return err
		}
		if strings.Contains(p.ImportPath+"/", "/internal/") || p.Name == "main" {
			continue
		}
		body, err := describe(p.Dir, p.ImportPath, p.GoFiles)
		if err != nil {
			return err
		}
		_, name, _ := strings.Cut(p.ImportPath, "github.com/espalier-dev/")
		if err := s.write("reference/packages/"+name+".md", "Package "+name, p.Doc, "", body); err != nil {
			return err
		}
		fmt.Fprintf(&list, "| [`%s`](%s.md) | %s |\n", name, name, cell(p.Doc))
	}
	about := "These packages can be imported. [COMPATIBILITY.md](../../COMPATIBILITY.md) says which of them we intend to keep. " +
		"`go doc` shows the same in a terminal.\n\n| package | |\n|---|---|\n"
	return s.write("reference/packages/_index.md", "Go packages", "All Go packages that can be imported.", "", about+list.String())
}

// describe documents a package as Markdown.
func describe(dir, path string, names []string) (string, error) {
	fset, files := token.NewFileSet(), []*ast.File{}
	for _, name := range names {
		file, err := parser.ParseFile(fset, filepath.Join(dir, name), nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return "", err
		}
		files = append(files, file)
	}
	p, err := doc.NewFromFiles(fset, files, path)
	if err != nil {
		return "", err
	}
	b := &strings.Builder{}
	printer := p.Printer()
	printer.HeadingLevel = 2
	printer.HeadingID = func(*comment.Heading) string { return "" }
	printer.DocLinkURL = func(l *comment.DocLink) string {
		if l.ImportPath != "" {
			return "https://pkg.go.dev/" + l.ImportPath + "#" + l.Name
		}
		if l.Recv != "" {
			return "#" + strings.ToLower(l.Recv+l.Name)
		}
		return "#" + strings.ToLower(l.Name)
	}
	text := func(doc string) { b.WriteString(fenced(string(printer.Markdown(p.Parser().Parse(doc))))) }
	decl := func(node any) error {
		b.WriteString("\n```go\n")
		err := format.Node(b, fset, node)
		b.WriteString("\n```\n\n")
		return err
	}
	fmt.Fprintf(b, "```go\nimport %q\n```\n\n", path)
	text(p.Doc)
	var failed error
	values := func(list []*doc.Value) {
		for _, v := range list {
			for _, name := range v.Names {
				fmt.Fprintf(b, "<span id=%q></span>", strings.ToLower(name))
			}
			b.WriteString("\n")
			failed = errors.Join(failed, decl(v.Decl))
			text(v.Doc)
		}
	}
	funcs := func(list []*doc.Func, level string) {
		for _, f := range list {
			of, _, _ := strings.Cut(strings.TrimPrefix(f.Recv, "*"), "[") // links have no type parameters
			fmt.Fprintf(b, "\n%s func %s {#%s}\n", level, strings.TrimPrefix(of+"."+f.Name, "."), strings.ToLower(of+f.Name))
			f.Decl.Body = nil
			failed = errors.Join(failed, decl(f.Decl))
			text(f.Doc)
		}
	}
	values(p.Consts)
	values(p.Vars)
	funcs(p.Funcs, "##")
	for _, t := range p.Types {
		fmt.Fprintf(b, "\n## type %s {#%s}\n", t.Name, strings.ToLower(t.Name))
		failed = errors.Join(failed, decl(t.Decl))
		text(t.Doc)
		values(t.Consts)
		values(t.Vars)
		funcs(t.Funcs, "###")
		funcs(t.Methods, "###")
	}
	return b.String(), failed
}

// fenced has blocks of code between fences, so that Hugo draws them as all others.
func fenced(text string) string {
	b, code := strings.Builder{}, false
	for line := range strings.Lines(text) {
		rest, indented := strings.CutPrefix(line, "\t")
		switch {
		case indented && !code:
			b.WriteString("```text\n")
			code = true
		case !indented && code && strings.TrimSpace(line) != "":
			b.WriteString("```\n\n")
			code = false
		}
		b.WriteString(rest)
	}
	if code {
		b.WriteString("```\n")
	}
	return b.String()
}
