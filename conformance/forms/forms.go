package forms

import (
	"encoding/json"
	"math/rand/v2"
	"strings"

	kjson "sigs.k8s.io/json"

	"github.com/espalier-dev/espalier/conformance/tree"
)

// The names of what Wrap writes. Generated objects have them too.
const (
	Group   = "orchard.example"
	Version = "v1"
	Kind    = "Tree"
	Plural  = "trees"
)

// A Form is what a CRD says besides its schema, and how it says it.
type Form struct {
	Beta     bool // apiextensions.k8s.io/v1beta1
	Shared   bool // v1beta1: schema and subresources are those of all versions
	Single   bool // v1beta1: spec.version in place of spec.versions
	Preserve bool // preserveUnknownFields
	Cluster  bool
	Status   bool
	Scale    bool
	Odd      bool // the scale leads to the first fields that there are, of whatever type
}

// Of returns the form of a seed. Objects are pruned in five of six.
func Of(seed uint64) Form {
	r := rand.New(rand.NewPCG(seed, 0x666f726d73))
	one := func(n int) bool { return r.IntN(n) == 0 }
	f := Form{Beta: one(2), Preserve: one(6), Cluster: one(4), Status: one(2), Scale: one(3), Odd: one(4)}
	if f.Beta {
		f.Shared = one(2)
		f.Single = f.Shared && one(3)
	}
	return f
}

// String is the form in words, for a reproducer.
func (f Form) String() string {
	words := []string{"v1"}
	if f.Beta {
		words[0] = "v1beta1"
	}
	for _, w := range []struct {
		on   bool
		word string
	}{
		{f.Shared, "shared"}, {f.Single, "single"}, {f.Preserve, "preserving"}, {f.Cluster, "cluster"}, {f.Status, "status"}, {f.Scale, "scale"}, {f.Scale && f.Odd, "odd"},
	} {
		if w.on {
			words = append(words, w.word)
		}
	}
	return strings.Join(words, " ")
}

// Wrap writes the CRD of a form around a schema. The result is not always valid: servers have CRDs in storage that they
// would no longer accept, and serve them.
func (f Form) Wrap(schema []byte) ([]byte, error) {
	s, err := tree.Parse(schema)
	if err != nil {
		return nil, err
	}
	settle(s, false)
	apiVersion := "apiextensions.k8s.io/v1"
	if f.Beta {
		apiVersion += "beta1"
	}
	root := tree.Must(`{"apiVersion":` + tree.Quote(apiVersion) + `,"kind":"CustomResourceDefinition","metadata":{"name":"` + Plural + "." + Group + `"},` +
		`"spec":{"group":"` + Group + `","names":{"plural":"` + Plural + `","singular":"tree","kind":"` + Kind + `","listKind":"TreeList"}},` +
		`"status":{"acceptedNames":{"plural":"` + Plural + `","singular":"tree","kind":"` + Kind + `","listKind":"TreeList"},"storedVersions":["` + Version + `"]}}`)
	spec := root.Get("spec")
	scope := "Namespaced"
	if f.Cluster {
		scope = "Cluster"
	}
	spec.Set("scope", tree.Str(scope))
	switch {
	case f.Preserve:
		spec.Set("preserveUnknownFields", tree.Lit("true"))
		preserved(s)
	case f.Beta: // whose default is true
		spec.Set("preserveUnknownFields", tree.Lit("false"))
	}
	version := tree.Must(`{"name":"` + Version + `","served":true,"storage":true}`)
	at, key := version, "schema"
	if f.Shared {
		at, key = spec, "validation"
	}
	at.Set(key, tree.Obj())
	at.Get(key).Set("openAPIV3Schema", s)
	if sub := f.subresources(s); sub != nil {
		at.Set("subresources", sub)
	}
	if f.Single {
		spec.Set("version", tree.Str(Version))
	} else {
		spec.Set("versions", tree.Arr(version))
	}
	return root.Bytes(), nil
}

func (f Form) subresources(schema *tree.Node) *tree.Node {
	if !f.Status && !f.Scale {
		return nil
	}
	sub := tree.Obj()
	if f.Status {
		sub.Set("status", tree.Obj())
	}
	if f.Scale {
		scale := tree.Obj()
		scale.Set("specReplicasPath", tree.Str(f.path(schema, "spec", "integer", "replicas")))
		scale.Set("statusReplicasPath", tree.Str(f.path(schema, "status", "integer", "replicas")))
		scale.Set("labelSelectorPath", tree.Str(f.path(schema, "status", "string", "selector")))
		sub.Set("scale", scale)
	}
	return sub
}

// path leads to a field of a type below a part of the schema, or to one of that name.
func (f Form) path(schema *tree.Node, part, kind, name string) string {
	props := schema.Get("properties").Get(part).Get("properties")
	if props != nil && props.Kind == tree.Object {
		for i, p := range props.Kids {
			key := tree.Unquote(props.Keys[i])
			if (f.Odd || p.Get("type").Text() == kind) && key != "" && !strings.ContainsAny(key, ".[]'\"") {
				name = key
				break
			}
		}
	}
	return "." + part + "." + name
}

// preserved removes what a schema beside preserveUnknownFields cannot have: defaults, which no version of the API ever let
// it have; and embedded resources, about whose metadata the two sides differ (DIVERGENCES.md, preserved-embedded-metadata).
func preserved(n *tree.Node) {
	if n == nil || n.Kind != tree.Object {
		return
	}
	n.Del("default")
	n.Del("x-kubernetes-embedded-resource")
	preserved(n.Get("items"))
	preserved(n.Get("additionalProperties"))
	if props := n.Get("properties"); props != nil && props.Kind == tree.Object {
		for _, p := range props.Kids {
			preserved(p)
		}
	}
}

// settle writes the numbers of defaults and enums in the form that they have once a server has stored the CRD: it decodes
// and encodes them.
func settle(n *tree.Node, value bool) {
	if n.Kind == tree.Scalar && value {
		for range 2 { // -0.0 becomes -0, and that 0
			var v any
			if kjson.UnmarshalCaseSensitivePreserveInts([]byte(n.Raw), &v) == nil {
				if raw, err := json.Marshal(v); err == nil {
					n.Raw = string(raw)
				}
			}
		}
	}
	for i, k := range n.Kids {
		within := value
		if n.Kind == tree.Object && !value {
			key := tree.Unquote(n.Keys[i])
			within = key == "default" || key == "enum" && k.Kind == tree.Array
			if key == "properties" && k.Kind == tree.Object {
				for _, p := range k.Kids { // whatever they are called
					settle(p, false)
				}
				continue
			}
		}
		settle(k, within)
	}
}
