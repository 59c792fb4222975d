package expression

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"

	"github.com/google/cel-go/common/types"

	"github.com/espalier-dev/espalier/conformance/tree"
)

// A Bound is a schema with a rule whose estimated cost depends on one bound.
type Bound struct {
	root, field *shape
	// Keyword is the bound: maxItems, maxLength or maxProperties.
	Keyword string
}

// NewBound makes the schema of a seed.
func NewBound(seed uint64) *Bound {
	g := &generator{Rand: rand.New(rand.NewPCG(seed, 0x626f756e64))}
	text := &shape{kind: "string", most: 10 + g.IntN(20), format: g.of("", "", "", "byte")}
	b := &Bound{}
	switch seed % 3 {
	case 0:
		b.field, b.Keyword = &shape{kind: "array", items: text, list: g.of("", "atomic", "set")}, "maxItems"
		if g.one(3) {
			b.field.items = &shape{kind: "object", fields: []field{{"a", text, true}, {"b", &shape{kind: "integer"}, false}}}
			b.field.list = ""
			if g.one(2) {
				b.field.list, b.field.keys = "map", []string{"a"}
			}
		}
	case 1:
		b.field, b.Keyword = text, "maxLength"
	default:
		b.field, b.Keyword = &shape{kind: "object", values: text}, "maxProperties"
	}
	holder := &shape{kind: "object", fields: []field{{"f", b.field, true}}}
	b.root = &shape{kind: "object", fields: []field{{"f", holder, true}}}
	if g.one(3) { // the cost of a rule of items is multiplied
		b.root.fields[0].shape = &shape{kind: "array", items: holder, most: 1 + g.IntN(20)}
	}
	b.root.place(atRoot, "", "")
	g.types = map[string]*shape{}
	g.declare(b.root, "self", true)
	var sites []*shape
	b.root.each(func(s *shape) { sites = append(sites, s) })
	s := holder
	if g.one(2) {
		s = sites[g.IntN(len(sites))]
	}
	g.fine = true
	r := g.rule(s, 0, nil)
	if r.Old && !Correlated(s.site) {
		r.OptionalOldSelf = ""
	}
	// Most rules cost the more, the larger the field is.
	g.scope, g.fine = []variable{{"self", holder.cel}}, true
	r.Text = g.scaled("self.f", b.field, r.Text, s == holder)
	s.rules = append(s.rules, r)
	return b
}

// scaled adds a loop or a comparison over the field.
func (g *generator) scaled(path string, f *shape, text string, visible bool) string {
	if !visible {
		return text
	}
	var more string
	switch f.kind {
	case "string":
		more = path + g.of(" == ", " != ", " < ") + path
		if f.format == "" && g.one(2) {
			more = path + g.of(".contains(", ".startsWith(", ".matches(") + path + ")"
		}
	default:
		x, y := "x", "y"
		inner := g.body(types.BoolType, 2, variable{x, (&source{"", f.items != nil, types.StringType, element(f)}).single()})
		more = path + ".all(" + x + ", " + inner + ")"
		if g.one(2) {
			more = path + ".all(" + x + ", " + path + ".exists(" + y + ", " + x + " == " + y + "))"
		}
	}
	return "(" + text + ") || (" + more + ")"
}

func element(f *shape) *types.Type {
	if f.items != nil {
		return f.items.cel
	}
	return f.values.cel
}

// Schema is the schema with a bound.
func (b *Bound) Schema(n int) []byte {
	b.field.most = n
	return b.root.JSON().Bytes()
}

// A Budget is a schema whose rules cost the more, the larger an object is.
type Budget struct {
	Schema []byte
	// What names the budget that is exceeded first: of a call, of all rules, or of a message.
	What string
	// Old says that the rules are about the old object.
	Old    bool
	kind   string
	repeat string
	// Most is the largest size to try.
	Most int
}

