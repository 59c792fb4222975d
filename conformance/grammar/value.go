package grammar

import (
	"strconv"
	"strings"

	"github.com/espalier-dev/espalier/conformance/tree"
)

// A Value is the JSON text of a value, with the written forms of the numbers in it that its schema is about.
type Value struct {
	Raw   string
	Forms []string // of Forms
	Use   string   // value, set item or map key
}

// The uses of a number in an object.
const (
	UseValue = "value"
	UseSet   = "set item"
	UseKey   = "map key"
)

// Values makes objects for a schema: values at, just below and just above whatever it restricts, in many written forms,
// and values of other types.
func Values(schema []byte, seed uint64, limit int) []Value {
	root, err := tree.Parse(schema)
	if err != nil || root.Kind != tree.Object {
		return nil
	}
	m := maker{NewDice(seed, 2)}
	list := m.values(root, 6)
	var out []Value
	for _, v := range list {
		if strings.HasPrefix(v.Raw, "{") {
			out = append(out, v)
		}
	}
	out = m.shuffled(out)
	if len(out) > limit {
		out = out[:limit]
	}
	for i := range out {
		if m.one(5) {
			out[i].Raw = withHead(out[i].Raw)
		}
	}
	return out
}

// withHead gives an object what every object has.
func withHead(raw string) string {
	rest := raw[1:]
	if rest != "}" {
		rest = "," + rest
	}
	return `{"apiVersion":"g.example/v1","kind":"K","metadata":{"name":"n"}` + rest
}

type maker struct{ *Dice }

func (m maker) shuffled(list []Value) []Value {
	for i := len(list) - 1; i > 0; i-- {
		j := m.n(i + 1)
		list[i], list[j] = list[j], list[i]
	}
	return list
}

// scalars are values of every type that go to every schema.
var scalars = []string{"null", "true", "false", "0", "-0", "1", "1.5", "1.0", `""`, `"a"`, `"1"`, "[]", "[1]", "[null]", "{}", `{"a":1}`, `{"a":null}`, `{"z":null}`}

// values are values for a schema.
func (m maker) values(n *tree.Node, depth int) []Value {
	if n == nil || n.Kind != tree.Object || depth == 0 {
		return plain(scalars)
	}
	list := plain(m.some(scalars, 5))
	t := n.Get("type").Text()
	if n.Get("nullable") != nil {
		list = append(list, Value{Raw: "null"})
	}
	if n.Get("x-kubernetes-int-or-string").Is("true") {
		list = append(list, m.numbers(n)...)
		list = append(list, m.strings(n)...)
	}
	switch t {
	case "integer", "number":
		list = append(list, m.numbers(n)...)
	case "string":
		list = append(list, m.strings(n)...)
	case "boolean":
		list = append(list, plain([]string{"true", "false"})...)
	}
	if t == "array" || n.Get("items") != nil {
		list = append(list, m.arrays(n, depth)...)
	}
	if t == "object" || n.Get("properties") != nil || n.Get("additionalProperties") != nil || n.Get("required") != nil {
		list = append(list, m.objects(n, depth)...)
	}
	for _, keyword := range []string{"enum", "default"} {
		list = append(list, m.listed(n.Get(keyword))...)
	}
	for _, keyword := range []string{"allOf", "anyOf", "oneOf"} {
		if sub := n.Get(keyword); sub != nil && sub.Kind == tree.Array {
			for _, branch := range sub.Kids {
				list = append(list, m.branch(n, branch, t, depth)...)
			}
		}
	}
	if sub := n.Get("not"); sub != nil {
		list = append(list, m.branch(n, sub, t, depth)...)
	}
	return list
}

// branch are the values of a branch as a schema of the type around it.
func (m maker) branch(outer, branch *tree.Node, t string, depth int) []Value {
	if branch == nil || branch.Kind != tree.Object {
		return nil
	}
	n := tree.Obj()
	for i, key := range branch.Keys {
		n.Keys, n.Kids = append(n.Keys, key), append(n.Kids, branch.Kids[i])
	}
	if n.Get("type") == nil && t != "" {
		n.Set("type", tree.Str(t))
	}
	for _, keyword := range []string{"items", "properties", "additionalProperties", "x-kubernetes-int-or-string", "x-kubernetes-list-type", "x-kubernetes-list-map-keys"} {
		if v := outer.Get(keyword); v != nil && n.Get(keyword) == nil {
			n.Set(keyword, v)
		}
	}
	return m.values(n, depth-1)
}

func plain(raws []string) []Value {
	list := make([]Value, len(raws))
	for i, raw := range raws {
		list[i] = Value{Raw: raw}
	}
	return list
}

// some are k of a list.
func (m maker) some(list []string, k int) []string {
	if len(list) <= k {
		return list
	}
	out := make([]string, k)
	for i := range out {
		out[i] = m.of(list)
	}
	return out
}

