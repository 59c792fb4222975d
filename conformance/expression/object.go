package expression

import (
	"math/rand/v2"
	"unicode/utf8"

	"github.com/espalier-dev/espalier/conformance/tree"
)

// A gardener makes objects.
type gardener struct {
	*rand.Rand
	wide bool // lists and maps are as long as they may be
}

func newGardener(seed uint64) *gardener {
	r := rand.New(rand.NewPCG(seed, 0x6f626a656374))
	return &gardener{Rand: r, wide: r.IntN(12) == 0}
}

func (g *gardener) one(n int) bool            { return g.IntN(n) == 0 }
func (g *gardener) pick(list []string) string { return list[g.IntN(len(list))] }
func (g *gardener) of(list ...string) string  { return g.pick(list) }
func (g *gardener) text() string              { return g.pick(texts[g.IntN(len(texts))]) }
func (g *gardener) count(most, usual int) int { return g.upTo(most, g.IntN(usual+1)) }
func (g *gardener) upTo(most, n int) int {
	if g.wide {
		n += 3
	}
	if most > 0 && !g.one(60) {
		n = min(n, most)
	}
	return n
}

// Object makes an object. Most are valid apart from the rules, because other errors keep rules from being evaluated.
func (c *Case) Object(seed uint64) []byte {
	g := newGardener(seed)
	n := g.value(c.root)
	g.resource(n)
	return n.Bytes()
}

func (g *gardener) resource(n *tree.Node) {
	n.Set("apiVersion", tree.Str("orchard.example/v1"))
	n.Set("kind", tree.Str(g.of("Tree", "a", "apple")))
	meta := tree.Obj()
	meta.Set("name", tree.Str(g.of("a", "b", "apple", "pear-tree")))
	if g.one(3) {
		meta.Set("generateName", tree.Str("a"))
	}
	n.Set("metadata", meta)
}

// Numbers that JSON can write.
var decimals = []string{"0", "1", "2.5", "-1.5", "1000", "1e308", "0.1", "3", "9223372036854775807", "1e-320", "-0"}

func (g *gardener) value(s *shape) *tree.Node {
	if s.nullable && g.one(10) {
		return tree.Lit("null")
	}
	switch s.kind {
	case "string":
		return tree.Str(g.string(s))
	case "integer":
		if s.format == "int32" || g.one(2) {
			return tree.Lit(g.of("0", "1", "2", "3", "-1"))
		}
		return tree.Lit(g.pick(ints))
	case "number":
		return tree.Lit(g.pick(decimals))
	case "boolean":
		return tree.Lit(g.of("true", "false"))
	case "int-or-string":
		if g.one(2) {
			return tree.Lit(g.pick(ints))
		}
		return tree.Str(g.fitting(s.most, g.text()))
	case "array":
		return g.list(s)
	}
	n := tree.Obj()
	if s.values != nil {
		for range g.count(s.most, 2) {
			if k := g.pick(keys); n.Get(k) == nil {
				n.Add(k, g.value(s.values))
			}
		}
		return n
	}
	if s.embedded {
		g.resource(n)
	}
	for _, f := range s.fields {
		if f.required && !g.one(200) || !g.one(5) {
			n.Set(f.name, g.value(f.shape))
		}
	}
	if s.preserve && g.one(3) {
		n.Set("unknown", tree.Lit(g.of("1", "{}", `"x"`, "[null]")))
	}
	return n
}

func (g *gardener) string(s *shape) string {
	switch s.format {
	case "date":
		return g.of("2024-01-01", "2024-02-29", "1970-01-01", "0001-01-01", "9999-12-31")
	case "date-time":
		return g.pick(moments)
	case "duration":
		return g.of("1s", "1h", "90m", "0s", "1ms", "24h", "1h2m3.5s", "1 day", "3 weeks")
	case "byte":
		return g.fitting(s.most, g.of("QUJD", "", "YQ==", "YXBwbGU=", "/w=="))
	}
	return g.fitting(s.most, g.text())
}

