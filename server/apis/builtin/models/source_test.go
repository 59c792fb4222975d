package models

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	generated "k8s.io/apiextensions-apiserver/pkg/generated/openapi"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// source is what the comments of a package of k8s.io/api say in markers: lines
// that begin with a plus.
type source struct {
	types  map[string]markers             // by type
	fields map[string]map[string]markers  // by type and Go field
	values map[string]map[string]struct{} // of string constants, by type
	named  map[string]string              // values of string constants, by name
	others map[string][]string            // names of constants of k8s.io/api/core/v1 that are values, by type
}

// markers are the values of markers by their names.
type markers map[string][]string

func (m markers) has(name string) bool { _, ok := m[name]; return ok }

func markersOf(doc *ast.CommentGroup) markers {
	m := markers{}
	if doc == nil {
		return m
	}
	for _, c := range doc.List {
		line := strings.TrimSpace(strings.TrimPrefix(c.Text, "//"))
		if marker, ok := strings.CutPrefix(line, "+"); ok {
			name, value, _ := strings.Cut(marker, "=")
			m[name] = append(m[name], value)
		}
	}
	return m
}

func readSource(t *testing.T, dir string) *source {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%s has no source (%v)", dir, err)
	}
	s := &source{types: map[string]markers{}, fields: map[string]map[string]markers{}, values: map[string]map[string]struct{}{}, named: map[string]string{}, others: map[string][]string{}}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		for _, decl := range f.Decls {
			if g, ok := decl.(*ast.GenDecl); ok {
				s.add(g)
			}
		}
	}
	return s
}

func (s *source) add(decl *ast.GenDecl) {
	for _, one := range decl.Specs {
		switch one := one.(type) {
		case *ast.TypeSpec:
			doc := one.Doc
			if doc == nil {
				doc = decl.Doc
			}
			s.types[one.Name.Name] = markersOf(doc)
			if st, ok := one.Type.(*ast.StructType); ok {
				s.addFields(one.Name.Name, st)
			}
		case *ast.ValueSpec:
			s.addConstants(one)
		}
	}
}

func (s *source) addFields(name string, st *ast.StructType) {
	s.fields[name] = map[string]markers{}
	for _, f := range st.Fields.List {
		for _, id := range f.Names {
			s.fields[name][id.Name] = markersOf(f.Doc)
		}
	}
}

// addConstants adds constants of string types, such as `A Type = "a"`, `A = Type("a")`
// and `A = Type(v1.A)`.
func (s *source) addConstants(v *ast.ValueSpec) {
	for i, value := range v.Values {
		id, _ := v.Type.(*ast.Ident)
		if call, ok := value.(*ast.CallExpr); ok && id == nil && len(call.Args) == 1 {
			id, _ = call.Fun.(*ast.Ident)
			value = call.Args[0]
		}
		if id == nil {
			continue
		}
		switch value := value.(type) {
		case *ast.BasicLit:
			if value.Kind != token.STRING {
				continue
			}
			text, _ := strconv.Unquote(value.Value)
			if s.values[id.Name] == nil {
				s.values[id.Name] = map[string]struct{}{}
			}
			s.values[id.Name][text] = struct{}{}
			s.named[v.Names[i].Name] = text
		case *ast.SelectorExpr:
			s.others[id.Name] = append(s.others[id.Name], value.Sel.Name)
		}
	}
}

// enum are the values of a type, if its comment says that it has no others.
func (s *sources) enum(t reflect.Type) []string {
	if t.Kind() != reflect.String || !strings.HasPrefix(t.PkgPath(), "k8s.io/api/") || !s.of(t).types[t.Name()].has("enum") {
		return nil
	}
	values := slices.Collect(maps.Keys(s.of(t).values[t.Name()]))
	for _, name := range s.of(t).others[t.Name()] {
		values = append(values, s.of(reflect.TypeFor[corev1.Pod]()).named[name])
	}
	slices.Sort(values)
	return values
}

// sources reads each package once.
type sources struct {
	*testing.T
	dir  string // of k8s.io/api
	read map[string]*source
}

func newSources(t *testing.T) *sources {
	t.Helper()
	dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "k8s.io/api").Output()
	if err != nil {
		t.Fatalf("where is the source of k8s.io/api: %v", err)
	}
	return &sources{T: t, dir: strings.TrimSpace(string(dir)), read: map[string]*source{}}
}

func (s *sources) of(t reflect.Type) *source {
	if s.read[t.PkgPath()] == nil {
		s.read[t.PkgPath()] = readSource(s.T, filepath.Join(s.dir, strings.TrimPrefix(t.PkgPath(), "k8s.io/api/")))
	}
	return s.read[t.PkgPath()]
}

// expected is what a generator makes of the markers of a field, in words.
func (s *sources) expected(f reflect.StructField, m markers) map[string]string {
	tag := f.Tag.Get("json")
	required := !strings.Contains(tag, ",omitempty")
	if m.has("required") || m.has("optional") {
		required = m.has("required")
	}
	want := map[string]string{"required": fmt.Sprint(required)}
	for marker, extension := range map[string]string{
		"listType": "x-kubernetes-list-type", "mapType": "x-kubernetes-map-type", "structType": "x-kubernetes-map-type",
		"patchStrategy": "x-kubernetes-patch-strategy", "patchMergeKey": "x-kubernetes-patch-merge-key",
	} {
		if m.has(marker) {
			want[extension] = strconv.Quote(m[marker][0])
		}
	}
	if m.has("listMapKey") {
		want["x-kubernetes-list-map-keys"] = text(m["listMapKey"])
	}
	if m.has("default") {
		want["default"] = m["default"][0]
		if name, ok := strings.CutPrefix(want["default"], "ref("); ok {
			want["default"] = strconv.Quote(s.of(pointed(f.Type)).named[strings.TrimSuffix(name, ")")])
		}
	}
	t := pointed(f.Type)
	if t.Kind() == reflect.Slice {
		t = pointed(t.Elem())
	}
	if values := s.enum(t); values != nil {
		want["enum"] = text(values)
	}
	return want
}