// numbers are values at the bounds and of all written forms.
func (m maker) numbers(n *tree.Node) []Value {
	var raws []string
	for _, keyword := range []string{"minimum", "maximum"} {
		if bound := n.Get(keyword).Literal(); isNumber(bound) {
			raws = append(raws, around(bound)...)
		}
	}
	if divisor := n.Get("multipleOf").Literal(); isNumber(divisor) {
		raws = append(raws, multiples(divisor)...)
	}
	for _, x := range []string{"1.0000000005", "1.000000005", "0.9999999995", "3000000000.000000001", "-2147483648", "2147483647"} {
		if m.one(3) {
			raws = append(raws, x)
		}
	}
	if n.Get("format") != nil {
		raws = append(raws, "-2147483648", "-2147483649", "2147483647", "2147483648", "9223372036854775807", "9223372036854775808", "-9223372036854775808", "-9223372036854775809", "3.4028234663852886e38", "3.4028236e38", "-3.5e38", "1e39")
	}
	raws = append(raws, m.some(written, 16)...)
	list := make([]Value, len(raws))
	for i, raw := range raws {
		list[i] = Value{Raw: raw, Forms: []string{Form(raw)}, Use: UseValue}
	}
	return list
}

// strings are values at the bounds of length, of and beside the format and the pattern.
func (m maker) strings(n *tree.Node) []Value {
	var raws []string
	for _, keyword := range []string{"minLength", "maxLength"} {
		if k, err := strconv.ParseFloat(n.Get(keyword).Literal(), 64); err == nil && k >= 0 && k < 40 {
			for _, length := range []int{int(k) - 1, int(k), int(k) + 1} {
				raws = append(raws, texts(length)...)
			}
		}
	}
	if name := n.Get("format").Text(); name != "" {
		for range 24 {
			text, _ := m.Format(name)
			raws = append(raws, m.spelled(text))
		}
	}
	if expr := n.Get("pattern"); expr != nil {
		for _, text := range m.matches(expr.Text()) {
			raws = append(raws, m.spelled(text))
		}
	}
	for range 6 {
		raws = append(raws, m.text(m.n(6)))
	}
	return plain(raws)
}

// spelled writes a text as a JSON string: as Go does, with escapes, or with its bytes as they are.
func (m maker) spelled(text string) string {
	quoted := tree.Quote(text)
	switch m.n(6) {
	case 0:
		return respelled(quoted)[1]
	case 1:
		if !strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r == '"' || r == '\\' }) {
			return `"` + text + `"`
		}
	}
	return quoted
}

// listed are the members of an enum, or a default, and values that nearly are the same.
func (m maker) listed(n *tree.Node) []Value {
	if n == nil {
		return nil
	}
	kids := []*tree.Node{n}
	if n.Kind == tree.Array {
		kids = append(n.Kids, n)
	}
	var list []Value
	for _, k := range kids {
		list = append(list, m.variants(k)...)
	}
	return list
}

// variants are other written forms of a value, and values beside it.
func (m maker) variants(n *tree.Node) []Value {
	switch {
	case n.Kind == tree.Array:
		list := []Value{{Raw: textOf(n)}}
		for i, k := range n.Kids {
			for _, v := range m.limited(m.variants(k), 6) {
				list = append(list, Value{Raw: replaced(n, i, v.Raw), Forms: v.Forms, Use: v.Use})
			}
		}
		return append(list, Value{Raw: "[" + textOf(n) + "]"})
	case n.Kind == tree.Object:
		list := []Value{{Raw: textOf(n)}, {Raw: reversed(n)}}
		for i, k := range n.Kids {
			for _, v := range m.limited(m.variants(k), 6) {
				list = append(list, Value{Raw: replaced(n, i, v.Raw), Forms: v.Forms, Use: v.Use})
			}
		}
		return list
	case isNumber(n.Raw):
		var list []Value
		for _, raw := range around(n.Raw) {
			list = append(list, Value{Raw: raw, Forms: []string{Form(raw)}, Use: UseValue})
		}
		return append(list, Value{Raw: `"` + n.Raw + `"`})
	case strings.HasPrefix(n.Raw, `"`):
		return plain(append(respelled(n.Raw), "65", "97", "4294967361", "-1", "1114112", "55296"))
	}
	return plain([]string{n.Raw, "null"})
}

func (m maker) limited(list []Value, k int) []Value {
	list = m.shuffled(list)
	return list[:min(k, len(list))]
}

// replaced is a list or an object with another i-th value.
func replaced(n *tree.Node, i int, raw string) string {
	c := &tree.Node{Kind: n.Kind, Keys: n.Keys, Kids: append([]*tree.Node(nil), n.Kids...)}
	c.Kids[i] = tree.Lit(raw)
	return textOf(c)
}

// reversed is an object with its members in the other order.
func reversed(n *tree.Node) string {
	c := &tree.Node{Kind: n.Kind}
	for i := len(n.Kids) - 1; i >= 0; i-- {
		c.Keys, c.Kids = append(c.Keys, n.Keys[i]), append(c.Kids, n.Kids[i])
	}
	return textOf(c)
}

func textOf(n *tree.Node) string { return string(n.Bytes()) }
