package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strconv"
	"strings"
)

// switchVariable is set for a program that has several mutants. It chooses one by its number; the programs of a run are
// the same, and are compiled once.
const switchVariable = "ESPALIER_MUTANT"

// reachVariable names the file that a program with number -1 writes to.
const reachVariable = "ESPALIER_MUTANTS_REACHED"

// chooser is a file of each changed package. With number -1 a program is as it was and
// writes the numbers of the mutants whose functions it calls.
const chooser = `package %s

import (
	"fmt"
	"os"
	"strconv"
	"sync"
)

var mutantNumber, _ = strconv.Atoi(os.Getenv("` + switchVariable + `"))

var mutantsReached sync.Map

func mutantReached(numbers ...int) {
	if _, known := mutantsReached.LoadOrStore(numbers[0], true); known {
		return
	}
	file, err := os.OpenFile(os.Getenv("` + reachVariable + `"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err == nil {
		_, err = fmt.Fprintln(file, numbers)
	}
	if err != nil {
		panic(err)
	}
	_ = file.Close()
}
`

// variants makes files with many mutants in them. A function with mutants has a variant for each, and begins with a
// switch that calls the one that is chosen:
//
//	func f(x int) bool { switch mutantNumber { case 7: return f_mutant7(x) }; return x > 0 }
//
//	func f_mutant7(x int) bool { return x >= 0 }
//
// It gives the mutants their numbers. A mutant that is no change of one function's body, or of a function that cannot be
// called like this, keeps number 0: it needs a program of its own.
func (s *source) variants(chosen []*mutant) (map[string][]byte, error) {
	byFile := map[string][]*mutant{}
	for i, m := range chosen {
		m.number = i + 1
		byFile[m.File] = append(byFile[m.File], m)
	}
	files := map[string][]byte{}
	for path, mutants := range byFile {
		content, pkg, err := variantsOf(path, s.contents[path], mutants)
		if err != nil {
			return nil, err
		}
		files[path] = content
		files[filepath.Join(filepath.Dir(path), "mutant_number.go")] = fmt.Appendf(nil, chooser, pkg)
	}
	return files, nil
}

// variantsOf is a file with all mutants, and the name of its package.
func variantsOf(path string, content []byte, mutants []*mutant) ([]byte, string, error) {
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, path, content, parser.SkipObjectResolution)
	if err != nil {
		return nil, "", err
	}
	at := func(p token.Pos) int { return set.Position(p).Offset }
	var out, more bytes.Buffer
	done := 0
	placed := map[*mutant]bool{}
	for _, decl := range file.Decls {
		fn, ok := decl.(*ast.FuncDecl)
		if !ok || fn.Body == nil {
			continue
		}
		call, ok := callOf(fn)
		if !ok {
			continue
		}
		from, to := at(fn.Pos()), at(fn.End())
		if fn.Doc != nil {
			from = at(fn.Type.Func)
		}
		var cases strings.Builder
		var numbers []string
		for _, m := range mutants {
			if m.from <= at(fn.Body.Lbrace) || m.to >= to {
				continue
			}
			placed[m] = true
			numbers = append(numbers, strconv.Itoa(m.number))
			name := fmt.Sprintf("%s_mutant%d", fn.Name.Name, m.number)
			result := "return " + name + call
			if fn.Type.Results == nil {
				result = name + call + "; return"
			}
			if fn.Recv != nil {
				result = strings.Replace(result, name, fn.Recv.List[0].Names[0].Name+"."+name, 1)
			}
			fmt.Fprintf(&cases, "case %d: %s; ", m.number, result)
			more.WriteString("\n")
			more.Write(content[from:at(fn.Name.Pos())])
			more.WriteString(name)
			more.Write(content[at(fn.Name.End()):m.from])
			more.WriteString(m.text)
			more.Write(content[m.to:to])
			more.WriteString("\n")
		}
		if cases.Len() > 0 {
			brace := at(fn.Body.Lbrace) + 1
			out.Write(content[done:brace])
			fmt.Fprintf(&out, " switch mutantNumber { case -1: mutantReached(%s); %s}; ", strings.Join(numbers, ", "), cases.String())
			done = brace
		}
	}
	for _, m := range mutants {
		if !placed[m] {
			m.number = 0
		}
	}
	out.Write(content[done:])
	out.Write(more.Bytes())
	return out.Bytes(), file.Name.Name, nil
}

// callOf is what follows the name in a call of a function by itself with the arguments that it was given.
func callOf(fn *ast.FuncDecl) (string, bool) {
	if fn.Recv != nil && (len(fn.Recv.List[0].Names) == 0 || fn.Recv.List[0].Names[0].Name == "_") || recovers(fn.Body) {
		return "", false
	}
	var types, args []string
	if fn.Type.TypeParams != nil {
		for _, list := range fn.Type.TypeParams.List {
			for _, name := range list.Names {
				types = append(types, name.Name)
			}
		}
	}
	for _, list := range fn.Type.Params.List {
		if len(list.Names) == 0 {
			return "", false
		}
		for _, name := range list.Names {
			if name.Name == "_" {
				return "", false
			}
			args = append(args, name.Name)
		}
		if _, variadic := list.Type.(*ast.Ellipsis); variadic {
			args[len(args)-1] += "..."
		}
	}
	call := "(" + strings.Join(args, ", ") + ")"
	if len(types) > 0 {
		call = "[" + strings.Join(types, ", ") + "]" + call
	}
	return call, true
}

// recovers reports whether a function stops a panic, as it can if it is deferred itself. Functions inside it may.
func recovers(body *ast.BlockStmt) (found bool) {
	ast.Inspect(body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit:
			return false
		case *ast.CallExpr:
			name, ok := n.Fun.(*ast.Ident)
			found = found || ok && name.Name == "recover"
		}
		return !found
	})
	return found
}
