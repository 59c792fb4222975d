package conformance

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/espalier-dev/espalier/conformance/oracle"
	"github.com/espalier-dev/espalier/conformance/tree"
	"github.com/espalier-dev/espalier/crd/fix"
	"github.com/espalier-dev/espalier/finding"
)

// spoiler makes schemas that are not structural of ones that are.
type spoiler struct{ *rand.Rand }

func (s spoiler) one(k int) bool { return s.IntN(k) == 0 }

// spoil changes n places of a schema, none of them twice in the same way.
func (s spoiler) spoil(schema *tree.Node, n int) *tree.Node {
	out := schema.Clone()
	for range n {
		places := objects(nil, out)
		if len(places) == 0 {
			return out
		}
		spoilers[s.IntN(len(spoilers))](s, places[s.IntN(len(places))])
	}
	return out
}

// objects are the schemas outside allOf, anyOf, oneOf and not that have properties.
func objects(list []*tree.Node, s *tree.Node) []*tree.Node {
	if s == nil || s.Kind != tree.Object {
		return list
	}
	if p := s.Get("properties"); p != nil && len(p.Kids) > 0 {
		list = append(list, s)
		for i, child := range p.Kids {
			if name := tree.Unquote(p.Keys[i]); name != "metadata" && name != "apiVersion" && name != "kind" {
				list = objects(list, child)
			}
		}
	}
	return objects(objects(list, s.Get("items")), s.Get("additionalProperties"))
}

// pick chooses a property, or none.
func (s spoiler) pick(o *tree.Node) (string, *tree.Node) {
	p := o.Get("properties")
	if len(p.Kids) == 0 {
		return "", nil
	}
	i := s.IntN(len(p.Kids))
	name := tree.Unquote(p.Keys[i])
	if p.Kids[i].Kind != tree.Object || name == "metadata" || name == "apiVersion" || name == "kind" {
		return "", nil
	}
	return name, p.Kids[i]
}

// branch adds a branch to allOf, anyOf, oneOf or not.
func branch(o *tree.Node, junctor string, b *tree.Node) {
	if junctor == "not" {
		if o.Get("not") == nil {
			o.Set("not", b)
		}
		return
	}
	list := o.Get(junctor)
	if list == nil {
		list = tree.Arr()
		o.Set(junctor, list)
	}
	list.Kids = append(list.Kids, b)
}

// about is a branch that says something of a field.
func about(name string, says *tree.Node) *tree.Node {
	b := tree.Obj()
	b.Set("properties", tree.Obj())
	b.Get("properties").Set(name, says)
	return b
}

func require(b *tree.Node, name string) *tree.Node {
	b.Set("required", tree.Arr(tree.Str(name)))
	return b
}

// optional reports whether a field may be left out.
func optional(o *tree.Node, name string) bool {
	if list := o.Get("required"); list != nil {
		for _, r := range list.Kids {
			if r.Text() == name {
				return false
			}
		}
	}
	return true
}

