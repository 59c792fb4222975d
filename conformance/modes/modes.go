package modes

import (
	"math"
	"strconv"
	"strings"

	"github.com/espalier-dev/espalier/conformance/tree"
)

const preserve = "x-kubernetes-preserve-unknown-fields"

// Inherited writes out what InheritPreserve lets schemas inherit.
func Inherited(schema []byte) ([]byte, error) {
	root, err := tree.Parse(schema)
	if err != nil {
		return nil, err
	}
	inherit(root, false)
	return root.Bytes(), nil
}

func inherit(n *tree.Node, on bool) {
	if n == nil || n.Kind != tree.Object {
		return
	}
	props := n.Get("properties")
	own := props != nil && props.Kind == tree.Object && len(props.Kids) > 0
	if on && !own {
		n.Set(preserve, tree.Lit("true"))
	}
	on = n.Get(preserve).Is("true")
	inherit(n.Get("items"), on)
	inherit(n.Get("additionalProperties"), on)
	if own {
		for _, p := range props.Kids {
			inherit(p, on)
		}
	}
}

// A Strict is a schema for the mode Strict, with what the reference needs to give the same answers.
type Strict struct {
	Schema    []byte // for Espalier
	Reference []byte // for the reference
	root      *tree.Node
}

// NewStrict prepares a schema. It loses what neither side is asked about: the keywords of the documented differences
// within allOf, anyOf, oneOf and not, fractional values of multipleOf, and rules.
func NewStrict(schema []byte) (*Strict, error) {
	root, err := tree.Parse(schema)
	if err != nil {
		return nil, err
	}
	simplify(root, false)
	s := &Strict{Schema: root.Bytes(), root: root}
	reference := root.Clone()
	rewrite(reference)
	s.Reference = reference.Bytes()
	return s, nil
}

var logical = []string{"allOf", "anyOf", "oneOf"}

func simplify(n *tree.Node, inside bool) {
	if n == nil || n.Kind != tree.Object {
		return
	}
	n.Del("x-kubernetes-validations")
	if number(n.Get("multipleOf")) != math.Trunc(number(n.Get("multipleOf"))) {
		n.Del("multipleOf")
	}
	if inside {
		for _, k := range []string{"enum", "format", "minimum", "maximum"} {
			n.Del(k)
		}
	}
	each(n, func(k *tree.Node) { simplify(k, inside) })
	simplify(n.Get("not"), true)
	for _, key := range logical {
		if list := n.Get(key); list != nil {
			for _, k := range list.Kids {
				simplify(k, true)
			}
		}
	}
}

// each visits the schemas of the values within a value.
func each(n *tree.Node, visit func(*tree.Node)) {
	visit(n.Get("items"))
	visit(n.Get("additionalProperties"))
	if props := n.Get("properties"); props != nil && props.Kind == tree.Object {
		for _, p := range props.Kids {
			visit(p)
		}
	}
}

// rewrite takes the enums and bounds out that Valid evaluates, and puts formats where they do not change what types mean.
func rewrite(n *tree.Node) {
	if n == nil || n.Kind != tree.Object {
		return
	}
	n.Del("enum")
	for _, bound := range []string{"minimum", "maximum"} {
		if b := n.Get(bound); b != nil && fractional(b) && !impossible(n, b) {
			n.Del(bound)
		}
	}
	if f := n.Get("format"); f != nil && n.Get("type").Text() == "string" {
		branch := tree.Obj()
		branch.Set("format", f)
		n.Del("format")
		list := n.Have("allOf", tree.Array)
		list.Kids = append(list.Kids, branch)
	}
	each(n, rewrite)
}

// impossible reports whether a value of the type cannot be as large as a fractional bound of it, or no such number. Both
// sides refuse every value because of such a bound.
func impossible(n, bound *tree.Node) bool {
	return n.Get("type").Text() == "integer" || n.Get("format").Text() == "float" && math.Abs(number(bound)) > math.MaxFloat32
}

func number(n *tree.Node) float64 {
	f, _ := strconv.ParseFloat(n.Literal(), 64)
	return f
}

func fractional(n *tree.Node) bool {
	f := number(n)
	return f != math.Trunc(f) || f >= 1<<63 || f < -1<<63
}

// Valid evaluates the enums and fractional bounds on an object.
func (s *Strict) Valid(object []byte) bool {
	v, err := tree.Parse(object)
	return err == nil && valid(s.root, v)
}

func valid(s, v *tree.Node) bool {
	if s == nil || s.Kind != tree.Object {
		return true
	}
	if enum := s.Get("enum"); enum != nil && enum.Kind == tree.Array && len(enum.Kids) > 0 && !listed(enum, v) {
		return false
	}
	if isNumber(v) && !bounded(s, number(v)) {
		return false
	}
	switch v.Kind {
	case tree.Array:
		for _, k := range v.Kids {
			if !valid(s.Get("items"), k) {
				return false
			}
		}
	case tree.Object:
		props := s.Get("properties")
		for i, k := range v.Kids {
			below := props.Get(tree.Unquote(v.Keys[i]))
			if below == nil {
				below = s.Get("additionalProperties")
			}
			if !valid(below, k) {
				return false
			}
		}
	}
	return true
}

// bounded evaluates the bounds that rewrite takes out.
func bounded(s *tree.Node, v float64) bool {
	if b := s.Get("minimum"); b != nil && fractional(b) && (v < number(b) || v == number(b) && s.Get("exclusiveMinimum").Is("true")) {
		return false
	}
	b := s.Get("maximum")
	return b == nil || !fractional(b) || v < number(b) || v == number(b) && !s.Get("exclusiveMaximum").Is("true")
}

func listed(enum, v *tree.Node) bool {
	for _, e := range enum.Kids {
		if same(e, v) {
			return true
		}
	}
	return false
}

func isNumber(n *tree.Node) bool {
	return n.Kind == tree.Scalar && n.Raw != "" && strings.Contains("-0123456789", n.Raw[:1])
}

// same compares values as JSON Schema does: 1 and 1.0 are the same number.
func same(a, b *tree.Node) bool {
	if a.Kind != b.Kind || len(a.Kids) != len(b.Kids) {
		return false
	}
	switch a.Kind {
	case tree.Array:
		for i := range a.Kids {
			if !same(a.Kids[i], b.Kids[i]) {
				return false
			}
		}
		return true
	case tree.Object:
		for i, k := range a.Kids {
			if other := b.Get(tree.Unquote(a.Keys[i])); other == nil || !same(k, other) {
				return false
			}
		}
		return true
	}
	if isNumber(a) && isNumber(b) {
		m, err := strconv.ParseInt(a.Raw, 10, 64)
		n, err2 := strconv.ParseInt(b.Raw, 10, 64)
		if err == nil && err2 == nil {
			return m == n
		}
		return number(a) == number(b)
	}
	if strings.HasPrefix(a.Raw, `"`) && strings.HasPrefix(b.Raw, `"`) {
		return tree.Unquote(a.Raw) == tree.Unquote(b.Raw)
	}
	return a.Raw == b.Raw
}