// described is what an OpenAPI definition says of a field, in the same words.
func described(s spec.Schema, field string, explicit bool) map[string]string {
	p := s.Properties[field]
	got := map[string]string{"required": fmt.Sprint(slices.Contains(s.Required, field))}
	for name, value := range p.Extensions {
		got[name] = text(value)
	}
	if explicit {
		got["default"] = text(p.Default)
	}
	enum := p.Enum
	if p.Items != nil {
		enum = p.Items.Schema.Enum
	}
	if enum != nil {
		got["enum"] = text(enum)
	}
	return got
}

// TestDefinitionsSayWhatCommentsSay compares every field of every type of
// k8s.io/api that the roots refer to with the markers in its source. If it fails
// for a new root, notes.go lacks what it says.
func TestDefinitionsSayWhatCommentsSay(t *testing.T) {
	read := newSources(t)
	d := describe(nameOnly, generated.GetOpenAPIDefinitions(nameOnly), roots())
	var found []string
	fields := 0
	for name, typ := range d.types {
		if !strings.HasPrefix(typ.PkgPath(), "k8s.io/api/") {
			continue
		}
		src, s := read.of(typ), d.definitions[name].Schema
		if src.fields[typ.Name()] == nil {
			t.Fatalf("no source of %v", typ)
		}
		for goField, m := range src.fields[typ.Name()] {
			f, _ := typ.FieldByName(goField)
			field, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if _, ok := s.Properties[field]; !ok {
				t.Errorf("%s has no %s", name, field)
			}
			fields++
			found = append(found, compare(name+"."+field, described(s, field, m.has("default")), read.expected(f, m))...)
		}
		found = append(found, compare(name, describedType(s), src.types[typ.Name()].expectedOfType())...)
	}
	if fields < 300 {
		t.Errorf("only %d fields compared", fields)
	}
	slices.Sort(found)
	for _, difference := range found {
		t.Error(difference)
	}
}

func (m markers) expectedOfType() map[string]string {
	want := map[string]string{"union": fmt.Sprint(m.has("union"))}
	if m.has("structType") {
		want["x-kubernetes-map-type"] = strconv.Quote(m["structType"][0])
	}
	return want
}

func describedType(s spec.Schema) map[string]string {
	_, union := s.Extensions["x-kubernetes-unions"]
	got := map[string]string{"union": fmt.Sprint(union)}
	if v, ok := s.Extensions["x-kubernetes-map-type"]; ok {
		got["x-kubernetes-map-type"] = text(v)
	}
	return got
}

// TestGoldenNotes compares notes.json with the markers in the source: with -update, it writes
// the file.
func TestGoldenNotes(t *testing.T) {
	read := newSources(t)
	want := notes{Required: map[string]bool{}, Optional: map[string]bool{}, Granular: map[string]bool{}, Enums: map[string][]any{}}
	for name, typ := range describe(nameOnly, nil, roots()).types {
		if !strings.HasPrefix(typ.PkgPath(), "k8s.io/api/") {
			continue
		}
		for goField, m := range read.of(typ).fields[typ.Name()] {
			f, _ := typ.FieldByName(goField)
			field, options, _ := strings.Cut(f.Tag.Get("json"), ",")
			switch omits := strings.Contains(options, "omit"); {
			case omits && m.has("required"):
				want.Required[name+"."+field] = true
			case !omits && m.has("optional") && !m.has("required"):
				want.Optional[name+"."+field] = true
			}
			one := pointed(f.Type)
			for one.Kind() == reflect.Slice || one.Kind() == reflect.Map {
				one = pointed(one.Elem())
			}
			for _, value := range read.enum(one) {
				key := one.PkgPath() + "." + one.Name()
				if list := want.Enums[key]; !slices.Contains(list, any(value)) {
					want.Enums[key] = append(list, value)
				}
			}
			if slices.Contains(slices.Concat(m["mapType"], m["structType"]), "granular") {
				want.Granular[name+"."+field] = true
			}
		}
	}
	golden(t, "notes.json", want)
}

// TestDefaultsAreThoseOfClientGo compares the defaults that follow from types
// with those in client-go's schemas.
func TestDefaultsAreThoseOfClientGo(t *testing.T) {
	d := describe(nameOnly, nil, roots())
	compared := 0
	for name := range d.types {
		known := mapOf(d.applied, name)
		if known == nil {
			continue
		}
		for _, f := range known.Fields {
			p, ok := d.definitions[name].Schema.Properties[f.Name]
			if !ok {
				t.Errorf("%s has no %s", name, f.Name)
			}
			if got, want := text(p.Default), text(fromYAML(f.Default)); got != want {
				t.Errorf("%s.%s: %s, want %s", name, f.Name, got, want)
			}
			compared++
		}
	}
	if compared < 200 {
		t.Errorf("only %d fields compared", compared)
	}
}

func compare(where string, got, want map[string]string) (differences []string) {
	for key := range got {
		if _, ok := want[key]; !ok {
			differences = append(differences, fmt.Sprintf("%s: %s %s, want none", where, key, got[key]))
		}
	}
	for key, value := range want {
		if got[key] != value {
			differences = append(differences, fmt.Sprintf("%s: %s %s, want %s", where, key, got[key], value))
		}
	}
	return differences
}
