package grammar

import (
	"math"
	"strconv"
	"strings"

	"github.com/espalier-dev/espalier/conformance/tree"
)

// arrays are lists around the bounds of length, with items of the items' schema, equal ones in other written forms.
func (m maker) arrays(n *tree.Node, depth int) []Value {
	items := m.limited(m.values(n.Get("items"), depth-1), 40)
	list := plain([]string{"[]", "null"})
	use := UseValue
	if n.Get("x-kubernetes-list-type").Text() == "set" {
		use = UseSet
	}
	isMap := n.Get("x-kubernetes-list-type").Text() == "map"
	for i, v := range items {
		list = append(list, Value{Raw: "[" + v.Raw + "]", Forms: v.Forms, Use: v.Use})
		other := items[m.n(len(items))]
		if m.one(2) {
			other = m.again(v)
		}
		forms := append(append([]string(nil), v.Forms...), other.Forms...)
		pair := Value{Raw: "[" + v.Raw + "," + other.Raw + "]", Forms: forms, Use: use}
		if isMap {
			pair.Use = UseKey
		}
		if isMap && m.one(2) {
			list = append(list, Value{Raw: "[" + v.Raw + "," + m.changed(v.Raw) + "]", Forms: v.Forms, Use: UseKey})
		}
		if use == UseSet || isMap || i%3 == 0 {
			list = append(list, pair)
		}
		if i%9 == 0 {
			var many []string
			for range 9 + m.n(3) { // above the number of items that are compared with each other
				many = append(many, items[m.n(len(items))].Raw)
			}
			list = append(list, Value{Raw: "[" + strings.Join(many, ",") + "]"})
		}
	}
	for _, k := range lengths(n, "minItems", "maxItems") {
		raws := make([]string, k)
		for i := range raws {
			raws[i] = items[m.n(len(items))].Raw
		}
		list = append(list, Value{Raw: "[" + strings.Join(raws, ",") + "]"})
	}
	return list
}

// changed is an object with another value for one of its members, or with one less.
func (m maker) changed(raw string) string {
	n, err := tree.Parse([]byte(raw))
	if err != nil || n.Kind != tree.Object || len(n.Kids) == 0 {
		return raw
	}
	i := m.n(len(n.Kids))
	if m.one(4) {
		n.Cut(i)
	} else {
		n.Kids[i] = tree.Lit(m.of(scalars))
	}
	return textOf(n)
}

// again is an equal value in another written form.
func (m maker) again(v Value) Value {
	n, err := tree.Parse([]byte(v.Raw))
	if err != nil {
		return v
	}
	switch {
	case n.Kind == tree.Object:
		for i, k := range n.Kids {
			other := m.again(Value{Raw: textOf(k), Forms: v.Forms, Use: v.Use})
			n.Kids[i] = tree.Lit(other.Raw)
			v.Forms = append(v.Forms[:len(v.Forms):len(v.Forms)], other.Forms...)
		}
		return Value{Raw: reversed(n), Forms: v.Forms, Use: v.Use}
	case n.Kind == tree.Array:
		for i, k := range n.Kids {
			n.Kids[i] = tree.Lit(m.again(Value{Raw: textOf(k)}).Raw)
		}
		return Value{Raw: textOf(n), Forms: v.Forms, Use: v.Use}
	case isNumber(n.Raw):
		raw := m.of(rewritten(n.Raw))
		if f, err := strconv.ParseFloat(n.Raw, 64); err == nil && f == 0 {
			raw = m.of([]string{"0", "-0", "0.0", "-0.0", "0e0"})
		}
		return Value{Raw: raw, Forms: []string{Form(raw)}, Use: v.Use}
	case strings.HasPrefix(n.Raw, `"`):
		return Value{Raw: m.of(respelled(n.Raw)[:2])}
	}
	return v
}

