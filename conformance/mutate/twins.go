package mutate

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"github.com/espalier-dev/espalier/conformance/tree"
)

// A twinShape is a schema with a hole. What is put into the hole makes schemas that differ in one keyword only.
type twinShape struct {
	schema string // $ is the hole
	values []string
}

var (
	twinNumbers = []string{"0", "-0", "0.0", "-0.0", "1", "1.0", "1e0", "2", "2.0", "1.5", "100", "1e2", "100.0", "9223372036854775807", "9223372036854775808"}
	twinCounts  = []string{"0", "1", "2", "3"}
	twinFlags   = []string{"true", "false"}
)

// twinShapes cover every keyword that a compiled schema has a place for.
var twinShapes = []twinShape{
	{`{"type":"integer","enum":[$]}`, twinNumbers},
	{`{"type":"integer","enum":[$,3]}`, twinNumbers},
	{`{"type":"integer","default":0,"enum":[$,1]}`, twinNumbers},
	{`{"type":"number","enum":[$]}`, twinNumbers},
	{`{"type":"number","not":{"enum":[$]}}`, twinNumbers},
	{`{"x-kubernetes-int-or-string":true,"enum":[$]}`, append([]string{`"1"`, `"A"`}, twinNumbers...)},
	{`{"x-kubernetes-preserve-unknown-fields":true,"enum":[$]}`, []string{`0`, `-0.0`, `"0"`, `[]`, `{}`, `true`, `false`, `null`, `"a"`, `"a","b"`, `"b","a"`, `[0]`, `[-0]`, `[0.0]`}},
	{`{"type":"array","items":{"type":"number"},"enum":[[$]]}`, twinNumbers},
	{`{"type":"object","x-kubernetes-preserve-unknown-fields":true,"enum":[{"a":$}]}`, append([]string{`null`, `[2]`, `[2.0]`}, twinNumbers...)},
	{`{"type":"string","enum":[$]}`, []string{`"a"`, `"b"`, `"a","b"`, `"\u0061"`, `"1"`, `"1",1`, `"1",1.0`}},
	{`{"type":"number","minimum":$}`, twinNumbers},
	{`{"type":"number","maximum":$}`, twinNumbers},
	{`{"type":"integer","maximum":$}`, twinNumbers},
	{`{"type":"number","minimum":1,"exclusiveMinimum":$}`, twinFlags},
	{`{"type":"number","maximum":1,"exclusiveMaximum":$}`, twinFlags},
	{`{"type":"number","multipleOf":$}`, []string{"1", "1.0", "2", "0.5", "1e2", "0.1"}},
	{`{"type":"integer","maximum":3000000000,"format":$}`, []string{`"int32"`, `"int64"`, `"uint32"`, `""`}},
	{`{"type":"number","maximum":1e40,"format":$}`, []string{`"float"`, `"double"`, `"int32"`, `""`}},
	{`{"type":"string","format":$}`, []string{`"date"`, `"date-time"`, `"ipv4"`, `"byte"`, `"unknown"`, `""`}},
	{`{"type":"string","pattern":$}`, []string{`"a"`, `"^a"`, `"a$"`, `"^a$"`, `"A"`, `"(?i)A"`}},
	{`{"type":"string","minLength":$}`, twinCounts},
	{`{"type":"string","maxLength":$}`, twinCounts},
	{`{"type":"array","items":{"type":"number"},"minItems":$}`, twinCounts},
	{`{"type":"array","items":{"type":"number"},"maxItems":$}`, twinCounts},
	{`{"type":"object","additionalProperties":{"type":"number"},"minProperties":$}`, twinCounts},
	{`{"type":"object","additionalProperties":{"type":"number"},"maxProperties":$}`, twinCounts},
	{`{"type":"array","items":{"type":"number"},"x-kubernetes-list-type":$}`, []string{`"set"`, `"atomic"`, `"map"`}},
	{`{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":[$],"items":{"type":"object","required":["a","b"],"properties":{"a":{"type":"number"},"b":{"type":"number"}}}}`, []string{`"a"`, `"b"`, `"a","b"`, `"b","a"`}},
	{`{"type":"object","properties":{"a":{"type":"number"},"b":{"type":"number"}},"required":[$]}`, []string{``, `"a"`, `"b"`, `"a","b"`, `"b","a"`, `"c"`, `"a","c"`}},
	{`{"type":"object","properties":{"a":{"type":"number"},"b":{"type":"number"}},"x-kubernetes-map-type":$}`, []string{`"atomic"`, `"granular"`}},
	{`{"type":"object","properties":{"a":{"type":"number","default":$}}}`, twinNumbers},
	{`{"type":"object","default":{},"properties":{"a":{"type":"array","items":{"type":"number"},"default":[$]}}}`, twinNumbers},
	{`{"type":"object","additionalProperties":$}`, []string{`true`, `false`, `{"type":"number"}`, `{"type":"integer"}`, `{"type":"string"}`, `{"type":"number","nullable":true}`}},
	{`{"type":"array","items":$}`, []string{`{"type":"number"}`, `{"type":"integer"}`, `{"type":"string"}`, `{"type":"number","nullable":true}`}},
	{`{"type":$}`, []string{`"number"`, `"integer"`, `"string"`, `"boolean"`, `"object"`}},
	{`{"type":"number","nullable":$}`, twinFlags},
	{`{"type":"object","properties":{"a":{"type":"number"}},"x-kubernetes-preserve-unknown-fields":$}`, []string{`true`, `null`}},
	{`{"type":"object","x-kubernetes-preserve-unknown-fields":true,"x-kubernetes-embedded-resource":$}`, twinFlags},
	{`{"type":"number","$":[{"minimum":1},{"maximum":2}]}`, []string{"anyOf", "oneOf", "allOf"}},
	{`{"type":"number","anyOf":[{"minimum":$},{"maximum":-1}]}`, twinNumbers},
	{`{"type":"object","properties":{"a":{"type":"number","readOnly":$}}}`, twinFlags},
	{`{"type":"object","x-kubernetes-unions":[{$}],"properties":{"a":{"type":"number"},"b":{"type":"number"},"d":{"type":"string"}}}`,
		[]string{`"fields":{"a":"","b":""}`, `"fields":{"a":""}`, `"discriminator":"d","fields":{"a":"A","b":"B"}`, `"discriminator":"d","fields":{"a":"B","b":"A"}`}},
	{`{"type":"object","properties":{"a":{"type":"number"},"b":{"type":"number"}},"x-kubernetes-validations":[{$}]}`, []string{
		`"rule":"!has(self.a) || self.a > 1.0"`, `"rule":"!has(self.a) || self.a > 2.0"`,
		`"rule":"!has(self.a) || self.a > 1.0","message":"m"`, `"rule":"!has(self.a) || self.a > 1.0","message":"n"`,
		`"rule":"!has(self.a) || self.a > 1.0","message":"m","fieldPath":".a"`, `"rule":"!has(self.a) || self.a > 1.0","message":"m","fieldPath":".b"`,
		`"rule":"!has(self.a) || self.a > 1.0","message":"m","reason":"FieldValueForbidden"`, `"rule":"!has(self.a) || self.a > 1.0","message":"m","reason":"FieldValueRequired"`,
		`"rule":"!has(self.a) || self.a > 1.0","messageExpression":"string(self.a)"`, `"rule":"!has(self.a) || self.a > 1.0","messageExpression":"'a: ' + string(self.a)"`,
	}},
	{`{"type":"object","properties":{"a":{"type":"number"}},"x-kubernetes-validations":[{"rule":"true || self == oldSelf","optionalOldSelf":$},{"rule":"!has(self.a) || self.a < 1.5"}]}`, []string{"false", "null"}},
	{`{"type":"number","x-kubernetes-validations":[{"rule":"self == $"}]}`, []string{"0.0", "-0.0", "1.0", "1.5", "100.0"}},
}

