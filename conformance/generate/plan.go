package generate

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/espalier-dev/espalier/conformance/tree"
)

type kind uint8

const (
	anyKind kind = iota // no type: preserved unknown fields, usually
	objectKind
	arrayKind
	stringKind
	integerKind
	numberKind
	booleanKind
	intOrStringKind
)

// A Plan is a schema prepared for writing objects. It is immutable.
type Plan struct{ root *node }

type node struct {
	kind               kind
	nullable           bool
	embedded           bool
	preserve           bool
	unique             bool // a list of type set
	props              []prop
	required           int // the first props are required
	additional         *node
	items              *node
	samples            []string // raw JSON values that fit
	misfits            []string // raw JSON values that nearly fit
	alternatives       []*node  // the schema with its allOf, anyOf, oneOf and not resolved, one way or another
	min, max           int64
	minItems, maxItems int
	minProps           int
	minLen, maxLen     int
}

type prop struct {
	key    string // raw, with quotes
	n      *node
	unique bool // a key of a list of type map
}

// free is the schema of an unspecified value.
var free = &node{kind: anyKind, max: 1000, maxItems: 3, maxLen: 24}

// Compile prepares a schema. It accepts everything that parses, structural or not, and ignores what it cannot use.
func Compile(schema []byte) (*Plan, error) {
	n, err := tree.Parse(schema)
	if err != nil {
		return nil, err
	}
	p := &Plan{root: compile(n, 0)}
	for _, root := range append([]*node{p.root}, p.root.alternatives...) {
		root.kind = objectKind
		root.embedded = true
	}
	return p, nil
}

func compile(s *tree.Node, depth int) *node {
	n := &node{max: math.MaxInt64, maxItems: math.MaxInt32, maxLen: math.MaxInt32}
	if s.Kind != tree.Object || depth > 200 {
		return n
	}
	n.nullable = s.Get("nullable").Is("true")
	n.embedded = s.Get("x-kubernetes-embedded-resource").Is("true")
	n.preserve = s.Get("x-kubernetes-preserve-unknown-fields").Is("true")
	switch s.Get("type").Text() {
	case "object":
		n.kind = objectKind
	case "array":
		n.kind = arrayKind
	case "string":
		n.kind = stringKind
	case "integer":
		n.kind = integerKind
	case "number":
		n.kind = numberKind
	case "boolean":
		n.kind = booleanKind
	default:
		if s.Get("x-kubernetes-int-or-string").Is("true") {
			n.kind = intOrStringKind
		}
	}
	n.children(s, depth)
	n.limits(s)
	n.sample(s)
	n.misfit(s)
	for _, branch := range resolve(s) {
		n.alternatives = append(n.alternatives, compile(branch, depth+1))
	}
	return n
}

func (n *node) children(s *tree.Node, depth int) {
	if items := s.Get("items"); items != nil && items.Kind == tree.Object {
		n.items = compile(items, depth+1)
		n.unique = s.Get("x-kubernetes-list-type").Text() == "set"
		if keys := s.Get("x-kubernetes-list-map-keys"); keys != nil && keys.Kind == tree.Array {
			n.items.distinguish(keys)
		}
	}
	if more := s.Get("additionalProperties"); more != nil {
		switch {
		case more.Kind == tree.Object:
			n.additional = compile(more, depth+1)
		case more.Is("true"):
			n.additional = free
		}
	}
	props := s.Get("properties")
	if props == nil || props.Kind != tree.Object {
		return
	}
	var required []string
	if r := s.Get("required"); r != nil && r.Kind == tree.Array {
		for _, k := range r.Kids {
			required = append(required, k.Text())
		}
	}
	var optional []prop
	for i, key := range props.Keys {
		p := prop{key: key, n: compile(props.Kids[i], depth+1)}
		if slices.Contains(required, tree.Unquote(key)) {
			n.props = append(n.props, p)
		} else {
			optional = append(optional, p)
		}
	}
	n.required = len(n.props)
	n.props = append(n.props, optional...)
}

// distinguish marks the properties by which the items of a list are told apart.
func (n *node) distinguish(keys *tree.Node) {
	for i := range n.props {
		for _, key := range keys.Kids {
			if tree.Unquote(n.props[i].key) == key.Text() {
				n.props[i].unique = true
			}
		}
	}
}

func (n *node) limits(s *tree.Node) {
	integer := func(keyword string, into *int, least int) {
		if v := s.Get(keyword); v != nil {
			if i, err := strconv.Atoi(v.Raw); err == nil && i >= least {
				*into = min(i, math.MaxInt32)
			}
		}
	}
	integer("minItems", &n.minItems, 0)
	integer("maxItems", &n.maxItems, 0)
	integer("minLength", &n.minLen, 0)
	integer("maxLength", &n.maxLen, 0)
	integer("minProperties", &n.minProps, 0)
	number := func(keyword string, into *int64, round func(float64) float64) {
		if v := s.Get(keyword); v != nil {
			if f, err := strconv.ParseFloat(v.Raw, 64); err == nil && math.Abs(f) < 1<<53 {
				*into = int64(round(f))
			}
		}
	}
	number("minimum", &n.min, math.Ceil)
	number("maximum", &n.max, math.Floor)
	if s.Get("exclusiveMinimum").Is("true") {
		n.min++
	}
	if s.Get("exclusiveMaximum").Is("true") {
		n.max--
	}
	if n.max < n.min {
		n.max = n.min
	}
}

// sample collects values that are known to fit: enums, the default, formats, words of the pattern, multiples.
func (n *node) sample(s *tree.Node) {
	if enum := s.Get("enum"); enum != nil && enum.Kind == tree.Array {
		for _, e := range enum.Kids {
			n.samples = append(n.samples, string(e.Bytes()))
		}
		return
	}
	switch n.kind {
	case integerKind, numberKind:
		if of, err := strconv.ParseFloat(s.Get("multipleOf").Literal(), 64); err == nil && of > 0 && of < 1e6 {
			for i := range 4 {
				n.samples = append(n.samples, strconv.FormatFloat(of*(math.Ceil(float64(n.min)/of)+float64(i)), 'f', -1, 64))
			}
		}
	case stringKind:
		if p := s.Get("pattern").Text(); p != "" {
			n.samples = matching(p, n.minLen, n.maxLen)
			return
		}
		n.samples = goodFormats[strings.ReplaceAll(s.Get("format").Text(), "-", "")]
	}
}
