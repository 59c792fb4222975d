package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"path/filepath"
	"strings"

	"golang.org/x/tools/go/packages"
)

// A mutant is a change of a file: the bytes between two offsets become another text.
type mutant struct {
	ID       string // package, function, change, line, and which of the same
	Package  string // import path without the module's
	File     string // absolute
	Line     int
	from, to int
	text     string
	number   int // in a program with many; 0 if it needs a program of its own
}

// change is what the mutant does.
func change(was, is string) string { return compact(was) + " → " + compact(is) }

// compact is a text on one line, cut where it is long.
func compact(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if text == "" {
		return "nothing"
	}
	if runes := []rune(text); len(runes) > 60 {
		return string(runes[:40]) + "…" + string(runes[len(runes)-15:])
	}
	return text
}

// finder collects the mutants of one file.
type finder struct {
	pkg      *packages.Package
	name     string
	source   []byte
	function string
	found    []*mutant
	same     map[string]int
}

// mutantsOf returns all mutants of a package, in the order of the source.
func mutantsOf(pkg *packages.Package, name string, sources map[string][]byte) []*mutant {
	same := map[string]int{}
	var all []*mutant
	for _, file := range pkg.Syntax {
		path := pkg.Fset.Position(file.Package).Filename
		if ast.IsGenerated(file) || filepath.Base(path) == "doc.go" {
			continue
		}
		f := &finder{pkg: pkg, name: name, source: sources[path], same: same}
		for _, decl := range file.Decls {
			if fn, ok := decl.(*ast.FuncDecl); ok && fn.Body != nil {
				f.function = functionName(fn)
				f.body(fn.Body, fn.Type)
			}
		}
		all = append(all, f.found...)
	}
	return all
}

func functionName(fn *ast.FuncDecl) string {
	if fn.Recv == nil || len(fn.Recv.List) == 0 {
		return fn.Name.Name
	}
	receiver := fn.Recv.List[0].Type
	if star, ok := receiver.(*ast.StarExpr); ok {
		receiver = star.X
	}
	switch generic := receiver.(type) {
	case *ast.IndexExpr:
		receiver = generic.X
	case *ast.IndexListExpr:
		receiver = generic.X
	}
	if name, ok := receiver.(*ast.Ident); ok {
		return name.Name + "." + fn.Name.Name
	}
	return fn.Name.Name
}

// add notes a mutant that replaces a node.
func (f *finder) add(node ast.Node, text string) { f.replace(node.Pos(), node.End(), text) }

func (f *finder) replace(from, to token.Pos, text string) {
	at := f.pkg.Fset.Position(from)
	start, end := at.Offset, f.pkg.Fset.Position(to).Offset
	was := string(f.source[start:end])
	if was == text {
		return
	}
	id := f.name + " " + f.function + ": " + change(was, text) + " in " + compact(f.lineOf(start))
	f.same[id]++
	if n := f.same[id]; n > 1 {
		id += fmt.Sprintf(" (%d)", n)
	}
	f.found = append(f.found, &mutant{ID: id, Package: f.name, File: at.Filename, Line: at.Line, from: start, to: end, text: text})
}

// lineOf is the line around an offset: most changes are small, and alike without it.
func (f *finder) lineOf(at int) string {
	from := bytes.LastIndexByte(f.source[:at], '\n') + 1
	line, _, _ := bytes.Cut(f.source[from:], []byte("\n"))
	return string(line)
}

func (f *finder) textOf(node ast.Node) string {
	return string(f.source[f.pkg.Fset.Position(node.Pos()).Offset:f.pkg.Fset.Position(node.End()).Offset])
}

// body walks a function. Functions inside it return their own results.
func (f *finder) body(body *ast.BlockStmt, signature *ast.FuncType) {
	ast.Inspect(body, func(node ast.Node) bool {
		switch n := node.(type) {
		case *ast.FuncLit:
			f.body(n.Body, n.Type)
			return false
		case *ast.BinaryExpr:
			f.binary(n)
		case *ast.IfStmt:
			f.condition(n.Cond)
		case *ast.ForStmt:
			if n.Cond != nil {
				f.add(n.Cond, "false")
			}
		case *ast.BlockStmt:
			f.statements(n.List)
		case *ast.CaseClause:
			f.statements(n.Body)
		case *ast.CommClause:
			f.statements(n.Body)
		case *ast.IncDecStmt:
			f.replace(n.TokPos, n.End(), map[token.Token]string{token.INC: "--", token.DEC: "++"}[n.Tok])
		case *ast.AssignStmt:
			if is, ok := assignments[n.Tok]; ok && isNumber(f.pkg.TypesInfo.TypeOf(n.Lhs[0])) {
				f.replace(n.TokPos, n.TokPos+token.Pos(len(n.Tok.String())), is)
			}
		case *ast.ReturnStmt:
			f.results(n, signature)
		case *ast.CallExpr:
			if f.isLog(n) {
				return false
			}
			f.arguments(n)
		case *ast.BasicLit:
			if n.Kind == token.INT {
				f.add(n, n.Value+"+1")
			}
		case *ast.GenDecl:
			return n.Tok != token.CONST // the names of numbers, mostly
		}
		return true
	})
}

var assignments = map[token.Token]string{
	token.ADD_ASSIGN: "-=", token.SUB_ASSIGN: "+=", token.MUL_ASSIGN: "/=", token.QUO_ASSIGN: "*=",
	token.OR_ASSIGN: "&=", token.AND_ASSIGN: "|=",
}

