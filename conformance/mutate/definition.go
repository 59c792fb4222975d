package mutate

import (
	"math/rand/v2"

	"github.com/espalier-dev/espalier/conformance/tree"
)

// CRDs makes whole CRDs: the surroundings of real ones, around schemas that were mutated, varied or left as they
// are.
type CRDs struct {
	pool  *Pool
	names []string
	bases [][]byte
}

// NewCRDs returns a source of CRDs whose schemas come from pool.
func NewCRDs(pool *Pool) *CRDs { return &CRDs{pool: pool} }

// Add takes the surroundings of a real CRD.
func (d *CRDs) Add(name string, crd []byte) error {
	root, err := tree.Parse(crd)
	if err != nil {
		return err
	}
	for _, v := range versionsOf(root) {
		v.Del("schema")
	}
	d.names = append(d.names, name)
	d.bases = append(d.bases, root.Bytes())
	return nil
}

// Len is the number of real CRDs.
func (d *CRDs) Len() int { return len(d.bases) }

// A Change is a CRD before and after.
type Change struct {
	Old, New []byte
	Base     string
	Applied  []string // to both; then, after a bar, to the new one only
}

// Make grows the change of a seed. Three in eight have an old CRD that is most likely invalid, so that there is something
// not to hold against the new one; one in eight changes nothing.
func (d *CRDs) Make(seed uint64) Change {
	r := rand.New(rand.NewPCG(seed, 0x646566696e65))
	at := r.IntN(len(d.bases))
	root, err := tree.Parse(d.bases[at])
	if err != nil {
		panic(err) // Add wrote it
	}
	g := &definer{gardener: gardener{Rand: r, root: root}, pool: d.pool, seed: seed << 8}
	c := Change{Base: d.names[at]}
	g.plant()
	if g.one(3) {
		g.setStatus()
	}
	switch g.IntN(8) {
	case 0, 1:
		c.Applied = append(c.Applied, g.mutate(1+g.IntN(3))...)
	case 2:
		g.lax()
		c.Applied = append(c.Applied, "lax")
	}
	c.Old = root.Bytes()
	c.Applied = append(c.Applied, "|")
	if !g.one(8) {
		c.Applied = append(c.Applied, g.mutate(1+g.IntN(3))...)
	}
	c.New = root.Bytes()
	return c
}

// definer carries what mutations of CRDs need.
type definer struct {
	gardener
	pool *Pool
	seed uint64
}

func versionsOf(root *tree.Node) []*tree.Node {
	if list := root.Get("spec").Get("versions"); list != nil && list.Kind == tree.Array {
		var objects []*tree.Node
		for _, k := range list.Kids {
			if k.Kind == tree.Object {
				objects = append(objects, k)
			}
		}
		return objects
	}
	return nil
}

// schema makes a schema: mostly one that is most likely right.
func (g *definer) schema() *tree.Node {
	g.seed++
	switch g.IntN(6) {
	case 0:
		return tree.Must(string(g.pool.Make(g.seed).Schema))
	case 1:
		return tree.Must(string(g.pool.Enrich(g.seed).Schema))
	case 2:
		return tree.Must(string(g.pool.Vary(g.seed).Schema))
	}
	return g.node(
		`{"type":"object","properties":{"spec":{"type":"object","properties":{"a":{"type":"string"},"aa":{"type":"string"}},"x-kubernetes-validations":[{"rule":"!has(self.a) || self.a != 'x'","message":"no x","fieldPath":".aa","reason":"FieldValueForbidden","messageExpression":"'no ' + self.a"},{"rule":"self == oldSelf","optionalOldSelf":false,"fieldPath":".a"}]}}}`,
		`{"type":"object","properties":{"spec":{"type":"object","properties":{"replicas":{"type":"integer","default":1},"name":{"type":"string"}}},"status":{"type":"object"}}}`,
		`{"type":"object","properties":{"spec":{"type":"object","properties":{"on":{"type":"boolean"},"level":{"type":"number"},"m":{"type":"object","additionalProperties":{"type":"string"}}}}}}`,
		`{"type":"object","properties":{"metadata":{"type":"object","properties":{"name":{"type":"string"}}},"spec":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}}`,
		`{"type":"object","properties":{"spec":{"type":"object","properties":{"l":{"type":"array","maxItems":9,"items":{"type":"string","maxLength":9}}},"x-kubernetes-validations":[{"rule":"self.l.all(x, x.size() > 1)","message":"short"}]}}}`,
		`{"type":"object","properties":{"spec":{"type":"object","properties":{"l":{"type":"array","items":{"type":"string"}}},"x-kubernetes-validations":[{"rule":"self.l.all(x, self.l.all(y, self.l.all(z, x != y || y != z)))"}]}}}`,
		`{"type":"object"}`)
}

