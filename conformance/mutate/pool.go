package mutate

import (
	"math/rand/v2"

	"github.com/espalier-dev/espalier/conformance/tree"
)

// Sizes of the parts that become roots, in JSON nodes. Small ones keep runs fast and reproducers readable.
const (
	minNodes = 6
	maxNodes = 260
)

// A Pool holds the parts of real schemas that mutants grow from.
type Pool struct {
	names []string
	parts [][]byte
}

// Add cuts up to n parts out of a schema and puts them into the pool. Which ones depends on the schema only.
func (p *Pool) Add(name string, schema []byte, n int) error {
	root, err := tree.Parse(schema)
	if err != nil {
		return err
	}
	var found []*tree.Node
	collectRoots(root, &found)
	r := rand.New(rand.NewPCG(uint64(len(schema)), uint64(len(found))))
	for range min(n, len(found)) {
		i := r.IntN(len(found))
		p.names = append(p.names, name)
		p.parts = append(p.parts, found[i].Bytes())
		found[i] = found[len(found)-1]
		found = found[:len(found)-1]
	}
	return nil
}

// Len is the number of parts.
func (p *Pool) Len() int { return len(p.parts) }

// collectRoots finds the schemas of objects with properties that are neither too small nor too large. It returns the
// size of n so that sizes are counted once.
func collectRoots(n *tree.Node, out *[]*tree.Node) int {
	size := 1
	for _, k := range n.Kids {
		size += collectRoots(k, out)
	}
	if size >= minNodes && size <= maxNodes && n.Get("type").Text() == "object" {
		if props := n.Get("properties"); props != nil && props.Kind == tree.Object && len(props.Kids) > 0 {
			*out = append(*out, n)
		}
	}
	return size
}

// A Mutant is a schema and how it came about.
type Mutant struct {
	Schema  []byte
	Status  bool // check it as the schema of a CRD with the status subresource
	Base    string
	Applied []string // names of mutations
}

// Make grows the mutant of a seed.
func (p *Pool) Make(seed uint64) Mutant {
	g, base := p.plant(seed, 0x657370616c696572)
	g.prepare()
	m := Mutant{Base: base, Status: g.one(4)}
	for range 1 + g.IntN(4) {
		mut := pick(g)
		sites := g.sites()
		if mut.apply(g, sites[g.IntN(len(sites))]) {
			m.Applied = append(m.Applied, mut.name)
		}
	}
	m.Schema = g.root.Bytes()
	return m
}

// plant takes a part of the pool, and returns its name. Each kind of mutants has a stream of its own.
func (p *Pool) plant(seed, stream uint64) (*gardener, string) {
	r := rand.New(rand.NewPCG(seed, stream))
	at := r.IntN(len(p.parts))
	root, err := tree.Parse(p.parts[at])
	if err != nil {
		panic(err) // Add wrote it
	}
	return &gardener{Rand: r, root: root}, p.names[at]
}

// gardener carries what mutations need: the dice and the tree.
type gardener struct {
	*rand.Rand
	root *tree.Node
}

// one is true once in n times.
func (g *gardener) one(n int) bool { return g.IntN(n) == 0 }

func (g *gardener) choose(options ...string) string { return options[g.IntN(len(options))] }

// node parses one of some JSON texts.
func (g *gardener) node(options ...string) *tree.Node { return tree.Must(g.choose(options...)) }

// prepare turns the part into a plausible root.
func (g *gardener) prepare() {
	if !g.one(4) {
		strip(g.root, "description")
	}
	if !g.one(8) {
		strip(g.root, "x-kubernetes-validations")
	}
	if !g.one(3) {
		props := g.root.Get("properties")
		for _, m := range [][2]string{{"apiVersion", "string"}, {"kind", "string"}, {"metadata", "object"}} {
			if props.Find(m[0]) < 0 {
				props.Add(m[0], tree.Must(`{"type":"`+m[1]+`"}`))
			}
		}
	}
}

// strip removes a keyword from every schema below n. Properties of that name stay.
func strip(n *tree.Node, keyword string) {
	walk(n, func(s *site) { s.n.Del(keyword) })
}

// A site is a schema within the tree.
type site struct {
	n       *tree.Node
	parent  *tree.Node // the schema above, nil at the root
	keyword string     // through which the parent reaches it
	name    string     // the property's name, if it is one
	inside  bool       // below allOf, anyOf, oneOf or not
}

// sites lists the schemas of the tree. allOf, anyOf, oneOf, not and arrays are rare, so they are listed twice to be found more often.
func (g *gardener) sites() []*site {
	var all []*site
	walk(g.root, func(s *site) {
		all = append(all, s)
		if s.inside || s.parent == nil || s.n.Get("type").Text() == "array" {
			all = append(all, s)
		}
	})
	return all
}

// walk visits every schema that is an object, the root first.
func walk(root *tree.Node, visit func(*site)) {
	var down func(s *site)
	down = func(s *site) {
		if s.n == nil || s.n.Kind != tree.Object {
			return
		}
		visit(s)
		n := s.n
		for i, raw := range n.Keys {
			key, kid := tree.Unquote(raw), n.Kids[i]
			switch key {
			case "properties", "definitions", "patternProperties":
				for j := range kid.Keys {
					down(&site{kid.Kids[j], n, key, tree.Unquote(kid.Keys[j]), s.inside})
				}
			case "items", "additionalProperties":
				down(&site{kid, n, key, "", s.inside})
			case "not":
				down(&site{kid, n, key, "", true})
			case "allOf", "anyOf", "oneOf":
				if kid.Kind == tree.Array {
					for _, k := range kid.Kids {
						down(&site{k, n, key, "", true})
					}
				}
			}
		}
	}
	down(&site{n: root})
}
