package docgen

import (
	"fmt"
	"slices"

	"github.com/espalier-dev/espalier/crd"
	"github.com/espalier-dev/espalier/internal/crdtree"
	"github.com/espalier-dev/espalier/internal/syntax"
)

// Options say what to show.
type Options struct {
	Version   string // only the version of this name
	Recursive bool   // for Explain: the fields below, all the way down
}

const (
	maxDepth = 64   // of fields
	maxPath  = 1024 // bytes of a field's path
)

// version is a version of a resource with all its fields.
type version struct {
	*crd.Version
	APIVersion  string // with the group
	Deprecation string // what clients are warned with, if there is something
	Root        *field
}

// field is a value of an object and all that its schema says about it.
type field struct {
	Name        string
	ID          string // of the element on a page; empty if there is no path
	Path        string // as kubectl explain takes it; empty if it is too long
	Type        string // as kubectl explain shows it
	Description string
	Default     string // JSON
	Example     string // JSON
	Required    bool
	Immutable   bool
	ReadOnly    bool
	Docs        string // an address
	Enum        []string
	Limits      []limit
	Rules       []rule
	Fields      []*field
	Cut         bool // there are fields, but too deep

	schema *syntax.Schema // of the value
	inner  *syntax.Schema // of the value, or of what is in it if that is a list or a map
}

// outline reads the versions that are to be shown.
func outline(d *crd.CRD, o Options) ([]*version, error) {
	var list []*version
	for i := range d.Versions {
		if v := &d.Versions[i]; o.Version == "" || o.Version == v.Name {
			list = append(list, outlineVersion(d, v))
		}
	}
	if len(list) == 0 && o.Version != "" {
		return nil, fmt.Errorf("%s has no version %q", d.Name, o.Version)
	}
	return list, nil
}

func outlineVersion(d *crd.CRD, v *crd.Version) *version {
	out := &version{Version: v, APIVersion: d.Group + "/" + v.Name}
	if v.DeprecationWarning != nil {
		out.Deprecation = *v.DeprecationWarning
	}
	if v.Deprecated && out.Deprecation == "" {
		out.Deprecation = out.APIVersion + " " + d.Kind + " is deprecated"
	}
	// What cannot be read is left out: a page about the rest is still of use.
	s := crdtree.Parse(v).Tree
	if s == nil {
		s = new(syntax.Schema)
	}
	out.Root = newField(d.Kind, s)
	out.Root.fill(0)
	return out
}

// newField says what there is to say about a value itself.
func newField(name string, s *syntax.Schema) *field {
	f := &field{
		Name: name, Description: s.Description, ReadOnly: s.Rare().ReadOnly, schema: s,
	}
	if title := s.Rare().Title; title != "" {
		f.Description = title + "\n\n" + s.Description
	}
	if s.Default != nil {
		f.Default = string(s.Default.Written)
	}
	if e := s.Rare().Example; e != nil {
		f.Example = string(e.Written)
	}
	if docs := s.Rare().ExternalDocs; docs != nil {
		f.Docs = docs.URL
	}
	of := ""
	for {
		f.about(s, of)
		switch items, values := s.ItemSchema(), valueSchema(s); {
		case items != nil && s.Type == "array":
			f.Type += "[]"
			s, of = items, "each item"
		case values != nil:
			f.Type += "map[string]"
			s, of = values, "each value"
		default:
			f.Type += typeName(s)
			f.inner = s
			return f
		}
		if f.Description == "" {
			f.Description = s.Description
		}
	}
}

func valueSchema(s *syntax.Schema) *syntax.Schema {
	if s.AdditionalProperties == nil || len(s.Properties) > 0 {
		return nil
	}
	return s.AdditionalProperties.Schema
}

func typeName(s *syntax.Schema) string {
	switch {
	case s.IntOrString:
		return "IntOrString"
	case s.Type == "object":
		return "Object"
	case s.Type == "":
		return "any"
	}
	return s.Type
}

// about adds what the schema of the value, or of what is in it, demands.
func (f *field) about(s *syntax.Schema, of string) {
	for _, l := range limits(s) {
		l.Of = of
		f.Limits = append(f.Limits, l)
	}
	for _, value := range s.Enum {
		f.Enum = append(f.Enum, string(value.Written))
	}
	for _, r := range s.Validations {
		out := newRule(r, of)
		f.Immutable = f.Immutable || of == "" && out.Immutable
		f.Rules = append(f.Rules, out)
	}
}

// fill adds the fields below f, the required ones first.
func (f *field) fill(depth int) {
	s := f.inner
	if depth >= maxDepth {
		f.Cut = len(s.Properties) > 0
		return
	}
	fixed := immutableFields(s)
	required := make(map[string]bool, len(s.Required))
	for _, name := range s.Required {
		required[name] = true
	}
	for _, p := range s.Properties {
		child := newField(p.Name, p.Schema)
		child.Required = required[p.Name]
		child.Immutable = child.Immutable || fixed[p.Name]
		switch {
		case depth == 0:
			child.Path = p.Name
		case f.Path != "":
			child.Path = f.Path + "." + p.Name
		}
		if len(child.Path) > maxPath {
			child.Path = ""
		}
		child.fill(depth + 1)
		f.Fields = append(f.Fields, child)
	}
	slices.SortStableFunc(f.Fields, func(a, b *field) int {
		switch {
		case a.Required == b.Required:
			return 0
		case a.Required:
			return -1
		}
		return 1
	})
}
