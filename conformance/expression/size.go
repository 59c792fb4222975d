package expression

import (
	"math/rand/v2"
	"strconv"

	"github.com/espalier-dev/espalier/conformance/tree"
)

// listsPerSize is how many lists and maps a schema of Size has.
const listsPerSize = 6

// Size makes a schema of lists and maps without a bound, with rules of theirs and of what is in them. How many elements
// a request has room for, and with that the cost of every rule, depends on the smallest size of an element.
func Size(seed uint64) []byte {
	g := &generator{Rand: rand.New(rand.NewPCG(seed, 0x73697a65))}
	root := &shape{kind: "object"}
	for i := range listsPerSize {
		element := g.element(2)
		list := &shape{kind: "array", items: element, most: g.seldom(20)}
		body := "self.all(x, x == x)"
		if g.one(3) {
			list = &shape{kind: "object", values: element, most: g.seldom(20)}
			body = "self.all(k, self[k] == self[k])"
		}
		list.rules = []*Rule{{Text: g.of("true", "self == self", "self.size() > 0", body)}}
		element.rules = []*Rule{{Text: g.of("true", "self == self")}}
		if len(element.fields) > 0 && g.one(2) {
			element.fields[0].shape.rules = []*Rule{{Text: "self == self"}}
		}
		if g.one(4) {
			list = &shape{kind: "array", items: list}
		}
		root.fields = append(root.fields, field{"f" + strconv.Itoa(i), list, g.one(2)})
	}
	return root.JSON().Bytes()
}

// seldom is a bound once in six times.
func (g *generator) seldom(n int) int {
	if g.one(6) {
		return 1 + g.IntN(n)
	}
	return 0
}

// element is a value of any type, with and without a bound, with and without a default.
func (g *generator) element(depth int) *shape {
	s := g.scalar()
	switch n := g.IntN(8); {
	case depth > 0 && n < 3:
		s = &shape{kind: "object", embedded: g.one(6)}
		for i := range 1 + g.IntN(3) {
			s.fields = append(s.fields, field{"a" + strconv.Itoa(i*i*i), g.element(depth - 1), !g.one(3)})
		}
		if s.embedded {
			s.preserve = g.one(2)
		}
	case depth > 0 && n == 3:
		s = &shape{kind: "array", items: g.element(depth - 1)}
	case depth > 0 && n == 4:
		s = &shape{kind: "object", values: g.element(depth - 1)}
	}
	s.most, s.nullable = g.seldom(30), g.one(6)
	if s.kind == "object" && s.values == nil || s.kind == "integer" || s.kind == "number" || s.kind == "boolean" {
		s.most = 0
	}
	if g.one(5) {
		s.fallback = fallbacks[s.kind+" "+s.format]
		s.most = 0 // which it could exceed
	}
	return s
}

// fallbacks are defaults by type and format.
var fallbacks = map[string]*tree.Node{
	"string ": tree.Must(`"x"`), "string date": tree.Must(`"2024-01-02"`), "string date-time": tree.Must(`"2024-01-02T03:04:05Z"`), "string duration": tree.Must(`"1s"`),
	"string byte": tree.Must(`"eA=="`), "integer ": tree.Must(`1`), "integer int32": tree.Must(`1`), "number ": tree.Must(`1.5`), "boolean ": tree.Must(`true`),
	"array ": tree.Must(`[]`), "int-or-string ": tree.Must(`1`),
}
