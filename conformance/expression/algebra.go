package expression

import (
	"strings"

	"github.com/google/cel-go/common/types"
)

// algebra makes a bool about sums and equality of lists in scope. Those of sets and of list maps are unlike those of
// other lists: order does not matter, and a sum has no item twice. Random calls of + rarely show it, because both
// operands must have the same type, and the sum must be looked at.
func (g *generator) algebra() (string, bool) {
	var fit []variable
	for _, p := range g.paths() {
		if p.t.Kind() == types.ListKind && !strings.Contains(p.name, ".?") {
			fit = append(fit, p)
		}
	}
	if len(fit) == 0 {
		return "", false
	}
	x := fit[g.IntN(len(fit))]
	if g.one(4) {
		g.use("equals")
		if g.one(2) {
			return "(" + g.addend(x) + " == " + x.name + ")", true
		}
		return "(" + x.name + " == " + g.addend(x) + ")", true
	}
	g.use("add_list")
	sum := x.name + " + " + g.addend(x)
	if g.one(3) {
		sum += " + " + g.addend(x)
	}
	sum = "(" + sum + ")"
	switch g.IntN(7) {
	case 0:
		g.use("list_size")
		return "(" + sum + ".size()" + g.of(" == ", " > ", " < ") + g.of("0", "1", "2", "3", "4", "5", x.name+".size()") + ")", true
	case 1:
		g.use("equals")
		return "(" + sum + g.of(" == ", " != ") + g.addend(x) + ")", true
	case 2:
		g.use("equals")
		return "(" + g.addend(x) + " == " + sum + ")", true
	case 3:
		g.use("equals")
		return "(" + sum + " == (" + g.addend(x) + " + " + x.name + "))", true
	case 4:
		g.use("macro exists_one")
		return sum + ".exists_one(x, x == " + sum + "[" + g.of("0", "1", "2") + "])", true
	case 5:
		g.use("in_list")
		return "([" + sum + "] == [" + g.addend(x) + "] || " + sum + " in [" + g.addend(x) + "])", true
	}
	g.use("not_equals")
	return "(" + sum + "[" + g.of("0", "1", "size("+sum+") - 1") + "] != " + sum + "[0])", true
}

// addend makes a list of the type of another: the list itself, one of its changes, or a literal with duplicates.
func (g *generator) addend(x variable) string {
	item := x.t.Parameters()[0]
	if old, ok := g.before(x); ok && g.one(2) {
		return g.of(old, "("+old+" + "+old+".filter(y, true))", "["+old+"[0], "+old+"[0]]", old+".map(y, "+old+"[0])", "["+old+"[0]] + "+x.name)
	}
	switch g.IntN(13) {
	case 8:
		return "[" + x.name + "[0], " + x.name + "[0]]"
	case 9, 10: // as long as the list, and without some of its items
		return x.name + ".map(y, " + x.name + "[0])"
	case 0:
		return x.name
	case 1:
		return x.name + ".reverse()"
	case 2:
		return x.name + ".filter(y, " + g.of("true", "false", "y != "+x.name+"[0]", "y == "+x.name+"[0]") + ")"
	case 3:
		return x.name + ".map(y, y)"
	case 4, 5:
		if text, ok := g.literal(item, 0); ok {
			return "[" + text + ", " + text + "]"
		}
		return "[" + x.name + "[0], " + x.name + "[0]]"
	case 6, 7:
		return x.name
	}
	text, _ := g.list(types.NewListType(item), 1)
	return text
}

// before is the old value of something below self.
func (g *generator) before(x variable) (string, bool) {
	path, ok := strings.CutPrefix(x.name, "self")
	if !ok {
		return "", false
	}
	for _, v := range g.scope {
		if v.name == "oldSelf" {
			if isOptional(v.t) {
				return "oldSelf.value()" + path, true
			}
			return "oldSelf" + path, true
		}
	}
	return "", false
}
