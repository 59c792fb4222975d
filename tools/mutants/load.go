package main

import (
	"errors"
	"fmt"
	"go/parser"
	"go/types"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/tools/go/packages"
)

const module = "github.com/espalier-dev/espalier/"

// source is what mutants are made from.
type source struct {
	all      map[string]*packages.Package // by name
	contents map[string][]byte            // of files
	mutants  []*mutant
}

// read loads packages of the workspace, and finds all mutants of them.
func read(root string, names []string) (*source, error) {
	patterns := make([]string, len(names))
	for i, name := range names {
		patterns[i] = "./" + name
	}
	config := &packages.Config{Dir: root, Env: environment(root), Mode: packages.NeedName | packages.NeedFiles | packages.NeedCompiledGoFiles | packages.NeedImports |
		packages.NeedSyntax | packages.NeedTypes | packages.NeedTypesInfo | packages.NeedExportFile}
	loaded, err := packages.Load(config, patterns...)
	if err != nil {
		return nil, err
	}
	s := &source{all: map[string]*packages.Package{}, contents: map[string][]byte{}}
	for _, pkg := range loaded {
		for _, problem := range pkg.Errors {
			err = errors.Join(err, problem)
		}
		for _, path := range pkg.CompiledGoFiles {
			content, failed := os.ReadFile(path)
			err = errors.Join(err, failed)
			s.contents[path] = content
		}
		if err != nil {
			return nil, fmt.Errorf("load %s: %w", pkg.PkgPath, err)
		}
		name := strings.TrimPrefix(pkg.PkgPath+"/", module)
		name = strings.TrimSuffix(name, "/")
		s.all[name] = pkg
		s.mutants = append(s.mutants, mutantsOf(pkg, name, s.contents)...)
	}
	return s, nil
}

// environment has the workspace of the repository: the tool runs in a module of its own.
func environment(root string) []string {
	return append(os.Environ(), "GOWORK="+filepath.Join(root, "go.work"))
}

// sample returns n mutants that compile, chosen by a seed; fewer if there are not as many.
func (s *source) sample(n int, seed uint64) []*mutant {
	order := rand.New(rand.NewPCG(seed, seed)).Perm(len(s.mutants))
	var chosen []*mutant
	for _, i := range order {
		if len(chosen) == n {
			break
		}
		if m := s.mutants[i]; s.compiles(m) {
			chosen = append(chosen, m)
		}
	}
	return chosen
}

// changed is the file with the mutant.
func (s *source) changed(m *mutant) []byte {
	content := s.contents[m.File]
	out := make([]byte, 0, len(content)+len(m.text))
	out = append(out, content[:m.from]...)
	out = append(out, m.text...)
	return append(out, content[m.to:]...)
}

// compiles checks the types of the package with the mutant.
func (s *source) compiles(m *mutant) bool {
	pkg := s.all[m.Package]
	changed, err := parser.ParseFile(pkg.Fset, m.File, s.changed(m), parser.SkipObjectResolution)
	if err != nil {
		return false
	}
	files := slices.Clone(pkg.Syntax)
	for i, file := range files {
		if pkg.Fset.Position(file.Package).Filename == m.File {
			files[i] = changed
		}
	}
	config := types.Config{Importer: imported(pkg), Sizes: pkg.TypesSizes}
	_, err = config.Check(pkg.PkgPath, pkg.Fset, files, nil)
	return err == nil
}

// imported finds the packages that a package imports: they are loaded.
func imported(pkg *packages.Package) types.Importer {
	known := map[string]*types.Package{"unsafe": types.Unsafe}
	for _, one := range pkg.Types.Imports() {
		known[one.Path()] = one
	}
	return importer(known)
}

type importer map[string]*types.Package

// Import implements types.Importer.
func (i importer) Import(path string) (*types.Package, error) {
	if pkg := i[path]; pkg != nil {
		return pkg, nil
	}
	return nil, fmt.Errorf("%s is not imported", path)
}