var spoilers = []func(spoiler, *tree.Node){
	// A type moves into allOf, or into both branches of an anyOf.
	func(s spoiler, o *tree.Node) {
		name, p := s.pick(o)
		if p == nil || p.Get("type") == nil {
			return
		}
		typ := tree.Obj()
		typ.Set("type", p.Get("type"))
		p.Del("type")
		if s.one(2) {
			branch(o, "allOf", about(name, typ))
			return
		}
		other := typ.Clone()
		other.Set("description", tree.Str("the other"))
		branch(o, "anyOf", about(name, typ))
		branch(o, "anyOf", about(name, other))
	},
	// A type is repeated in a branch.
	func(s spoiler, o *tree.Node) {
		name, p := s.pick(o)
		if p == nil || p.Get("type") == nil {
			return
		}
		typ := tree.Obj()
		typ.Set("type", p.Get("type").Clone())
		if s.one(2) {
			typ.Set("nullable", tree.Lit("true"))
		}
		switch s.IntN(4) {
		case 0:
			branch(o, "allOf", about(name, typ))
		case 1:
			branch(o, "anyOf", require(about(name, typ), name))
			branch(o, "anyOf", tree.Must(`{"maxProperties":4}`))
		case 2:
			if optional(o, name) && o.Get("oneOf") == nil {
				branch(o, "oneOf", require(about(name, typ), name))
				branch(o, "oneOf", tree.Must(fmt.Sprintf(`{"not":{"required":[%s]}}`, tree.Quote(name))))
			}
		case 3:
			if optional(o, name) {
				typ.Set("enum", tree.Must(`["forbidden"]`))
				branch(o, "not", require(about(name, typ), name))
			}
		}
	},
	// A field moves into a branch.
	func(s spoiler, o *tree.Node) {
		name, p := s.pick(o)
		if p == nil {
			return
		}
		o.Get("properties").Del(name)
		switch {
		case s.one(2):
			branch(o, "allOf", about(name, p))
		case optional(o, name):
			branch(o, "anyOf", require(about(name, p), name))
			branch(o, "anyOf", tree.Must(`{"description":"without"}`))
		default:
			branch(o, "oneOf", require(about(name, p), name))
		}
	},
	// A type is left out.
	func(s spoiler, o *tree.Node) {
		if _, p := s.pick(o); p != nil && s.one(2) {
			p.Del("type")
			return
		}
		o.Del("type")
	},
	// Keywords that do not belong into allOf, anyOf, oneOf and not.
	func(s spoiler, o *tree.Node) {
		name, p := s.pick(o)
		if p == nil {
			return
		}
		says := []*tree.Node{
			tree.Must(`{"default":null,"title":"a title"}`), tree.Must(`{"description":"a description"}`), tree.Must(`{"nullable":true}`),
			tree.Must(`{"x-kubernetes-preserve-unknown-fields":true}`), tree.Must(`{"additionalProperties":true}`),
			tree.Must(`{"x-kubernetes-map-type":"atomic"}`),
		}
		branch(o, []string{"allOf", "anyOf"}[s.IntN(2)], about(name, says[s.IntN(len(says))]))
	},
	// int-or-string in other words.
	func(s spoiler, o *tree.Node) {
		_, p := s.pick(o)
		if p == nil || p.Get("type").Text() != "string" && p.Get("type").Text() != "integer" || p.Get("x-kubernetes-validations") != nil || p.Get("default") != nil {
			return
		}
		for _, key := range append([]string(nil), p.Keys...) {
			if name := tree.Unquote(key); name != "description" {
				p.Del(name)
			}
		}
		switch s.IntN(3) {
		case 0:
			p.Set("oneOf", tree.Must(`[{"type":"string"},{"type":"integer"}]`))
		case 1:
			p.Set("anyOf", tree.Must(`[{"type":"string","minLength":1},{"type":"integer","minimum":0}]`))
		case 2:
			p.Set("anyOf", tree.Must(`[{"type":"integer"},{"type":"string"}]`))
		}
	},
	// Items are left out.
	func(s spoiler, o *tree.Node) {
		if _, p := s.pick(o); p != nil && p.Get("x-kubernetes-list-type") == nil {
			p.Del("items")
		}
	},
	// Close an object. This always applies, so that it is chosen less often than the others.
	func(s spoiler, o *tree.Node) {
		if o.Get("x-kubernetes-embedded-resource") == nil && s.one(8) {
			o.Set("additionalProperties", tree.Lit("false"))
		}
	},
	// A branch mentions what is nowhere specified.
	func(s spoiler, o *tree.Node) {
		word := []string{"bark", "root", "leaf"}[s.IntN(3)]
		says := tree.Must([]string{`{}`, `{"type":"string"}`, `{"type":"object","properties":{"deep":{"type":"integer"}}}`, `{"type":"array","items":{"type":"string"}}`}[s.IntN(4)])
		branch(o, []string{"allOf", "anyOf", "not"}[s.IntN(3)], require(about(word, says), word))
		if o.Get("anyOf") != nil {
			branch(o, "anyOf", tree.Must(`{}`))
		}
	},
}

// TestFixSpoiled makes schemas that are not structural of ones that are, by moving types and fields into allOf and the like,
// dropping types, and so on, and fixes them: those of testdata, and, if the archive is there, real ones.
func TestFixSpoiled(t *testing.T) {
	rounds := 30
	schemas := seeds(t)
	for i, s := range archived(t) {
		if i%80 == 0 && len(s.JSON) < 30_000 {
			schemas = append(schemas, s)
		}
	}
	if testing.Short() {
		rounds = 10
	}
	var counts fixCounts
	for _, source := range schemas {
		schema, err := tree.Parse(source.JSON)
		if err != nil {
			t.Fatal(err)
		}
		if v := oracle.Check(source.JSON, false); len(v.All()) > 0 || v.Undecodable != nil {
			continue
		}
		n := rounds
		if source.Source != "testdata" {
			n = 4
		}
		for seed := range n {
			s := spoiler{rand.New(rand.NewPCG(uint64(seed), 4))}
			spoiled := s.spoil(schema, 2+s.IntN(5)).Bytes()
			if v := oracle.Check(spoiled, false); len(v.All()) == 0 && v.Undecodable == nil {
				continue
			}
			t.Run(fmt.Sprintf("%s/%d", source.Name, seed), func(t *testing.T) {
				r := runFix(t, fixCase{Schema: spoiled}, 40, &counts)
				for _, note := range r.Notes {
					if note.Kind == fix.Cannot && !explained(note.Check) {
						t.Errorf("is expected to be fixable: %+v\n%s", note, spoiled)
					}
				}
			})
		}
	}
	t.Log(counts)
	if counts.fixed < 5*rounds || counts.objects < 50*rounds {
		t.Errorf("too little was fixed: %v", counts)
	}
}

// explained are the rules that spoiling breaks beyond repair: a list lost its keys, a default the fields it has, a rule the
// types it is about.
func explained(rule finding.ID) bool {
	switch rule {
	case "list-map-key-unknown", "list-map-items-object", "list-type-array", "map-type-object", "list-map-key-optional", "list-set-atomic",
		"default-unknown-fields", "default-value", "rule-expression", "rule-type", "rule-default", "rule-cost", "rule-total-cost", "rule-field-path-invalid":
		return true
	}
	return false
}