// operators are what takes the place of each operator: a neighbour and, for comparisons,
// the opposite.
var operators = map[token.Token][]string{
	token.ADD: {"-"}, token.SUB: {"+"}, token.MUL: {"/"}, token.QUO: {"*"}, token.REM: {"*"},
	token.AND: {"|"}, token.OR: {"&"}, token.XOR: {"&"}, token.AND_NOT: {"&"}, token.SHL: {">>"}, token.SHR: {"<<"},
	token.EQL: {"!="}, token.NEQ: {"=="},
	token.LSS: {"<=", ">="}, token.LEQ: {"<", ">"}, token.GTR: {">=", "<="}, token.GEQ: {">", "<"},
}

func (f *finder) binary(n *ast.BinaryExpr) {
	if n.Op == token.LAND || n.Op == token.LOR {
		other := map[token.Token]string{token.LAND: "||", token.LOR: "&&"}[n.Op]
		f.replace(n.OpPos, n.OpPos+2, other)
		f.add(n, f.textOf(n.X))
		f.add(n, f.textOf(n.Y))
		return
	}
	if n.Op == token.ADD && !isNumber(f.pkg.TypesInfo.TypeOf(n)) {
		f.add(n, f.textOf(n.X)) // of texts
		return
	}
	for _, is := range operators[n.Op] {
		f.replace(n.OpPos, n.OpPos+token.Pos(len(n.Op.String())), is)
	}
}

// condition negates what has no operator that [finder.binary] changes.
func (f *finder) condition(cond ast.Expr) {
	if _, ok := cond.(*ast.BinaryExpr); !ok {
		f.add(cond, "!("+f.textOf(cond)+")")
	}
}

// statements removes statements one by one.
func (f *finder) statements(list []ast.Stmt) {
	for _, s := range list {
		switch n := s.(type) {
		case *ast.ExprStmt:
			if call, ok := n.X.(*ast.CallExpr); ok && !f.isLog(call) {
				f.add(s, "")
			}
		case *ast.AssignStmt:
			if n.Tok != token.DEFINE {
				f.add(s, "")
			}
		case *ast.IncDecStmt, *ast.DeferStmt:
			f.add(s, "")
		case *ast.BranchStmt:
			if n.Tok == token.CONTINUE || n.Tok == token.BREAK {
				f.add(s, "")
			}
		}
	}
}

// results changes what a function returns, one result at a time.
func (f *finder) results(n *ast.ReturnStmt, signature *ast.FuncType) {
	if signature.Results == nil || len(n.Results) != signature.Results.NumFields() {
		return // none, named ones, or those of a call
	}
	for _, result := range n.Results {
		if is := f.otherResult(result); is != "" {
			f.add(result, is)
		}
	}
}

func (f *finder) otherResult(result ast.Expr) string {
	info := f.pkg.TypesInfo.Types[result]
	text := f.textOf(result)
	if info.IsNil() {
		return ""
	}
	switch t := info.Type.Underlying().(type) {
	case *types.Basic:
		switch {
		case t.Info()&types.IsBoolean != 0:
			if _, ok := result.(*ast.BinaryExpr); ok {
				return "" // its operator changes
			}
			return "!(" + text + ")"
		case t.Info()&types.IsInteger != 0:
			if _, ok := result.(*ast.BasicLit); ok {
				return ""
			}
			return "(" + text + ")+1"
		case t.Info()&types.IsString != 0 && text != `""`:
			return `""`
		}
	case *types.Pointer, *types.Slice, *types.Map, *types.Interface:
		return "nil"
	}
	return ""
}

// arguments swaps neighbours of the same type, unless their order cannot matter.
func (f *finder) arguments(n *ast.CallExpr) {
	if f.isSymmetric(n) {
		return
	}
	for i := 1; i < len(n.Args); i++ {
		a, b := n.Args[i-1], n.Args[i]
		ta, tb := f.pkg.TypesInfo.TypeOf(a), f.pkg.TypesInfo.TypeOf(b)
		if ta == nil || tb == nil || !types.Identical(types.Default(ta), types.Default(tb)) || f.textOf(a) == f.textOf(b) || n.Ellipsis.IsValid() && i == len(n.Args)-1 {
			continue
		}
		between := string(f.source[f.pkg.Fset.Position(a.End()).Offset:f.pkg.Fset.Position(b.Pos()).Offset])
		f.replace(a.Pos(), b.End(), f.textOf(b)+between+f.textOf(a))
	}
}

// isSymmetric reports whether a call compares two values for equality, or takes the smaller or larger one.
func (f *finder) isSymmetric(n *ast.CallExpr) bool {
	fun := ast.Unparen(n.Fun)
	if selector, ok := fun.(*ast.SelectorExpr); ok {
		fun = selector.Sel
	}
	name, ok := fun.(*ast.Ident)
	if !ok {
		return false
	}
	if _, builtin := f.pkg.TypesInfo.Uses[name].(*types.Builtin); builtin {
		return name.Name == "min" || name.Name == "max"
	}
	return strings.HasPrefix(strings.ToLower(name.Name), "equal")
}

// isLog reports whether a call writes a log or a metric, which tests need not notice.
func (f *finder) isLog(n *ast.CallExpr) bool {
	selector, ok := n.Fun.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	used := f.pkg.TypesInfo.Uses[selector.Sel]
	if used == nil || used.Pkg() == nil {
		return false
	}
	path := used.Pkg().Path()
	return strings.HasPrefix(path, "k8s.io/klog") || strings.HasPrefix(path, "k8s.io/component-base/metrics") || strings.HasPrefix(path, "github.com/prometheus/")
}

func isNumber(t types.Type) bool {
	basic, ok := t.Underlying().(*types.Basic)
	return ok && basic.Info()&types.IsNumeric != 0
}
