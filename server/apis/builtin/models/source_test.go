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

	generated "k8s.io/apiextensions-apiserver/pkg/generated/openapi"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// source is what the comments of a package of k8s.io/api say in markers: lines
// that begin with a plus.
type source struct {
	types  map[string]markers             // by type
	fields map[string]map[string]markers  // by type and Go field
	values map[string]map[string]struct{} // of string constants, by type
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
	s := &source{types: map[string]markers{}, fields: map[string]map[string]markers{}, values: map[string]map[string]struct{}{}}
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

func (s *source) addConstants(v *ast.ValueSpec) {
	id, ok := v.Type.(*ast.Ident)
	if !ok {
		return
	}
	for _, value := range v.Values {
		if lit, ok := value.(*ast.BasicLit); ok && lit.Kind == token.STRING {
			text, _ := strconv.Unquote(lit.Value)
			if s.values[id.Name] == nil {
				s.values[id.Name] = map[string]struct{}{}
			}
			s.values[id.Name][text] = struct{}{}
		}
	}
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
	}
	t := pointed(f.Type)
	if t.Kind() == reflect.Slice {
		t = pointed(t.Elem())
	}
	if t.Kind() == reflect.String && strings.HasPrefix(t.PkgPath(), "k8s.io/api/") && s.of(t).types[t.Name()].has("enum") {
		want["enum"] = text(slices.Sorted(maps.Keys(s.of(t).values[t.Name()])))
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

// TestNotesAreNeeded finds needless entries of notes.go: for fields that do not exist,
// or that repeat the tags.
func TestNotesAreNeeded(t *testing.T) {
	d := describe(nameOnly, nil, roots())
	for _, notes := range []struct {
		fields map[string]bool
		omits  bool
	}{{required, true}, {optional, false}} {
		for key := range notes.fields {
			dot := strings.LastIndexByte(key, '.')
			typ, ok := d.types[key[:dot]]
			if !ok {
				t.Errorf("%s: no such type", key)
				continue
			}
			found := false
			for i := range typ.NumField() {
				name, options, _ := strings.Cut(typ.Field(i).Tag.Get("json"), ",")
				if name == key[dot+1:] {
					found = strings.Contains(options, "omitempty") == notes.omits
				}
			}
			if !found {
				t.Errorf("%s: no such field, or its tag says so already", key)
			}
		}
	}
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
