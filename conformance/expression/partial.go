package expression

import "strings"

// partial makes a macro over numbers for which its body is true, false and an error: 1, 2 and 0. What comes of it shows
// when the macro stops and which errors it ignores.
func (g *generator) partial() string {
	numbers := make([]string, 2+g.IntN(4))
	for i := range numbers {
		numbers[i] = g.of("0", "1", "1", "2")
	}
	g.use("list literal")
	g.use("divide_int64")
	list := "[" + strings.Join(numbers, ", ") + "]"
	body := g.of("1 / x == 1", "1 / x > 0", "[true][x - 1]", "{1: true, 2: false}[x]", "x == 1 || 1 / x == 1", "1 / x == 1 && x > 0", "(x == 2 ? false : 1 / x == 1)", "!(1 / x == 0)")
	switch g.IntN(8) {
	case 0, 1:
		g.use("macro exists_one")
		return list + ".exists_one(x, " + body + ")"
	case 2:
		g.use("macro all")
		return list + ".all(x, " + body + ")"
	case 3:
		g.use("macro exists")
		return list + ".exists(x, " + body + ")"
	case 4:
		name := g.of("all", "exists", "existsOne", "exists_one")
		g.use("macro " + name + " of pairs")
		return list + "." + name + "(i, x, " + body + ")"
	case 5:
		g.use("macro filter")
		return "(" + list + ".filter(x, " + body + ").size() == " + g.of("0", "1", "2") + ")"
	case 6:
		g.use("macro map filtered")
		return "(" + list + ".map(x, " + body + ", 4 / x).size() == " + g.of("0", "1", "2") + ")"
	}
	g.use("macro transformList filtered")
	return "(" + list + ".transformList(i, x, " + body + ", 4 / x).size() == " + g.of("0", "1", "2") + ")"
}
