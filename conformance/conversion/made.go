package conversion

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"

	"github.com/espalier-dev/espalier/crd/conversion"
)

// schema is a schema as JSON has it.
type schema = map[string]any

// maker makes two versions of a schema, and the rules between them.
type maker struct {
	r     *rand.Rand
	names int
	rules []string
}

func newMaker(seed uint64) *maker { return &maker{r: rand.New(rand.NewPCG(seed, 21))} }

func (m *maker) name() string {
	m.names++
	return fmt.Sprintf("%s%d", []string{"size", "mode", "host", "limit", "policy", "name"}[m.r.IntN(6)], m.names)
}

func (m *maker) one(n int) bool { return m.r.IntN(n) == 0 }

func scalar(kind string) schema { return schema{"type": kind} }

// crd returns a CRD with both versions and the rules.
func (m *maker) crd() string {
	first, second := m.object("spec", "spec", 0)
	root := func(spec schema) schema {
		return schema{"openAPIV3Schema": schema{"type": "object", "properties": schema{
			"spec": spec, "status": schema{"type": "object", "properties": schema{"ready": scalar("boolean")}},
		}}}
	}
	if m.one(3) {
		name := m.name()
		m.rule("move: {from: 'metadata.annotations[example.com/%s]', to: spec.%s}", name, name)
		second["properties"].(schema)[name] = scalar([]string{"string", "integer", "boolean"}[m.r.IntN(3)])
	}
	rules := ""
	if len(m.rules) > 0 {
		rules = "  rules:\n  - " + strings.Join(m.rules, "\n  - ") + "\n"
	}
	text := "conversions:\n- between: [v1alpha1, v1]\n" + rules + "  preserve: everything\n"
	version := func(name string, storage bool, spec schema) schema {
		return schema{"name": name, "served": true, "storage": storage, "schema": root(spec)}
	}
	out, err := json.Marshal(schema{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": schema{"name": "things.example.com", "annotations": schema{conversion.Annotation: text}},
		"spec": schema{
			"group": "example.com", "scope": "Namespaced",
			"names":    schema{"plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList"},
			"versions": []any{version("v1alpha1", false, first), version("v1", true, second)},
		},
	})
	if err != nil {
		panic(err)
	}
	return string(out)
}

func (m *maker) rule(format string, args ...any) {
	m.rules = append(m.rules, fmt.Sprintf(format, args...))
}

// object makes an object of both versions. a and b are its paths.
func (m *maker) object(a, b string, depth int) (first, second schema) {
	x, y := schema{}, schema{}
	for range 2 + m.r.IntN(6) {
		m.field(a, b, x, y, depth)
	}
	first, second = schema{"type": "object", "properties": x}, schema{"type": "object", "properties": y}
	if m.one(10) {
		first["x-kubernetes-preserve-unknown-fields"] = true
	}
	if m.one(10) {
		second["x-kubernetes-preserve-unknown-fields"] = true
	}
	return first, second
}

var scalars = []string{"string", "integer", "boolean", "number"}

// field adds a field to both versions, or what became of it.
func (m *maker) field(a, b string, x, y schema, depth int) {
	name := m.name()
	from, to := a+"."+name, b+"."+name
	kind := scalars[m.r.IntN(4)]
	switch n := m.r.IntN(16); {
	case n < 2: // the same
		x[name], y[name] = scalar(kind), scalar(kind)
	case n < 4: // another name
		to += "New"
		x[name], y[name+"New"] = scalar(kind), scalar(kind)
		m.rule("move: {from: '%s', to: '%s'}", from, to)
	case n == 4: // into an object
		x[name] = scalar(kind)
		y[name+"Part"] = schema{"type": "object", "properties": schema{"inner": scalar(kind), "more": scalar("string")}}
		m.rule("move: {from: '%s', to: '%sPart.inner'}", from, to)
	case n == 5: // out of an object
		y[name] = scalar(kind)
		x[name+"Part"] = schema{"type": "object", "properties": schema{"inner": scalar(kind), "more": scalar("string")}}
		m.rule("move: {from: '%sPart.inner', to: '%s'}", from, to)
	case n == 6: // one and several
		if m.one(2) {
			x[name], y[name+"s"] = scalar(kind), schema{"type": "array", "items": scalar(kind)}
			m.rule("wrap: {from: '%s', to: '%ss'}", from, to)
			return
		}
		y[name], x[name+"s"] = scalar(kind), schema{"type": "array", "items": scalar(kind)}
		m.rule("unwrap: {from: '%ss', to: '%s'}", from, to)
	case n == 7: // parts of a string
		part := scalars[m.r.IntN(2)]
		if m.one(2) {
			x[name], y[name+"Host"], y[name+"Port"] = scalar("string"), scalar("string"), scalar(part)
			m.rule("split: {from: '%s', separator: ':', to: ['%sHost', '%sPort']}", from, to, to)
			return
		}
		y[name], x[name+"Host"], x[name+"Port"] = scalar("string"), scalar("string"), scalar(part)
		m.rule("join: {from: ['%sHost', '%sPort'], separator: ':', to: '%s'}", from, from, to)
	case n == 8: // other values, two of them the same
		x[name] = schema{"type": "string", "enum": []any{"A", "B", "C", "D"}}
		y[name] = schema{"type": "string", "enum": []any{"a", "b", "D", "e"}}
		m.rule("enum: {from: '%s', to: '%s', values: {A: a, B: b, C: b}}", from, to)
	case n == 9: // a value in one version
		if m.one(2) {
			y[name] = scalar("string")
			m.rule("constant: {in: v1, path: '%s', value: fixed}", to)
			return
		}
		x[name] = scalar("integer")
		m.rule("constant: {in: v1alpha1, path: '%s', value: 3}", from)
	case n == 10: // a number in a string
		x[name], y[name] = scalar("string"), scalar([]string{"integer", "boolean"}[m.r.IntN(2)])
		m.rule("move: {from: '%s', to: '%s'}", from, to)
	case n == 11: // only one of them has it
		m.only([]schema{x, y}[m.r.IntN(2)], name, kind)
	case depth >= 3:
		x[name], y[name] = scalar(kind), scalar(kind)
	default:
		m.structure(n, name, from, to, x, y, depth)
	}
}

