package grammar

import (
	"github.com/espalier-dev/espalier/conformance/tree"
)

// A position puts a schema somewhere into a whole one. outer are the members that must stand outside allOf, anyOf, oneOf
// and not (type and structure), inner those with the keyword; together they are one schema.
type position struct {
	name   string
	branch bool // in a branch of allOf, anyOf, oneOf or not
	place  func(d *Dice, t string, outer, inner *members) string
}

// Positions are the names of the positions.
var Positions = func() []string {
	list := make([]string, len(positions))
	for i, p := range positions {
		list[i] = p.name
	}
	return list
}()

var positions = []position{
	{"root", false, func(_ *Dice, _ string, outer, inner *members) string {
		n := &members{}
		for i, name := range outer.names {
			if name == "type" {
				n.add("type", `"object"`)
			} else if name != "items" {
				n.add(name, outer.raws[i])
			}
		}
		return joined(n, inner).String()
	}},
	{"property", false, func(_ *Dice, _ string, outer, inner *members) string { return below(joined(outer, inner)) }},
	{"item", false, func(_ *Dice, _ string, outer, inner *members) string { return below(list(joined(outer, inner))) }},
	{"additionalProperties", false, func(_ *Dice, _ string, outer, inner *members) string {
		return below(object("additionalProperties", joined(outer, inner).String()))
	}},
	{"allOf", true, func(d *Dice, t string, outer, inner *members) string {
		return below(branches(d, "allOf", t, outer, inner))
	}},
	{"anyOf", true, func(d *Dice, t string, outer, inner *members) string {
		return below(branches(d, "anyOf", t, outer, inner))
	}},
	{"oneOf", true, func(d *Dice, t string, outer, inner *members) string {
		return below(branches(d, "oneOf", t, outer, inner))
	}},
	{"not", true, func(d *Dice, t string, outer, inner *members) string {
		return below(branches(d, "not", t, outer, inner))
	}},
	{"items allOf", true, func(d *Dice, t string, outer, inner *members) string {
		return below(list(branches(d, "allOf", t, outer, inner)))
	}},
	{"items anyOf", true, func(d *Dice, t string, outer, inner *members) string {
		return below(list(branches(d, "anyOf", t, outer, inner)))
	}},
	{"items oneOf", true, func(d *Dice, t string, outer, inner *members) string {
		return below(list(branches(d, "oneOf", t, outer, inner)))
	}},
	{"items not", true, func(d *Dice, t string, outer, inner *members) string {
		return below(list(branches(d, "not", t, outer, inner)))
	}},
	{"two deep", true, func(d *Dice, t string, outer, inner *members) string {
		a, b := d.of(junctors), d.of(junctors)
		return below(branches(d, a, t, outer, branches(d, b, t, &members{}, inner)))
	}},
	{"property of branch", true, func(d *Dice, t string, outer, inner *members) string {
		// The branch repeats the property, as a schema that is accepted must specify it outside.
		f := object("properties", `{"g":`+outer.String()+`}`)
		return below(branches(d, d.of(junctors), "object", f, single("properties", `{"g":`+inner.String()+`}`)))
	}},
	{"items of branch", true, func(d *Dice, t string, outer, inner *members) string {
		return below(branches(d, d.of(junctors), "array", list(outer), single("items", inner.String())))
	}},
	{"embedded", false, func(_ *Dice, _ string, outer, inner *members) string {
		f := object("properties", `{"g":`+joined(outer, inner).String()+`}`)
		f.add("x-kubernetes-embedded-resource", "true")
		return below(f)
	}},
	{"map key", false, func(d *Dice, _ string, outer, inner *members) string {
		key := joined(outer, inner)
		item := object("properties", `{"k":`+key.String()+`,"v":{"type":"integer"}}`)
		if !key.has("default") || d.one(2) {
			item.add("required", `["k"]`)
		}
		f := list(item)
		f.add("x-kubernetes-list-type", `"map"`)
		f.add("x-kubernetes-list-map-keys", `["k"]`)
		return below(f)
	}},
	{"map value", false, func(_ *Dice, _ string, outer, inner *members) string {
		item := object("properties", `{"k":{"type":"string"},"v":`+joined(outer, inner).String()+`}`)
		item.add("required", `["k"]`)
		f := list(item)
		f.add("x-kubernetes-list-type", `"map"`)
		f.add("x-kubernetes-list-map-keys", `["k"]`)
		return below(f)
	}},
	{"set item", false, func(_ *Dice, t string, outer, inner *members) string {
		item := joined(outer, inner)
		if t == "object" && !item.has("x-kubernetes-map-type") {
			item.add("x-kubernetes-map-type", `"atomic"`)
		}
		if t == "array" && !item.has("x-kubernetes-list-type") {
			item.add("x-kubernetes-list-type", `"atomic"`)
		}
		f := list(item)
		f.add("x-kubernetes-list-type", `"set"`)
		return below(f)
	}},
	{"nullable", false, func(_ *Dice, _ string, outer, inner *members) string {
		g := joined(outer, inner)
		if !g.has("nullable") {
			g.add("nullable", "true")
		}
		f := object("properties", `{"g":`+g.String()+`}`)
		f.add("nullable", "true")
		return below(f)
	}},
	{"int-or-string", false, func(_ *Dice, _ string, outer, inner *members) string {
		n := &members{}
		for i, name := range outer.names {
			if name != "type" {
				n.add(name, outer.raws[i])
			}
		}
		if !inner.has("x-kubernetes-int-or-string") {
			n.add("x-kubernetes-int-or-string", "true")
		}
		return below(joined(n, inner))
	}},
	{"preserved", false, func(_ *Dice, _ string, outer, inner *members) string {
		f := object("properties", `{"g":`+joined(outer, inner).String()+`}`)
		f.add("x-kubernetes-preserve-unknown-fields", "true")
		return below(f)
	}},
}

