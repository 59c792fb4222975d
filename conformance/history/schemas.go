package history

import "github.com/espalier-dev/espalier/conformance/tree"

// inSchema is a change of an object with properties somewhere in the schema of a version. Half of the time it is made in
// all versions, so that they go on to share a schema.
func inSchema(edit func(w *writer, n *tree.Node) bool) func(*writer) bool {
	return func(w *writer) bool {
		v := w.version()
		if v == nil {
			return false
		}
		schema := v.Get("schema").Get("openAPIV3Schema")
		if schema == nil || schema.Kind != tree.Object {
			return false
		}
		n := schema
		for !w.one(3) {
			props := n.Get("properties")
			if props == nil || props.Kind != tree.Object || len(props.Kids) == 0 {
				break
			}
			next := props.Kids[w.IntN(len(props.Kids))]
			if next.Get("type").Text() != "object" {
				break
			}
			n = next
		}
		if !edit(w, n) {
			return false
		}
		if w.one(2) {
			for _, other := range w.versions() {
				if other != v {
					setSchema(other, schema.Clone())
				}
			}
		}
		return true
	}
}

func addField(w *writer, n *tree.Node) bool {
	n.Have("properties", tree.Object).Set(w.choose("added", "name", "l", "replicas"), w.node(
		`{"type":"string"}`, `{"type":"integer","minimum":1,"default":1}`, `{"type":"array","items":{"type":"string"}}`, `{"type":"object","additionalProperties":{"type":"integer"}}`,
		`{"type":"object","x-kubernetes-embedded-resource":true,"x-kubernetes-preserve-unknown-fields":true}`, `{"x-kubernetes-int-or-string":true}`,
		`{"type":"string","format":"added-format"}`, `{}`, `{"type":"strange"}`, `{"type":"array"}`, `{"type":"object","properties":{"a":{}}}`, `{"type":"string","pattern":"("}`,
		`{"type":"array","items":{"type":"object","required":["k"],"properties":{"k":{"type":"string"}}},"x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["k"]}`,
		`{"type":"array","items":{"type":"object","properties":{"k":{"type":"string"}}},"x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["k"]}`))
	return true
}

func removeField(w *writer, n *tree.Node) bool {
	props := n.Get("properties")
	if props == nil || props.Kind != tree.Object || len(props.Kids) == 0 {
		return false
	}
	props.Cut(w.IntN(len(props.Kids)))
	return true
}

// field is the schema of some property, or nil.
func (w *writer) field(n *tree.Node) *tree.Node {
	props := n.Get("properties")
	if props == nil || props.Kind != tree.Object || len(props.Kids) == 0 {
		return nil
	}
	if p := props.Kids[w.IntN(len(props.Kids))]; p.Kind == tree.Object {
		return p
	}
	return nil
}

func changeType(w *writer, n *tree.Node) bool {
	p := w.field(n)
	if p == nil {
		return false
	}
	p.Set("type", w.node(`"string"`, `"integer"`, `"number"`, `"boolean"`, `"object"`, `"array"`, `"strange"`))
	return true
}

func addDefault(w *writer, n *tree.Node) bool {
	p := w.field(n)
	if p == nil {
		return false
	}
	fits := map[string]string{"string": `"a"`, "integer": "3", "number": "1.5", "boolean": "true", "object": "{}", "array": "[]"}[p.Get("type").Text()]
	if fits == "" || w.one(4) {
		fits = w.choose(`"a"`, "3", `{"unknown":1}`, "null", "[1]")
	}
	p.Set("default", tree.Lit(fits))
	return true
}

func rules(n *tree.Node) *tree.Node { return n.Have("x-kubernetes-validations", tree.Array) }

func addRule(w *writer, n *tree.Node) bool {
	list := rules(n)
	list.Kids = append(list.Kids, w.node(`{"rule":"true"}`, `{"rule":"self == self","message":"m"}`, `{"rule":"self == oldSelf"}`, `{"rule":"1"}`, `{"rule":"self.none"}`, `{"rule":""}`,
		`{"rule":"true || self == oldSelf","optionalOldSelf":true}`, `{"rule":"true","messageExpression":"'a' + 'b'"}`, `{"rule":"true","messageExpression":"1"}`, `{"rule":"true","reason":"Other"}`,
		`{"rule":"true","fieldPath":".none"}`, `{"rule":"true","message":"a\nb"}`))
	return true
}

