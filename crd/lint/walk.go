package lint

import (
	"slices"
	"strconv"

	"github.com/espalier-dev/espalier/internal/syntax"
)

// node is a schema and its place.
type node struct {
	parent   *node
	schema   *syntax.Schema
	keyword  string // of the parent that it is the value of; empty at the root
	name     string // of the property
	index    int    // in a logical keyword, -1 elsewhere
	logical  bool   // it or one around it is within a logical keyword
	negated  bool   // within a not
	required bool   // the parent demands the property

	before  map[string]bool // see transitions; nil until asked for
	frozen  bool            // a rule is self == oldSelf; set with before
	choices map[string]bool // see chosen; nil until asked for
}

// resource reports whether values of n are objects with a kind and metadata.
func (n *node) resource() bool { return n.parent == nil || n.schema.EmbeddedResource }

// pruned reports whether fields that n does not specify are removed.
func (n *node) pruned() bool { return n.schema.PreserveUnknownFields == nil }

// structured reports whether n says anything about what is in its objects.
func structured(s *syntax.Schema) bool {
	return len(s.Properties) > 0 || s.AdditionalProperties != nil || s.PreserveUnknownFields != nil
}

// place returns the field path and the pointer of n, after those of the root.
func (n *node) place(path, pointer string) (string, string) {
	var chain []*node
	for m := n; m.parent != nil; m = m.parent {
		chain = append(chain, m)
	}
	f, p := []byte(path), []byte(pointer)
	for _, m := range slices.Backward(chain) {
		f, p = append(append(f, '.'), m.keyword...), syntax.AppendToken(p, m.keyword)
		switch {
		case m.keyword == "properties":
			f, p = append(append(append(f, '['), m.name...), ']'), syntax.AppendToken(p, m.name)
		case m.index >= 0:
			i := strconv.Itoa(m.index)
			f, p = append(append(append(f, '['), i...), ']'), syntax.AppendToken(p, i)
		}
	}
	return string(f), string(p)
}

// schema looks at a version's schema.
func (c *checker) schema(s *syntax.Schema) {
	root := &node{schema: s, index: -1}
	c.status(root)
	c.visit(root)
}

// visit looks at a schema and at what is below it. It reports what defaults
// make of an object of the schema.
func (c *checker) visit(n *node) shape {
	s := n.schema
	c.values(n)
	if !n.logical {
		c.objects(n)
		c.expressions(n)
	}
	sh := shape{}
	required := set(s.Required)
	for _, p := range s.Properties {
		child := &node{
			parent: n, schema: p.Schema, keyword: "properties", name: p.Name, index: -1,
			logical: n.logical, negated: n.negated, required: required(p.Name),
		}
		sh.add(child, c.visit(child))
	}
	if a := s.AdditionalProperties; a != nil && a.Schema != nil {
		c.visit(c.child(n, a.Schema, "additionalProperties", -1))
	}
	if items := s.ItemSchema(); items != nil {
		c.visit(c.child(n, items, "items", -1))
	}
	c.logical(n)
	if !n.logical {
		sh.complete(s)
		c.defaults(n, &sh)
	}
	return sh
}

// set returns a function that tells what is in a list.
func set(list []string) func(string) bool {
	if len(list) < 8 {
		return func(s string) bool { return slices.Contains(list, s) }
	}
	m := make(map[string]bool, len(list))
	for _, s := range list {
		m[s] = true
	}
	return func(s string) bool { return m[s] }
}

func (c *checker) child(n *node, s *syntax.Schema, keyword string, index int) *node {
	return &node{parent: n, schema: s, keyword: keyword, index: index, logical: n.logical, negated: n.negated}
}

func (c *checker) logical(n *node) {
	s := n.schema
	for _, j := range []struct {
		keyword string
		list    []*syntax.Schema
	}{{"allOf", s.AllOf}, {"anyOf", s.AnyOf}, {"oneOf", s.OneOf}} {
		for i, x := range j.list {
			m := c.child(n, x, j.keyword, i)
			m.logical = true
			c.visit(m)
		}
	}
	if s.Not != nil {
		m := c.child(n, s.Not, "not", -1)
		m.logical, m.negated = true, true
		c.visit(m)
	}
}