// NewBudget makes the schema of a seed.
func NewBudget(seed uint64) *Budget {
	g := &generator{Rand: rand.New(rand.NewPCG(seed, 0x627564676574)), fine: true}
	kinds := []string{"string", "strings", "integers", "set", "map", "objects"}
	b := &Budget{What: []string{"call", "total", "message"}[seed%3], Old: seed/3%3 == 0, kind: kinds[seed/9%uint64(len(kinds))], Most: 3000}
	if b.What == "total" {
		// The budget of all rules is ten million, and takes half a minute to spend on elements of lists. Characters cost
		// a tenth each and are read at once.
		b.kind = "string"
	}
	text := &shape{kind: "string"}
	var f *shape
	switch b.kind {
	case "string":
		f, b.Most = text, 100_000
		if b.What == "total" { // charAt costs 1, however long the string is that it reads
			b.Most = 20_000
		}
		b.repeat = g.of("a", "ab", "é", "a-", "1")
	case "strings":
		f = &shape{kind: "array", items: text}
	case "integers":
		f = &shape{kind: "array", items: &shape{kind: "integer"}}
	case "set":
		f = &shape{kind: "array", items: text, list: "set"}
	case "map":
		f = &shape{kind: "object", values: text}
	default:
		f = &shape{kind: "array", items: &shape{kind: "object", fields: []field{{"a", text, true}}}, list: "map", keys: []string{"a"}}
	}
	holder := &shape{kind: "object", fields: []field{{"f", f, true}}}
	root := &shape{kind: "object", fields: []field{{"f", holder, true}}}
	root.place(atRoot, "", "")
	g.types = map[string]*shape{}
	g.declare(root, "self", true)
	self := "self"
	if b.Old {
		self = "oldSelf"
	}
	body := g.heavy(self+".f", f)
	switch b.What {
	case "call":
		holder.rules = []*Rule{{Text: body}}
	case "total":
		for i := range 30 {
			holder.rules = append(holder.rules, &Rule{Text: fmt.Sprintf("%d == %d && ", i, i) + body})
		}
	default:
		holder.rules = []*Rule{{Text: "self == null", Message: "no", MessageExpression: "(" + body + ") ? 'a' : 'b'"}, {Text: "true"}}
		if b.Old {
			holder.rules[0].Text = "self == oldSelf && false"
		}
	}
	b.Schema = root.JSON().Bytes()
	return b
}

// heavy makes an expression that reads a field several hundred times. Its parts are not skipped: each is beside true.
func (g *generator) heavy(path string, f *shape) string {
	g.scope = []variable{{path, f.cel}, {path, f.cel}, {path, f.cel}}
	var parts []string
	for range 1 + g.IntN(3) {
		parts = append(parts, "("+g.heavyPart(path, f)+" || true)")
	}
	numbers := "[" + strings.TrimSuffix(strings.Repeat("1, ", 20), ", ") + "]"
	return numbers + ".all(i, " + numbers + ".all(j, " + strings.Join(parts, " && ") + "))"
}

func (g *generator) heavyPart(path string, f *shape) string {
	if g.one(3) {
		var text string
		g.with([]variable{{"i", types.IntType}}, true, func() { text = g.expr(types.BoolType, 2) })
		return text
	}
	var fit []*signature
	all := library()
	for i := range all {
		if len(all[i].args) > 0 && all[i].function != "_?_:_" && all[i].args[0].Kind() == f.cel.Kind() && unify(all[i].args[0], f.cel, bindings{}) {
			fit = append(fit, &all[i])
		}
	}
	s := fit[g.IntN(len(fit))]
	b := bindings{}
	unify(s.args[0], f.cel, b)
	args := []string{path}
	for i, a := range s.args[1:] {
		t := b.apply(a, g.plain)
		if text, ok := g.special(s, i+1, args); ok && text != "" {
			args = append(args, text)
			continue
		}
		args = append(args, g.leaf(t))
	}
	text := render(s, args)
	t := b.apply(s.result, g.plain)
	if t == types.BoolType {
		return text
	}
	return "(" + text + " == " + g.leaf(t) + ")"
}

// Object makes an object of a size.
func (b *Budget) Object(n int) []byte {
	f := tree.Arr()
	switch b.kind {
	case "string":
		f = tree.Str(strings.Repeat(b.repeat, n))
	case "map":
		f = tree.Obj()
		for i := range n {
			f.Add("k"+strconv.Itoa(i), tree.Str("a"))
		}
	default:
		for i := range n {
			item := tree.Str("a" + strconv.Itoa(i))
			switch b.kind {
			case "integers":
				item = tree.Lit(strconv.Itoa(i))
			case "objects":
				item = tree.Obj()
				item.Add("a", tree.Str("a"+strconv.Itoa(i)))
			}
			f.Kids = append(f.Kids, item)
		}
	}
	holder, root := tree.Obj(), tree.Obj()
	holder.Add("f", f)
	root.Add("f", holder)
	return root.Bytes()
}
