package lint

import (
	"fmt"
	"go/ast"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// rows are the groups of packages from the top down, as docs/pictures/imports.txt shows them. A directory belongs to the
// group with the longest name that it is in.
var rows = []struct {
	name   string
	groups []string
}{
	{"programs", []string{"cmd", "cmd/espalier-server"}},
	{"the server", []string{"server/espaliertest", "server/local", "server"}},
	{"", []string{"server/auth"}},
	{"", []string{"server/apis"}},
	{"", []string{"server/controllers", "server/admission", "server/endpoints"}},
	{"", []string{"server/catalog", "server/replica"}},
	{"", []string{"server/storage"}},
	{"", []string{"server/webhook", "server/crdinstall", "server/loopback", "server/etcd"}},
	{"CRD tools", []string{"crd"}},
	{"the engine", []string{"espalier"}},
	{"", []string{"internal"}},
}

// small are packages that belong to no group: they are used by many and import none.
var small = []string{"server/auth/ca", "server/stackgrow", "server/gctune", "server/turns", "server/kubebuilder", "server/etcdtest", "server/restmappingtest", "docs", "finding"}

// groupOf is the group of a directory, or nothing.
func groupOf(dir string) string {
	if under(dir, small) || under(dir, outside) {
		return ""
	}
	if dir == "." {
		return "espalier"
	}
	longest := ""
	for _, r := range rows {
		for _, g := range r.groups {
			if below(dir, g) && len(g) > len(longest) {
				longest = g
			}
		}
	}
	return longest
}

// importGraph writes which groups import which, as the source of a picture.
func importGraph(t *tree) string {
	imports := map[string]map[string]bool{}
	for dir, files := range t.packages {
		from := groupOf(dir)
		if from == "" {
			continue
		}
		for _, f := range files {
			if f.isTest() || strings.HasSuffix(dir, "test") && dir != "server/espaliertest" || strings.HasSuffix(dir, "fixtures") {
				continue
			}
			for _, spec := range f.syntax.Imports {
				path, _ := strconv.Unquote(spec.Path.Value)
				local, ours := cutModule(path)
				if to := groupOf(local); ours && to != "" && to != from {
					if imports[from] == nil {
						imports[from] = map[string]bool{}
					}
					imports[from][to] = true
				}
			}
		}
	}
	var b strings.Builder
	b.WriteString("# Which group of packages imports which\n# Generated: go test ./internal/lint -run GoldenImports -update\n")
	for _, r := range rows {
		fmt.Fprintln(&b, strings.TrimSpace("row "+r.name))
		for _, g := range r.groups {
			fmt.Fprintf(&b, "  box %s\n", g)
		}
	}
	b.WriteString("\n")
	for _, from := range slices.Sorted(maps.Keys(imports)) {
		fmt.Fprintf(&b, "%s -> %s\n", from, strings.Join(slices.Sorted(maps.Keys(imports[from])), " "))
	}
	return b.String()
}

// upward lists arrows of the graph that point to a row above: imports point down.
func upward(graph string) []string {
	at := map[string]int{}
	for i, r := range rows {
		for _, g := range r.groups {
			at[g] = i
		}
	}
	var found []string
	for line := range strings.Lines(graph) {
		from, list, ok := strings.Cut(strings.TrimSpace(line), " -> ")
		for _, to := range strings.Fields(list) {
			if ok && at[to] < at[from] {
				found = append(found, from+" imports "+to)
			}
		}
	}
	return found
}

// exportedNames returns the exported names of a package, without methods and fields.
func exportedNames(files []*goFile) []string {
	var names []string
	add := func(id *ast.Ident) {
		if id.IsExported() {
			names = append(names, id.Name)
		}
	}
	for _, f := range files {
		if f.isTest() {
			continue
		}
		for _, d := range f.syntax.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if d.Recv == nil {
					add(d.Name)
				}
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					switch spec := spec.(type) {
					case *ast.TypeSpec:
						add(spec.Name)
					case *ast.ValueSpec:
						for _, name := range spec.Names {
							add(name)
						}
					}
				}
			}
		}
	}
	return names
}