// lengths are the numbers around two bounds, as far as they are small.
func lengths(n *tree.Node, keywords ...string) []int {
	var list []int
	for _, keyword := range keywords {
		f, err := strconv.ParseFloat(n.Get(keyword).Literal(), 64)
		if err != nil || f < 0 || f > 20 || f != math.Trunc(f) {
			continue
		}
		for _, k := range []int{int(f) - 1, int(f), int(f) + 1} {
			if k >= 0 {
				list = append(list, k)
			}
		}
	}
	return list
}

// head is what an embedded resource has, and what it may lack.
var heads = []string{
	`"apiVersion":"v1","kind":"Pod","metadata":{"name":"n"}`, `"apiVersion":"v1","kind":"Pod"`, `"kind":"Pod"`, `"apiVersion":"a/b/c","kind":""`, `"apiVersion":"v1","kind":"Pod","metadata":{"name":"N_"}`,
	`"apiVersion":"v1","kind":"Pod","metadata":{"labels":{"a":"b"},"x":1}`, `"apiVersion":1,"kind":"Pod"`, `"apiVersion":"v1","kind":"Pod","metadata":null`, `"apiVersion":"v1","kind":"Pod","metadata":{"generation":1.0,"name":"a"}`,
}

// objects are objects with and without each member, of the members' schemas, and with more of them.
func (m maker) objects(n *tree.Node, depth int) []Value {
	list := plain([]string{"{}"})
	head := ""
	if n.Get("x-kubernetes-embedded-resource").Is("true") {
		head = m.of(heads[:2])
		for _, h := range heads {
			list = append(list, Value{Raw: "{" + h + "}"})
		}
	}
	props := n.Get("properties")
	names, kids := []string(nil), []*tree.Node(nil)
	if props != nil && props.Kind == tree.Object {
		names, kids = props.Keys, props.Kids
	}
	if extra := n.Get("additionalProperties"); extra != nil && extra.Kind == tree.Object {
		for _, v := range m.values(extra, depth-1) {
			list = append(list, Value{Raw: object1(head, m.of([]string{`"x"`, `"y.z"`, `"\u0078"`, `""`, `"é"`, `"metadata"`}), v.Raw), Forms: v.Forms, Use: v.Use})
		}
	}
	var fixed []string // one member for every other property, so that required ones are there
	for i, name := range names {
		vs := m.values(kids[i], depth-1)
		for _, v := range vs {
			raw := object1(head, name, v.Raw)
			if i > 0 && m.one(2) {
				raw = object1(joinMembers(head, fixed[0]), name, v.Raw)
			}
			list = append(list, Value{Raw: raw, Forms: v.Forms, Use: v.Use})
		}
		fixed = append(fixed, name+":"+vs[m.n(len(vs))].Raw)
	}
	if len(fixed) > 1 {
		for range 4 {
			list = append(list, Value{Raw: "{" + joinMembers(head, strings.Join(fixed, ",")) + "}"})
		}
	}
	if required := n.Get("required"); required != nil && required.Kind == tree.Array {
		var all []string
		for _, r := range required.Kids {
			if r.Text() != "" {
				all = append(all, r.Raw+":"+m.of(scalars))
			}
			list = append(list, Value{Raw: "{" + strings.Join(all, ",") + "}"})
		}
	}
	for _, k := range lengths(n, "minProperties", "maxProperties") {
		members := make([]string, k)
		for i := range members {
			members[i] = `"` + string(rune('a'+i)) + `":` + m.of(scalars)
			if m.one(9) && i > 0 { // a key that is there already
				members[i] = `"a":` + m.of(scalars)
			}
		}
		list = append(list, Value{Raw: "{" + strings.Join(members, ",") + "}"})
	}
	list = append(list, plain([]string{`{"z":1}`, `{"a":1,"a":2}`, `{"z":{"y":null}}`, `{"\u0061":1}`})...)
	return list
}

func object1(head, name, raw string) string {
	return "{" + joinMembers(head, name+":"+raw) + "}"
}

func joinMembers(a, b string) string {
	if a == "" {
		return b
	}
	return a + "," + b
}
