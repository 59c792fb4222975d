package expression

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"

	"github.com/espalier-dev/espalier/conformance/tree"
)

// Paths is a schema whose fields have odd names, and a CRD of it. Rules of the schema, and columns, selectable fields and
// subresources of the CRD, name these fields in every notation, also in wrong ones.
type Paths struct{ Schema, CRD []byte }

// odd are the names of fields: what paths are made of, quotes, escapes and names that must be quoted.
var odd = []string{"a", "b", "replicas", "a.b", "a'b", "'", "it''s", `a\b`, `\`, `a\'b`, "a]b", "['a']", "a[0]", "", "é", "a\nb", "\t", "\U0001F333", `a"b`, "in", "x/y", "x-y", "spec"}

var simple = regexp.MustCompile(`^\w+$`)

// longest is where the tokens of a path end in the reference.
const longest = 1 << 16

// NewPaths makes the paths of a seed.
func NewPaths(seed uint64) Paths {
	g := &generator{Rand: rand.New(rand.NewPCG(seed, 0x70617468))}
	g.fine = g.one(2) // all is as it should be
	spec, status := g.oddFields(2), g.oddFields(1)
	root := &shape{kind: "object", fields: []field{{name: "spec", shape: spec}, {name: "status", shape: status}}}
	schema := root.JSON()
	for range 2 + g.IntN(5) {
		at, from := spec, "spec"
		if g.one(4) {
			at, from = root, ""
		}
		n := schema
		if from != "" {
			n = schema.Get("properties").Get(from)
		}
		rules := n.Get("x-kubernetes-validations")
		if rules == nil {
			rules = &tree.Node{Kind: tree.Array}
			n.Set("x-kubernetes-validations", rules)
		}
		rule := tree.Must(`{"rule":"false"}`)
		rule.Set("fieldPath", tree.Str(g.notation(at, true)))
		if !g.fine && g.one(3) {
			rule.Set("message", tree.Str(g.of("m", "a\nb", " ", "")))
		}
		rules.Kids = append(rules.Kids, rule)
	}
	crd := tree.Must(`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"trees.orchard.example"},"spec":{"group":"orchard.example",
		"names":{"kind":"Tree","listKind":"TreeList","plural":"trees","singular":"tree"},"scope":"Namespaced","versions":[{"name":"v1","served":true,"storage":true}]}}`)
	version := crd.Get("spec").Get("versions").Kids[0]
	version.Set("schema", tree.Must(`{}`))
	version.Get("schema").Set("openAPIV3Schema", schema)
	if g.one(2) {
		version.Set("selectableFields", tree.Must(`[]`))
		list := version.Get("selectableFields")
		for range 1 + g.IntN(3) {
			list.Kids = append(list.Kids, tree.Must(`{}`))
			list.Kids[len(list.Kids)-1].Set("jsonPath", tree.Str(g.notation(root, g.one(4))))
		}
	}
	if g.one(2) {
		scale := tree.Must(`{}`)
		scale.Set("specReplicasPath", tree.Str(g.below("spec", spec)))
		scale.Set("statusReplicasPath", tree.Str(g.below("status", status)))
		if g.one(2) {
			scale.Set("labelSelectorPath", tree.Str(g.below(g.of("spec", "status"), status)))
		}
		version.Set("subresources", tree.Must(`{"status":{}}`))
		version.Get("subresources").Set("scale", scale)
	}
	return Paths{Schema: schema.Bytes(), CRD: crd.Bytes()}
}

// oddFields is an object whose fields have odd names.
func (g *generator) oddFields(depth int) *shape {
	s := &shape{kind: "object"}
	for range 1 + g.IntN(4) {
		name := odd[g.IntN(len(odd))]
		if g.one(300) {
			name = strings.Repeat(g.of("a", "é", "'"), (longest-4+g.IntN(8))/2)
		}
		if s.field(name) != nil {
			continue
		}
		f := field{name: name, shape: &shape{kind: g.of("string", "integer", "boolean")}}
		switch {
		case depth > 0 && g.one(2):
			f.shape = g.oddFields(depth - 1)
		case g.one(6):
			f.shape = &shape{kind: "object", values: &shape{kind: "string"}}
		}
		s.fields = append(s.fields, f)
	}
	return s
}

// below is a path that begins with a name, and perhaps should not.
func (g *generator) below(name string, s *shape) string {
	if !g.fine && g.one(6) {
		name = g.of("spec", "status", "specx", "metadata", "")
	}
	if !g.fine && g.one(6) {
		return name + g.notation(s, false)
	}
	return "." + name + g.notation(s, false)
}

// notation names a field below a shape. brackets may be wrong, as anything else may be.
func (g *generator) notation(s *shape, brackets bool) string {
	var b strings.Builder
	for s != nil {
		name := odd[g.IntN(len(odd))]
		var next *shape
		if len(s.fields) > 0 && (g.fine || !g.one(12)) {
			f := s.fields[g.IntN(len(s.fields))]
			name, next = f.name, f.shape
		} else if s.values != nil {
			next = s.values
		}
		if brackets && (!simple.MatchString(name) && (g.fine || !g.one(6)) || g.one(3)) {
			b.WriteString("['" + g.escaped(name) + "']")
		} else {
			b.WriteString("." + name)
		}
		if s = next; s != nil && (g.one(3) || len(s.fields) == 0 && s.values == nil && (g.fine || !g.one(8))) {
			break
		}
	}
	text := b.String()
	if !g.fine && g.one(5) && text != "" {
		at := g.IntN(len(text))
		switch g.IntN(3) {
		case 0:
			text = text[:at] + g.of(".", "[", "]", "'", `\`, `"`, " ", "*", "0") + text[at:]
		case 1:
			text = strings.ToValidUTF8(text[:at]+text[at+1:], "")
		default:
			text = strings.ToValidUTF8(text[:at], "")
		}
	}
	return text
}

// escaped is a name within quotes, with escapes that are needed and some that are not.
func (g *generator) escaped(name string) string {
	if !g.fine && g.one(8) {
		return name
	}
	var b strings.Builder
	for _, r := range name {
		switch {
		case r == '\'' || r == '\\':
			b.WriteString(`\` + string(r))
		case r == '\n':
			b.WriteString(`\n`)
		case !g.fine && len(name) < 20 && g.one(10) && r < 0x80:
			fmt.Fprintf(&b, g.of(`\x%02x`, `\u%04X`, `\%03o`, `\U%08x`), r)
		case !g.fine && len(name) < 20 && g.one(30):
			b.WriteString(g.of(`\q`, `\"`, `\?`, "\\`", `\a`, `\x4`, `\9`))
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}