// fitting cuts a text to its greatest length.
func (g *gardener) fitting(most int, text string) string {
	if most == 0 || g.one(200) || utf8.RuneCountInString(text) <= most {
		return text
	}
	return string([]rune(text)[:most])
}

func (g *gardener) list(s *shape) *tree.Node {
	n := tree.Arr()
	seen := map[string]bool{}
	for range g.count(s.most, 3) {
		item := g.value(s.items)
		key := string(item.Bytes())
		if s.list == "map" {
			key = g.identity(s, item)
		}
		if seen[key] && s.list != "" && s.list != "atomic" && !g.one(100) {
			continue
		}
		seen[key] = true
		n.Kids = append(n.Kids, item)
	}
	if s.list == "" && len(n.Kids) > 0 && g.one(4) && (s.most == 0 || len(n.Kids) < s.most) {
		n.Kids = append(n.Kids, n.Kids[0])
	}
	return n
}

func (g *gardener) identity(s *shape, item *tree.Node) string {
	key := ""
	for _, k := range s.keys {
		if v := item.Get(k); v != nil {
			key += v.Raw
		}
		key += "|"
	}
	return key
}

// Change makes an object that differs in some places, or in none.
func (c *Case) Change(object []byte, seed uint64) []byte {
	g := newGardener(seed)
	n, err := tree.Parse(object)
	if err != nil {
		return object
	}
	for range g.IntN(4) {
		g.change(c.root, n)
	}
	return n.Bytes()
}

// change replaces, drops, adds or moves something below a value.
func (g *gardener) change(s *shape, n *tree.Node) {
	switch {
	case n.Kind == tree.Array && s.items != nil:
		g.changeList(s, n)
	case n.Kind == tree.Object && s.values != nil:
		switch {
		case len(n.Kids) == 0 || g.one(4):
			n.Set(g.pick(keys), g.value(s.values))
		case g.one(4):
			n.Cut(g.IntN(len(n.Kids)))
		default:
			i := g.IntN(len(n.Kids))
			n.Kids[i] = g.changed(s.values, n.Kids[i])
		}
	case n.Kind == tree.Object && len(s.fields) > 0:
		f := s.fields[g.IntN(len(s.fields))]
		i := n.Find(f.name)
		switch {
		case i < 0:
			n.Set(f.name, g.value(f.shape))
		case !f.required && g.one(6):
			n.Cut(i)
		default:
			n.Kids[i] = g.changed(f.shape, n.Kids[i])
		}
	}
}

func (g *gardener) changed(s *shape, n *tree.Node) *tree.Node {
	if n.Kind == tree.Scalar || g.one(4) {
		return g.value(s)
	}
	g.change(s, n)
	return n
}

func (g *gardener) changeList(s *shape, n *tree.Node) {
	switch k := len(n.Kids); {
	case k == 0 || g.one(5):
		n.Kids = append(n.Kids, g.list(s).Kids...)
		if s.most > 0 && len(n.Kids) > s.most {
			n.Kids = n.Kids[:s.most]
		}
		n.Kids = g.distinct(s, n.Kids)
	case g.one(4):
		n.Kids = append(n.Kids[1:k:k], n.Kids[0]) // only the order
	case g.one(4):
		n.Cut(g.IntN(k))
	default:
		i := g.IntN(k)
		n.Kids[i] = g.changed(s.items, n.Kids[i])
		n.Kids = g.distinct(s, n.Kids)
	}
}

// distinct drops items that a list has already, where they are not allowed.
func (g *gardener) distinct(s *shape, items []*tree.Node) []*tree.Node {
	if s.list == "" || s.list == "atomic" {
		return items
	}
	seen := map[string]bool{}
	var list []*tree.Node
	for _, item := range items {
		key := string(item.Bytes())
		if s.list == "map" {
			key = g.identity(s, item)
		}
		if !seen[key] {
			list = append(list, item)
		}
		seen[key] = true
	}
	return list
}