// costlyRule adds a rule that costs more than one may, or all of them, or just not.
func costlyRule(w *writer, n *tree.Node) bool {
	n.Have("properties", tree.Object).Set("l", w.node(`{"type":"array","items":{"type":"string"}}`, `{"type":"array","items":{"type":"string"}}`, `{"type":"array","maxItems":20,"items":{"type":"string","maxLength":10}}`))
	list := rules(n)
	list.Kids = append(list.Kids, w.node(`{"rule":"!has(self.l) || self.l.all(x, self.l.all(y, x != y))"}`, `{"rule":"!has(self.l) || self.l.all(x, self.l.all(y, self.l.all(z, x != y || y != z)))"}`,
		`{"rule":"!has(self.l) || self.l.all(x, x.matches('a+'))","messageExpression":"self.l.map(x, x + x).join(',')"}`))
	return true
}

// changeRule changes a rule that there is, or removes it, or changes its schema beside it.
func changeRule(w *writer) bool {
	v := w.version()
	if v == nil {
		return false
	}
	var found []*tree.Node
	var look func(n *tree.Node)
	look = func(n *tree.Node) {
		if list := n.Get("x-kubernetes-validations"); list != nil && list.Kind == tree.Array && len(list.Kids) > 0 {
			found = append(found, n)
		}
		if props := n.Get("properties"); props != nil && props.Kind == tree.Object {
			for _, p := range props.Kids {
				look(p)
			}
		}
	}
	if s := v.Get("schema").Get("openAPIV3Schema"); s != nil {
		look(s)
	}
	if len(found) == 0 {
		return false
	}
	n := found[w.IntN(len(found))]
	list := n.Get("x-kubernetes-validations")
	i := w.IntN(len(list.Kids))
	switch w.IntN(5) {
	case 0:
		list.Cut(i)
	case 1:
		if list.Kids[i].Kind == tree.Object {
			list.Kids[i].Set("message", tree.Str("changed"))
		}
	case 2:
		if list.Kids[i].Kind == tree.Object {
			list.Kids[i].Set("rule", tree.Str(list.Kids[i].Get("rule").Text()+w.choose(" && true", " || nothing", " ")))
		}
	case 3:
		n.Set("description", tree.Str("what the rule stays in"))
	default:
		list.Kids = append(list.Kids, list.Kids[i].Clone())
	}
	return true
}

func addFormat(w *writer, n *tree.Node) bool {
	n.Have("properties", tree.Object).Set(w.choose("f", "name"), w.node(`{"type":"string","format":"date"}`, `{"type":"string","format":"unheard-of"}`, `{"type":"string","format":"other"}`, `{"type":"integer","format":"int32"}`,
		`{"type":"array","format":"date"}`))
	return true
}

func addList(w *writer, n *tree.Node) bool {
	n.Have("properties", tree.Object).Set(w.choose("s", "l"), w.node(
		`{"type":"array","x-kubernetes-list-type":"set","items":{"type":"string"}}`,
		`{"type":"array","x-kubernetes-list-type":"set","items":{"type":"object","x-kubernetes-map-type":"atomic","properties":{"a":{"type":"string"}}}}`,
		`{"type":"array","x-kubernetes-list-type":"set","items":{"type":"array","x-kubernetes-list-type":"atomic","items":{"type":"string"}}}`,
		`{"type":"array","x-kubernetes-list-type":"set","items":{"type":"object","properties":{"a":{"type":"string"}}}}`,
		`{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["a"],"items":{"type":"object","required":["a"],"properties":{"a":{"type":"string"}}}}`,
		`{"type":"array","x-kubernetes-list-type":"map","items":{"type":"object","properties":{"a":{"type":"string"}}}}`,
		`{"type":"array","x-kubernetes-list-type":"heap","items":{"type":"string"}}`))
	return true
}
