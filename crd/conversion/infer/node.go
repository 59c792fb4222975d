package infer

import (
	"slices"
	"strings"

	"github.com/espalier-dev/espalier/finding"
	"github.com/espalier-dev/espalier/internal/syntax"
)

type findingOf = finding.Finding

// kind is how the parts of a value are found, as package conversion sees it.
type kind uint8

const (
	leaf kind = iota
	object
	list
	mapping
)

// node is a field of a version.
type node struct {
	name   string
	path   string // as rules write it
	kind   kind
	schema *syntax.Schema // nil for values that the schema does not describe
	parent *node
	taken  bool // a rule or its path converts it
}

func newNode(name string, s *syntax.Schema, parent *node) *node {
	n := &node{name: name, schema: s, parent: parent}
	if s == nil {
		return n
	}
	switch {
	case s.EmbeddedResource:
	case s.Type == "array" && s.ItemSchema() != nil:
		n.kind = list
	case s.AdditionalProperties != nil && len(s.Properties) == 0 && s.AdditionalProperties.Allows:
		n.kind = mapping
	case s.Type == "object" || s.Type == "" && len(s.Properties) > 0:
		n.kind = object
	}
	return n
}

// children returns the fields of an object.
func (n *node) children() []*node {
	var all []*node
	for _, p := range n.schema.Properties {
		if n.parent == nil && n.path == "" && slices.Contains([]string{"apiVersion", "kind", "metadata"}, p.Name) {
			continue
		}
		c := newNode(p.Name, p.Schema, n)
		switch {
		case strings.ContainsAny(p.Name, ".[]'"):
			c.path = n.path + "['" + p.Name + "']"
		case n.path == "":
			c.path = p.Name
		default:
			c.path = n.path + "." + p.Name
		}
		all = append(all, c)
	}
	return all
}

// item returns what a list or map holds.
func (n *node) item() *node {
	var c *node
	if n.kind == list {
		c = newNode("", n.schema.ItemSchema(), n)
		c.path = n.path + "[]"
	} else {
		c = newNode("", n.schema.AdditionalProperties.Schema, n)
		c.path = n.path + "[*]"
	}
	return c
}

// scalar returns the type of a scalar, or "".
func (n *node) scalar() string {
	if n.kind != leaf || n.schema == nil || n.schema.IntOrString {
		return ""
	}
	switch n.schema.Type {
	case "string", "integer", "number", "boolean":
		return n.schema.Type
	}
	return ""
}

// alike reports whether values of one node can be values of the other, apart from what is below them.
func alike(a, b *node) bool {
	if a.kind != b.kind {
		return false
	}
	if a.kind == list || a.kind == mapping {
		return alike(a.item(), b.item())
	}
	if a.kind != leaf || a.schema == nil || b.schema == nil {
		return a.kind != leaf || a.schema == b.schema
	}
	return a.schema.Type == b.schema.Type && a.schema.IntOrString == b.schema.IntOrString && a.schema.EmbeddedResource == b.schema.EmbeddedResource
}

// enum returns the strings of an enum.
func (n *node) enum() []string {
	if n.scalar() != "string" {
		return nil
	}
	var all []string
	for _, e := range n.schema.Enum {
		if len(e.Raw) > 1 && e.Raw[0] == '"' && !strings.Contains(string(e.Raw), `\`) {
			all = append(all, string(e.Raw[1:len(e.Raw)-1]))
		}
	}
	return all
}

// words divides a name at capital letters and signs, in lower case.
func words(name string) []string {
	var all []string
	from := 0
	for i := range len(name) {
		c := name[i]
		upper := c >= 'A' && c <= 'Z'
		if upper && i > from && (name[i-1] < 'A' || name[i-1] > 'Z') || c == '-' || c == '_' || c == '.' {
			if i > from {
				all = append(all, strings.ToLower(name[from:i]))
			}
			if from = i; !upper {
				from = i + 1
			}
		}
	}
	if from < len(name) {
		all = append(all, strings.ToLower(name[from:]))
	}
	return all
}

// singular returns a name without the ending of a plural.
func singular(name string) string {
	switch {
	case strings.HasSuffix(name, "ies"):
		return name[:len(name)-3] + "y"
	case strings.HasSuffix(name, "sses"), strings.HasSuffix(name, "xes"), strings.HasSuffix(name, "ches"), strings.HasSuffix(name, "shes"):
		return name[:len(name)-2]
	case strings.HasSuffix(name, "s") && !strings.HasSuffix(name, "ss"):
		return name[:len(name)-1]
	}
	return name
}
