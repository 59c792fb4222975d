package manifest

import (
	"fmt"
	"math"

	"go.yaml.in/yaml/v3"
)

const (
	// maxDepth is the nesting that the API server accepts.
	maxDepth = 10000
	// maxExpansion bounds what aliases add to a document: anchors of anchors
	// would otherwise grow exponentially.
	maxExpansion = 16 << 20
)

// mark says that the JSON at offset comes from a line and column.
type mark struct {
	offset uint32
	line   uint32
	column uint32
}

// converter writes the JSON of a YAML tree and remembers where it comes from.
type converter struct {
	out     []byte
	marks   []mark
	scalars *scalars
	line    int                 // lines of the file before the document
	limit   int                 // length of out after which aliases have added too much
	depth   int                 //
	open    map[*yaml.Node]bool // anchors whose aliases are being written
	err     error
}

// problem is an error at a place of the YAML.
type problem struct {
	line, column int
	text         string
}

func (p *problem) Error() string { return p.text }

func (c *converter) fail(n *yaml.Node, format string, args ...any) {
	if c.err == nil {
		c.err = &problem{n.Line, n.Column, fmt.Sprintf(format, args...)}
	}
}

func (c *converter) mark(n *yaml.Node) {
	if len(c.out) <= math.MaxUint32 {
		c.marks = append(c.marks, mark{uint32(len(c.out)), uint32(n.Line + c.line), uint32(n.Column)})
	}
}

func (c *converter) value(n *yaml.Node) {
	if c.err != nil {
		return
	}
	if c.depth++; c.depth > maxDepth {
		c.fail(n, "nested deeper than %d levels", maxDepth)
		return
	}
	defer func() { c.depth-- }()
	switch n.Kind {
	case yaml.AliasNode:
		c.alias(n)
	case yaml.MappingNode:
		c.mark(n)
		c.mapping(n)
	case yaml.SequenceNode:
		c.mark(n)
		c.out = append(c.out, '[')
		for i, item := range n.Content {
			if i > 0 {
				c.out = append(c.out, ',')
			}
			c.value(item)
		}
		c.out = append(c.out, ']')
	case yaml.ScalarNode:
		c.mark(n)
		c.out = c.scalars.append(c.out, n)
	default:
		c.fail(n, "cannot be read")
	}
	if len(c.out) > c.limit {
		c.fail(n, "aliases expand this document beyond %d MiB", maxExpansion>>20)
	}
}

func (c *converter) alias(n *yaml.Node) {
	if c.open[n.Alias] {
		c.fail(n, "anchor %q contains itself", n.Value)
		return
	}
	if c.open == nil {
		c.open = make(map[*yaml.Node]bool)
	}
	c.open[n.Alias] = true
	c.value(n.Alias)
	delete(c.open, n.Alias)
}

func (c *converter) mapping(n *yaml.Node) {
	c.out = append(c.out, '{')
	begin := len(c.out)
	merges := false
	for i := 0; i+1 < len(n.Content) && c.err == nil; i += 2 {
		if isMerge(n.Content[i]) {
			merges = true
			continue
		}
		c.member(begin, n.Content[i], n.Content[i+1])
	}
	if merges {
		m := merger{converter: c, begin: begin, seen: make(map[string]bool)}
		m.own(n)
		m.merges(n, 0)
	}
	c.out = append(c.out, '}')
}

func (c *converter) member(begin int, key, value *yaml.Node) {
	if len(c.out) > begin {
		c.out = append(c.out, ',')
	}
	c.mark(key)
	c.key(key)
	c.out = append(c.out, ':')
	c.value(value)
}

// merger writes what merge keys (<<) add to a mapping: members whose names
// neither the mapping has nor what was merged before.
type merger struct {
	*converter
	begin int
	seen  map[string]bool // keys in JSON
	steps int
}

// maxMergeSteps bounds the members that are looked at for one mapping: merges
// of merges could otherwise take exponential time and write nothing.
const maxMergeSteps = 1 << 20

// name returns the JSON of a key.
func (m *merger) name(key *yaml.Node) string {
	at := len(m.out)
	m.key(key)
	name := string(m.out[at:])
	m.out = m.out[:at]
	return name
}

func (m *merger) own(n *yaml.Node) {
	for i := 0; i+1 < len(n.Content) && m.err == nil; i += 2 {
		if !isMerge(n.Content[i]) {
			m.seen[m.name(n.Content[i])] = true
		}
	}
}

func (m *merger) merges(n *yaml.Node, depth int) {
	for i := 0; i+1 < len(n.Content) && m.err == nil; i += 2 {
		if isMerge(n.Content[i]) {
			m.from(n.Content[i+1], depth+1)
		}
	}
}

// from merges a mapping, or a list of mappings in which earlier ones prevail.
func (m *merger) from(n *yaml.Node, depth int) {
	if n.Kind == yaml.AliasNode {
		if m.open[n.Alias] || depth > 100 {
			m.fail(n, "anchor %q contains itself", n.Value)
			return
		}
		n = n.Alias
	}
	switch n.Kind {
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content) && m.err == nil; i += 2 {
			if m.steps++; m.steps > maxMergeSteps {
				m.fail(n, "too much is merged here")
				return
			}
			key := n.Content[i]
			if isMerge(key) {
				continue
			}
			if name := m.name(key); !m.seen[name] {
				m.seen[name] = true
				m.member(m.begin, key, n.Content[i+1])
			}
		}
		m.merges(n, depth)
	case yaml.SequenceNode:
		for _, item := range n.Content {
			m.from(item, depth+1)
		}
	default:
		m.fail(n, "a merge key (<<) takes a mapping or a list of mappings")
	}
}

func isMerge(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.Tag == "!!merge" }

// key writes a key as a string, whatever it was.
func (c *converter) key(n *yaml.Node) {
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if n.Kind != yaml.ScalarNode {
		c.fail(n, "a key must be a scalar")
		return
	}
	ok := false
	if c.out, ok = c.scalars.appendKey(c.out, n); !ok {
		c.fail(n, "a key must be a string, a number or a boolean")
	}
}