// enrichTwins adds two fields to an object that differ in one keyword.
func enrichTwins(g *gardener, s *site) bool {
	props := s.n.Get("properties")
	if s.inside || s.n.Get("type").Text() != "object" || props == nil || props.Kind != tree.Object {
		return false
	}
	shape := twinShapes[g.IntN(len(twinShapes))]
	if strings.Contains(shape.schema, "x-kubernetes-unions") { // the reference does not know them
		return false
	}
	i := g.IntN(len(shape.values) - 1)
	props.Set("left", tree.Must(strings.Replace(shape.schema, "$", shape.values[i], 1)))
	props.Set("right", tree.Must(strings.Replace(shape.schema, "$", shape.values[i+1+g.IntN(len(shape.values)-i-1)], 1)))
	return true
}

// TwinValues are values for the field x of the schemas that TwinTable returns. Twins differ in what they say about some
// of them.
var TwinValues = []string{
	`0`, `-0`, `-0.0`, `0.5`, `1`, `1.0`, `1.5`, `2`, `65`, `100`, `100.5`, `3000000000`, `9223372036854775807`, `1e19`, `1e39`,
	`"a"`, `"A"`, `"1"`, `"abc"`, `""`, `"2024-01-02"`, `"10.0.0.1"`, `true`, `null`,
	`[]`, `[0]`, `[-0.0]`, `[1]`, `[2]`, `[2.0]`, `[1.5]`, `[100]`, `[0,-0.0]`, `[null]`, `["a","a"]`, `[{"a":1,"b":1},{"a":1,"b":2}]`, `[{"a":1,"b":1},{"b":1,"a":2.0}]`,
	`{}`, `{"a":0}`, `{"a":-0.0}`, `{"a":1}`, `{"a":1.5,"b":2}`, `{"a":2.0}`, `{"a":100}`, `{"b":null}`, `{"a":"a"}`, `{"a":[2]}`, `{"b":1,"c":2}`, `{"a":1,"d":"A"}`, `{"b":1,"d":"A"}`, `{"apiVersion":"v1","kind":"K"}`,
}

