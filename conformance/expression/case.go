package expression

import "math/rand/v2"

// A Case is a schema with rules.
type Case struct {
	Schema []byte
	Rules  []*Rule
	root   *shape
	seed   uint64
}

// rulesPerCase bounds the rules of one schema: every rule after the first shares the cost of compiling it.
const rulesPerCase = 8

// New makes the case of a seed.
func New(seed uint64) *Case {
	g := &generator{Rand: rand.New(rand.NewPCG(seed, 0x63656c))}
	c := &Case{root: g.schema(), seed: seed}
	var sites []*shape
	c.root.each(func(s *shape) { sites = append(sites, s) })
	all := library()
	seen := map[string]bool{}
	for i := range rulesPerCase {
		s := sites[g.IntN(len(sites))]
		if s.cel == nil {
			continue
		}
		r := g.rule(s, i, &all[(seed*rulesPerCase+uint64(i))%uint64(len(all))])
		if seen[s.path+" "+r.Text] { // a list map with a key twice
			continue
		}
		seen[s.path+" "+r.Text] = true
		s.rules = append(s.rules, r)
		c.Rules = append(c.Rules, r)
	}
	c.Schema = c.root.JSON().Bytes()
	return c
}

// Twin is the schema with another fieldPath, reason or message in some rules: what a process knows of the one must not
// show in what it says about the other.
func (c *Case) Twin() []byte {
	g := &generator{Rand: rand.New(rand.NewPCG(c.seed, 0x7477696e))}
	c.root.each(func(s *shape) {
		for _, r := range s.rules {
			switch g.IntN(4) {
			case 0:
				r.FieldPath = g.fieldPath(s)
			case 1:
				r.Reason = g.of("", "FieldValueForbidden", "FieldValueRequired", "FieldValueDuplicate")
			case 2:
				r.Message = "another message"
			}
		}
	})
	return c.root.JSON().Bytes()
}
