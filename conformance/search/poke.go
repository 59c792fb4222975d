package search

import (
	"math/rand/v2"
	"strconv"
	"strings"

	"github.com/espalier-dev/espalier/conformance/tree"
)

// Poke changes one or two values of an object a little: what schemas tell apart is often no more than that. Metadata
// stays.
func Poke(object []byte, seed uint64) []byte {
	root, err := tree.Parse(object)
	if err != nil || root.Kind != tree.Object {
		return object
	}
	e := &editor{Rand: rand.New(rand.NewPCG(seed, 0x706f6b65)), root: root}
	var all []*tree.Node
	for i, key := range root.Keys {
		switch tree.Unquote(key) {
		case "apiVersion", "kind", "metadata":
		default:
			all = within(all, root.Kids[i])
		}
	}
	if len(all) == 0 {
		return object
	}
	for range 1 + e.IntN(2) {
		e.poke(all[e.IntN(len(all))])
	}
	return root.Bytes()
}

func within(all []*tree.Node, n *tree.Node) []*tree.Node {
	all = append(all, n)
	for _, k := range n.Kids {
		all = within(all, k)
	}
	return all
}

func (e *editor) poke(n *tree.Node) {
	if e.one(8) {
		*n = *tree.Lit("null")
		return
	}
	switch n.Kind {
	case tree.Array:
		if len(n.Kids) == 0 {
			return
		}
		i, item := e.kid(n)
		if e.one(3) {
			n.Cut(i)
			return
		}
		twin := item.Clone()
		if twin.Kind == tree.Object && len(twin.Kids) > 0 && e.one(2) {
			_, field := e.kid(twin)
			e.poke(field)
		}
		n.Kids = append(n.Kids, twin)
	case tree.Object:
		if len(n.Kids) > 0 && e.one(2) {
			n.Cut(e.IntN(len(n.Kids)))
		} else {
			n.Set(e.choose("apple", "novel", "name", "a"), e.node(`"x"`, `1`, `{"a":1}`, `["b"]`, `null`))
		}
	default:
		e.pokeScalar(n)
	}
}

func (e *editor) pokeScalar(n *tree.Node) {
	if text := n.Text(); text != "" || n.Is(`""`) {
		cut := e.IntN(len(text) + 1)
		*n = *tree.Str([]string{
			"", text + e.choose("x", "A", "0", "-", " ", "é"), e.choose("x", "A", "0", "-", " ") + text, strings.ToUpper(text), text[cut:], text[:cut],
			e.choose("quince", "a", "apple", "pear", "z", "2024-01-01", "10"),
		}[e.IntN(7)])
		return
	}
	if f, err := strconv.ParseFloat(n.Raw, 64); err == nil {
		f += []float64{1, -1, 0.5, -0.5, 2, -2, 1e10, -f}[e.IntN(8)]
		*n = *tree.Lit(strconv.FormatFloat(f, 'f', -1, 64))
		return
	}
	*n = *tree.Lit(e.choose("true", "false"))
}