var junctors = []string{"allOf", "anyOf", "oneOf", "not"}

func joined(a, b *members) *members {
	n := &members{}
	n.names = append(append(n.names, a.names...), b.names...)
	n.raws = append(append(n.raws, a.raws...), b.raws...)
	return n
}

func single(name, raw string) *members {
	n := &members{}
	n.add(name, raw)
	return n
}

func object(name, raw string) *members {
	n := single("type", `"object"`)
	n.add(name, raw)
	return n
}

func list(items *members) *members {
	n := single("type", `"array"`)
	n.add("items", items.String())
	return n
}

// below is the whole schema with one field.
func below(field *members) string {
	return object("properties", `{"f":`+field.String()+`}`).String()
}

// branches puts inner into one of the branches beside what is outside.
func branches(d *Dice, keyword, t string, outer, inner *members) *members {
	if keyword == "not" {
		return joined(outer, single("not", inner.String()))
	}
	raw := inner.String()
	switch k := d.n(3); {
	case k == 0 || d.alone:
		raw = "[" + raw + "]"
	case k == 1:
		raw = "[" + raw + "," + d.branch(t, 0) + "]"
	default:
		raw = "[" + d.branch(t, 0) + "," + raw + "]"
	}
	return joined(outer, single(keyword, raw))
}

// A Case is a schema with the cells that it fills.
type Case struct {
	Seed                     uint64
	Keyword, Class, Position string
	Type                     string // of the schema with the keyword
	Schema                   []byte
	Status                   bool // ask about a CRD with the status subresource
	Twice                    bool // a keyword occurs twice
}

// Edges is the number of seeds before the first Round.
func Edges() uint64 { return uint64(len(edges)) }

// Round is the number of consecutive seeds that has every keyword with every class.
func Round() uint64 { return uint64(len(Keywords) * len(classes)) }

// live is how many of the Keywords, which begin with these, a schema may have.
const live = 36

// Make returns the case of a seed. The first seeds are edges. After them, the seeds of an even Round have every keyword with every class; positions go round, so
// that as many even rounds as there are positions have every keyword with every class at every position. An odd Round has
// only values of the keywords' own grammars, since most others are refused.
func Make(seed uint64) Case {
	if seed < uint64(len(edges)) {
		return edges[seed]
	}
	d := NewDice(seed, 1)
	at := seed - uint64(len(edges))
	round := at / Round()
	k := int(at % uint64(len(Keywords)))
	c := int(at / uint64(len(Keywords)) % uint64(len(classes)))
	p := int((uint64(k*7+c) + round/2) % uint64(len(positions)))
	if round%2 == 1 {
		k, c = k%live, 0
	}
	keyword := Keywords[k]
	out := Case{Seed: seed, Keyword: keyword, Class: classes[c].name, Position: positions[p].name, Status: d.one(16)}
	types := typeOf[keyword]
	if types == nil {
		types = allTypes
	}
	out.Type = d.of(types)
	if d.one(12) {
		out.Type = d.of(allTypes)
	}
	if out.Position == "root" {
		out.Type = "object"
	}
	outer, inner := &members{}, &members{}
	if keyword != "type" && !(keyword == "x-kubernetes-int-or-string" && d.one(2)) {
		outer.add("type", tree.Quote(out.Type))
	}
	switch out.Class {
	case own:
		inner.add(keyword, d.own(keyword, out.Type, 2))
	case duplicate:
		inner.add(keyword, d.own(keyword, out.Type, 2))
		inner.add(keyword, d.own(keyword, out.Type, 2))
		out.Twice = true
	case Absent:
	default:
		inner.add(keyword, d.of(classes[c].raw))
	}
	d.companions(keyword, out.Type, outer, inner)
	out.Schema = []byte(positions[p].place(d, out.Type, outer, inner))
	return out
}

// companions adds what the keyword needs in order to mean something, and sometimes a keyword beside it.
func (d *Dice) companions(keyword, t string, outer, inner *members) {
	switch keyword {
	case "exclusiveMinimum":
		inner.add("minimum", d.of(written))
	case "exclusiveMaximum":
		inner.add("maximum", d.of(written))
	case "minimum", "maximum":
		if d.one(3) {
			inner.add("exclusive"+string(keyword[0]-'a'+'A')+keyword[1:], d.of([]string{"true", "true", "false"}))
		}
	case "x-kubernetes-list-map-keys":
		inner.add("x-kubernetes-list-type", `"map"`)
	}
	if t == "array" && keyword != "items" {
		if keyword == "x-kubernetes-list-map-keys" || keyword == "x-kubernetes-list-type" && d.one(2) {
			outer.add("items", `{"type":"object","required":["k"],"properties":{"k":`+d.of([]string{`{"type":"string"}`, `{"type":"number"}`, `{"type":"integer"}`, `{"type":"boolean"}`})+`,"l":{"type":"integer","default":`+d.of([]string{"1", "1.0", "-0", "0"})+`}}}`)
			if keyword == "x-kubernetes-list-type" {
				inner.add("x-kubernetes-list-map-keys", d.own("x-kubernetes-list-map-keys", t, 1))
			}
		} else {
			outer.add("items", d.schema(1))
		}
	}
	if t == "object" && keyword != "properties" && keyword != "additionalProperties" && d.one(2) {
		outer.add("properties", d.ownProperties(1))
	}
	for range d.n(3) {
		if !inner.has("type") && len(values[t]) > 0 {
			if other := d.of(values[t]); other != keyword && !inner.has(other) {
				inner.add(other, d.own(other, t, 1))
			}
		}
	}
	if d.one(6) {
		outer.add("description", `"x"`)
	}
}
