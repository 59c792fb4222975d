package grammar

import (
	"strings"

	"github.com/espalier-dev/espalier/conformance/tree"
)

// An oddity rewrites an object so that it says the same in another way, nearly the same, or nothing at all.
type oddity struct {
	name    string
	rewrite func(d *Dice, object string) string
}

// Oddities are their names.
var Oddities = func() []string {
	list := make([]string, len(oddities))
	for i, o := range oddities {
		list[i] = o.name
	}
	return list
}()

var oddities = []oddity{
	{"white space", func(d *Dice, s string) string { return " \t\r\n" + spaced(d, s) + "\n \r\t" }},
	{"other white space", func(d *Dice, s string) string {
		at := d.of([]string{"\v", "\f", "\u00a0", "\u2028", "\x00", "\x1c", "\u3000"})
		if d.one(2) {
			return at + s
		}
		return s[:1] + at + s[1:]
	}},
	{"escaped keys", func(d *Dice, s string) string {
		return edited(s, func(n *tree.Node) {
			for i, key := range n.Keys {
				n.Keys[i] = respelled(key)[1]
			}
		})
	}},
	{"escaped strings", func(d *Dice, s string) string {
		return edited(s, func(n *tree.Node) {
			if n.Kind == tree.Scalar && strings.HasPrefix(n.Raw, `"`) {
				n.Raw = respelled(n.Raw)[1]
			}
		})
	}},
	{"key order", func(d *Dice, s string) string {
		return edited(s, func(n *tree.Node) {
			for i := len(n.Keys) - 1; i > 0; i-- {
				j := d.n(i + 1)
				n.Keys[i], n.Keys[j] = n.Keys[j], n.Keys[i]
				n.Kids[i], n.Kids[j] = n.Kids[j], n.Kids[i]
			}
		})
	}},
	{"duplicate keys, other first", func(d *Dice, s string) string { return doubled(d, s, true, false) }},
	{"duplicate keys, other last", func(d *Dice, s string) string { return doubled(d, s, false, false) }},
	{"duplicate keys, one escaped", func(d *Dice, s string) string { return doubled(d, s, d.one(2), true) }},
	{"invalid UTF-8", func(d *Dice, s string) string {
		return edited(s, func(n *tree.Node) {
			bad := d.of([]string{"\xff", "\xc0\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80", "a\xc3", "\xe2\x82", "\xf8\x88\x80\x80\x80"})
			if n.Kind == tree.Scalar && strings.HasPrefix(n.Raw, `"`) {
				n.Raw = `"` + bad + n.Raw[1:]
			}
			if n.Kind == tree.Object && d.one(3) {
				n.Keys, n.Kids = append(n.Keys, `"`+bad+`"`), append(n.Kids, tree.Lit("1"))
				n.Keys, n.Kids = append(n.Keys, `"`+d.of([]string{"\ufffd", `\ufffd`, `\ud800`, bad})+`"`), append(n.Kids, tree.Lit("2"))
			}
		})
	}},
	{"lone surrogates", func(d *Dice, s string) string {
		return edited(s, func(n *tree.Node) {
			if n.Kind == tree.Scalar && strings.HasPrefix(n.Raw, `"`) {
				n.Raw = `"` + d.of([]string{`\ud800`, `\udc00`, `\ud800\ud800\udc00`, `\udc00\ud800`, `\ud83d`, `\uD83D\u0041`}) + n.Raw[1:]
			}
			if n.Kind == tree.Object && d.one(3) {
				n.Keys, n.Kids = append(n.Keys, `"`+d.of([]string{`\ud800`, `\udc00x`})+`"`), append(n.Kids, tree.Lit("1"))
			}
		})
	}},
	{"number forms", func(d *Dice, s string) string {
		return edited(s, func(n *tree.Node) {
			if n.Kind == tree.Scalar && isNumber(n.Raw) {
				n.Raw = d.of(rewritten(n.Raw))
			}
		})
	}},
	{"other keys", func(d *Dice, s string) string {
		return edited(s, func(n *tree.Node) {
			if n.Kind == tree.Object {
				n.Keys, n.Kids = append(n.Keys, d.of([]string{`""`, `"\u0000"`, `"a.b"`, `"a\"b"`, `"<&>"`, `"\u2028"`, `"\/"`, "\"\x7f\"", `"F"`, `"ｆ"`})), append(n.Kids, tree.Lit(d.of(scalars)))
			}
		})
	}},
	{"BOM", func(_ *Dice, s string) string { return "\xef\xbb\xbf" + s }},
	{"trailing bytes", func(d *Dice, s string) string {
		return s + d.of([]string{"}", "{}", ",", "\x00", "null", "x", "]", "\v", "\n{}", "//", "\xef\xbb\xbf", "1"})
	}},
	{"control characters", func(d *Dice, s string) string {
		return edited(s, func(n *tree.Node) {
			if n.Kind == tree.Object {
				n.Keys, n.Kids = append(n.Keys, `"z"`), append(n.Kids, tree.Lit(`"`+d.of([]string{"\n", "\t", "\x00", "\x1f", "\x7f", "\r"})+`"`))
			}
		})
	}},
	{"broken literals", func(d *Dice, s string) string {
		bad := d.of([]string{"01", "-01", ".5", "1.", "+1", "1e", "1e+", "-", "NaN", "Infinity", "-Infinity", "0x1", "1_0", "True", "nul", "nulll", "undefined", "'a'", `"\x41"`, `"\u12g4"`, `"\`, `"`, "", "1 2", `"\ud8"`, "--1", "1.e1", "00", "-"})
		return strings.TrimSuffix(s, "}") + comma(s) + `"z":` + bad + "}"
	}},
	{"broken structure", func(d *Dice, s string) string {
		at := d.n(len(s))
		switch d.n(5) {
		case 0:
			return s[:at]
		case 1:
			return s[:at] + s[at+1:]
		case 2:
			return s[:at] + d.of([]string{",", ":", "{", "}", "[", "]", `"`, "\\", "/**/", "//\n"}) + s[at:]
		case 3:
			return strings.TrimSuffix(s, "}") + ",}"
		}
		return strings.Replace(s, `":`, d.of([]string{`"`, `"=`, `"::`, `" 1:`}), 1)
	}},
	{"no object", func(d *Dice, _ string) string {
		return d.of([]string{"", " ", "null", "[]", "1", `"x"`, "true", "[{}]", "{", "\x00", "nul", "{}{}", "-0", "\xef\xbb\xbf", "\xef\xbb\xbf{}"})
	}},
	{"deep", func(d *Dice, s string) string {
		k := 30 + d.n(200)
		if d.one(20) {
			k = 9995 + d.n(10)
		}
		return strings.TrimSuffix(s, "}") + comma(s) + `"f":` + strings.Repeat("[", k) + strings.Repeat("]", k) + "}"
	}},
}

func comma(s string) string {
	if s == "{}" {
		return ""
	}
	return ","
}

// Odd rewrites an object with the i-th oddity.
func (d *Dice) Odd(i int, object string) string { return oddities[i].rewrite(d, object) }

// spaced puts white space between all tokens.
func spaced(d *Dice, s string) string {
	var b strings.Builder
	inside := false
	for i := 0; i < len(s); i++ {
		c := s[i]
		if inside {
			b.WriteByte(c)
			if c == '\\' && i+1 < len(s) {
				i++
				b.WriteByte(s[i])
			} else if c == '"' {
				inside = false
			}
			continue
		}
		if c == '"' {
			inside = true
		}
		if strings.IndexByte("{}[],:", c) >= 0 {
			b.WriteString(d.of([]string{"", " ", "\n", "\t", "\r\n"}))
			b.WriteByte(c)
			b.WriteString(d.of([]string{"", " ", "\n", "\t", "\r\n"}))
			continue
		}
		b.WriteByte(c)
	}
	return b.String()
}

// edited applies an edit to every value of an object.
func edited(s string, edit func(n *tree.Node)) string {
	root, err := tree.Parse([]byte(s))
	if err != nil {
		return s
	}
	var walk func(n *tree.Node)
	walk = func(n *tree.Node) {
		for _, k := range n.Kids {
			walk(k)
		}
		edit(n)
	}
	walk(root)
	return textOf(root)
}

// doubled repeats a member of every object, with another value.
func doubled(d *Dice, s string, first, escaped bool) string {
	return edited(s, func(n *tree.Node) {
		if n.Kind != tree.Object || len(n.Keys) == 0 {
			return
		}
		i := d.n(len(n.Keys))
		key, kid := n.Keys[i], tree.Lit(d.of(scalars))
		if d.one(2) {
			kid = n.Kids[d.n(len(n.Kids))]
		}
		if escaped {
			key = respelled(key)[1]
		}
		if first {
			n.Keys, n.Kids = append([]string{key}, n.Keys...), append([]*tree.Node{kid}, n.Kids...)
		} else {
			n.Keys, n.Kids = append(n.Keys, key), append(n.Kids, kid)
		}
	})
}