// TwinTable returns families of schemas that differ in one keyword of the field x, for every keyword there is. Within a
// family the schemas are in random order.
func TwinTable(seed uint64) [][][]byte {
	r := rand.New(rand.NewPCG(seed, 0x7477696e73))
	var families [][][]byte
	for _, shape := range twinShapes {
		var family [][]byte
		for _, value := range shape.values {
			family = append(family, []byte(`{"type":"object","properties":{"x":`+strings.Replace(shape.schema, "$", value, 1)+`}}`))
		}
		r.Shuffle(len(family), func(i, j int) { family[i], family[j] = family[j], family[i] })
		families = append(families, family)
	}
	return families
}

// Twins returns an enriched schema and some that differ from it in one value each.
func (p *Pool) Twins(seed uint64, n int) [][]byte {
	base := p.Enrich(seed).Schema
	family := [][]byte{base}
	r := rand.New(rand.NewPCG(seed, 0x7477696e))
	for try := 0; len(family) < n && try < 8*n; try++ {
		root, err := tree.Parse(base)
		if err != nil {
			panic(err) // Enrich wrote it
		}
		leaves := leavesOf(root)
		if len(leaves) == 0 {
			break
		}
		nudge(r, leaves[r.IntN(len(leaves))])
		if twin := root.Bytes(); !slices.ContainsFunc(family, func(have []byte) bool { return string(have) == string(twin) }) {
			family = append(family, twin)
		}
	}
	return family
}

// leavesOf returns the scalars below the keywords of all schemas. Types stay: a schema of another type is no twin.
func leavesOf(root *tree.Node) []*tree.Node {
	var leaves []*tree.Node
	walk(root, func(s *site) {
		for i, raw := range s.n.Keys {
			switch key := tree.Unquote(raw); key {
			case "type", "description", "properties", "items", "allOf", "anyOf", "oneOf", "not":
			case "additionalProperties":
				if s.n.Kids[i].Kind == tree.Scalar {
					leaves = append(leaves, s.n.Kids[i])
				}
			default:
				scalars(s.n.Kids[i], &leaves)
			}
		}
	})
	return leaves
}

func scalars(n *tree.Node, out *[]*tree.Node) {
	if n.Kind == tree.Scalar {
		*out = append(*out, n)
	}
	for _, k := range n.Kids {
		scalars(k, out)
	}
}

// nudge changes a scalar as little as possible: the form of a number, or its value.
func nudge(r *rand.Rand, n *tree.Node) {
	switch raw := n.Raw; {
	case raw == "true":
		n.Raw = "false"
	case raw == "false":
		n.Raw = "true"
	case raw == "null":
		n.Raw = "0"
	case raw[0] == '"':
		n.Raw = tree.Quote(tree.Unquote(raw) + []string{"a", " ", "x"}[r.IntN(3)])
	case raw == "0":
		n.Raw = []string{"-0", "0.0", "-0.0", "1"}[r.IntN(4)]
	default:
		if i, err := strconv.ParseInt(raw, 10, 64); err == nil && i > -1e15 && i < 1e15 {
			n.Raw = []string{raw + ".0", raw + "e0", strconv.FormatInt(i+1, 10), strconv.FormatInt(-i, 10), raw + ".5"}[r.IntN(5)]
			return
		}
		n.Raw = "1"
	}
}