// plant gives every version a schema. Often all have the same one, or one that differs in a single value.
func (g *definer) plant() {
	same := g.schema()
	for i, v := range versionsOf(g.root) {
		s := same.Clone()
		if i > 0 {
			switch g.IntN(3) {
			case 0:
				s = g.schema()
			case 1:
				g.differ(s)
			}
		}
		v.Set("schema", tree.Obj())
		v.Get("schema").Set("openAPIV3Schema", s)
	}
}

// differ changes one value of a schema; half of the time a value of a rule, where there is one.
func (g *definer) differ(s *tree.Node) {
	leaves := leavesOf(s)
	if g.one(2) {
		var ofRules []*tree.Node
		walk(s, func(s *site) {
			if list := s.n.Get("x-kubernetes-validations"); list != nil {
				scalars(list, &ofRules)
			}
		})
		if len(ofRules) > 0 {
			leaves = ofRules
		}
	}
	if len(leaves) > 0 {
		nudge(g.Rand, leaves[g.IntN(len(leaves))])
	}
}

// lax makes an old CRD that is invalid, as if stored before a check existed: on updates, servers ratchet its errors.
func (g *definer) lax() {
	if g.one(2) {
		inSpec("preserveUnknownFields", "true")(g)
	}
	for _, v := range versionsOf(g.root) {
		v.Set("schema", tree.Must(`{"openAPIV3Schema":`+g.choose(
			`{"properties":{"a":{}}}`, `{"type":"object","properties":{"a":{"type":"strange"}}}`, `{"$schema":"x","type":"object"}`, `null`, `{"anyOf":[{"type":"object"}]}`,
			`{"type":"object","properties":{"a":{"type":"array","x-kubernetes-list-type":"set","items":{"type":"object"}}}}`,
			`{"type":"object","properties":{"a":{"type":"array","x-kubernetes-list-type":"set","items":{"type":"string","nullable":true}}}}`,
			`{"type":"object","properties":{"a":{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["k"],"items":{"type":"object","properties":{"k":{"type":"string"}}}}}}`,
			`{"type":"object","properties":{"a":{"type":"object","default":{"unknown":1}}}}`,
			`{"type":"object","properties":{"a":{"type":"object","x-kubernetes-embedded-resource":true,"x-kubernetes-preserve-unknown-fields":true,"default":{"apiVersion":"v1","kind":"K","metadata":{"name":"n","foo":1}}}}}`,
			`{"type":"object","properties":{"l":{"type":"array","items":{"type":"array","items":{"type":"string"}},"x-kubernetes-validations":[{"rule":"self.all(x, x.all(y, y != ''))"}]}}}`,
			`{"type":"object","properties":{"a":{"type":"string","format":"none-such"}}}`)+`}`))
	}
	if g.one(4) {
		perVersion("selectableFields", mutateSelectable)(g)
	}
}

// setStatus writes what servers write.
func (g *definer) setStatus() {
	status := g.node(
		`{"conditions":[{"type":"NamesAccepted","status":"True"},{"type":"Established","status":"True"}]}`,
		`{"conditions":[{"type":"Established","status":"True","lastTransitionTime":"2026-01-02T03:04:05Z"}],"observedGeneration":3}`,
		`{"conditions":[{"type":"Established","status":"False"},{"type":"Established","status":"True"}]}`, `{"conditions":[]}`)
	stored := tree.Arr()
	for _, v := range versionsOf(g.root) {
		if v.Get("storage").Is("true") || g.one(4) {
			stored.Kids = append(stored.Kids, tree.Str(v.Get("name").Text()))
		}
	}
	status.Set("storedVersions", stored)
	if names := g.root.Get("spec").Get("names"); names != nil && g.one(2) {
		status.Set("acceptedNames", names.Clone())
	}
	g.root.Set("status", status)
	merge(g.metadata(), g.node(`{"resourceVersion":"7","uid":"u-1","generation":3}`, `{"resourceVersion":"7","creationTimestamp":"2026-01-02T03:04:05Z"}`,
		`{"deletionTimestamp":"2026-01-02T03:04:05Z","finalizers":["a.b/c"]}`))
}

func (g *definer) metadata() *tree.Node { return g.root.Have("metadata", tree.Object) }

// mutate applies n mutations and returns their names.
func (g *definer) mutate(n int) (applied []string) {
	for range n {
		m := crdTable[g.IntN(len(crdTable))]
		if m.apply(g) {
			applied = append(applied, m.name)
		}
	}
	return applied
}

// Base returns a real CRD with schemas that are most likely valid, and its name.
func (d *CRDs) Base(seed uint64) (*tree.Node, string) {
	r := rand.New(rand.NewPCG(seed, 0x62617365))
	at := r.IntN(len(d.bases))
	root, err := tree.Parse(d.bases[at])
	if err != nil {
		panic(err) // Add wrote it
	}
	g := &definer{gardener: gardener{Rand: r, root: root}, pool: d.pool, seed: seed << 8}
	g.plant()
	return root, d.names[at]
}