// only adds a field that the other version does not have.
func (m *maker) only(to schema, name, kind string) {
	switch m.r.IntN(4) {
	case 0:
		to[name] = schema{"type": "object", "additionalProperties": scalar(kind)}
	case 1:
		to[name] = schema{"type": "array", "items": scalar(kind)}
	case 2:
		to[name] = schema{"type": "object", "properties": schema{"x": scalar(kind), "y": scalar("string")}}
	default:
		to[name] = scalar(kind)
		to[name].(schema)["nullable"] = m.one(2)
	}
}

// structure adds an object, a list or a map to both versions.
func (m *maker) structure(n int, name, from, to string, x, y schema, depth int) {
	moved := name
	if m.one(3) {
		moved, to = name+"Moved", to+"Moved"
		m.rule("move: {from: '%s', to: '%s'}", from, to)
	}
	switch n {
	case 12:
		x[name], y[moved] = m.object(from, to, depth+1)
	case 13: // items with keys, which may have other names
		a, b := m.object(from+"[]", to+"[]", depth+1)
		key := "key"
		if m.one(3) {
			key = "id"
			m.rule("move: {from: '%s[].key', to: '%s[].id'}", from, to)
		}
		a["properties"].(schema)["key"], b["properties"].(schema)[key] = scalar("string"), scalar("string")
		keyed := func(items schema, key string) schema {
			items["required"] = []any{key}
			return schema{"type": "array", "items": items, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": []any{key}}
		}
		x[name], y[moved] = keyed(a, "key"), keyed(b, key)
	case 14: // items without keys, or values of a map
		member, path := "items", "[]"
		kind := "array"
		if m.one(2) {
			member, path, kind = "additionalProperties", "[*]", "object"
		}
		a, b := m.object(from+path, to+path, depth+1)
		x[name], y[moved] = schema{"type": kind, member: a}, schema{"type": kind, member: b}
	default: // a list that becomes a map, or the other way round
		m.listAndMap(name, moved, from, to, x, y)
	}
}

func (m *maker) listAndMap(name, moved, from, to string, x, y schema) {
	if moved != name { // listToMap moves by itself
		m.rules = m.rules[:len(m.rules)-1]
	}
	fields := schema{"name": scalar("string"), "value": scalar("string")}
	if m.one(2) {
		fields["note"] = scalar("string")
	}
	list := schema{"type": "array", "items": schema{"type": "object", "properties": fields}}
	if m.one(2) {
		list["items"].(schema)["required"] = []any{"name", "value"}
	}
	values, rule := scalar("string"), ", value: value"
	if m.one(2) {
		rest := maps.Clone(fields)
		delete(rest, "name")
		if m.one(2) {
			rest["extra"] = scalar("integer")
		}
		values, rule = schema{"type": "object", "properties": rest}, ""
	}
	dict := schema{"type": "object", "additionalProperties": values}
	if m.one(2) {
		x[name], y[moved] = list, dict
		m.rule("listToMap: {list: '%s', key: name, map: '%s'%s}", from, to, rule)
		return
	}
	x[name], y[moved] = dict, list
	m.rule("mapToList: {map: '%s', list: '%s', key: name%s}", from, to, rule)
}
