package grammar

import (
	"regexp/syntax"
	"strconv"
	"strings"
	"unicode/utf8"
)

// broken are expressions that no RE2 accepts, or that are at its limits.
var broken = []string{
	`(?=a)`, `(?!a)`, `(?<=a)b`, `(?<!a)b`, `(a)\1`, `\k<n>`, `a{1001}`, `a{1000}`, `(a{100}){11}`, `a{2,1}`, `a{,3}`, `a**`, `a*?+`, `(`, `)`, `[`, `[]`, `[^]`, `[a`, `[b-a]`, `[[:foo:]]`, `[[:alpha:]`, `\`, `\8`, `\u0061`, `\x{110000}`, `\x{10FFFF}`, `\xZZ`, `\p{Foo}`, `\pX`, `\p{^Lu}`, `\P{Greek}`,
	`(?P<n>a)(?P<n>b)`, `(?<n>a)`, `(?P<1n>a)`, `(?z)a`, `(?i-i)a`, `(?i`, `?a`, `+`, `*`, `a|*`, `{1}`, `a{`, `a{1`, `a{1,`, `a{a}`, `\Q`, `\Qa.b\Ea`, `\E`, `\C`, `\G`, `\Z`, `\z`, `\A`, `\h`, `\cA`, `(?#c)`, `(?>a)`, `a++`, `(?|a)`, `[\d-z]`, `[a-\d]`, `[--a]`, `[]a]`, `[^]a]`, `[a-]`, `[[a]]`, `(?s-m:^.$)`, "\xff", "a\x00b", `\0`, `\07`, `\123`,
	`^$`, `$^`, `\b`, `\B`, `^*`, `$+`, `(^a)*`, `(|a)*`, `(|a)+$`, `a??$`, `(?U)a+`, `(?m)^a$`, `(?s).`, `(?-s).`, `(?i)ſ`, `(?i)K`, `(?i)[^k]`, `[^\x00-\x{10FFFF}]`, `(a?){50}a{50}`, strings.Repeat("(", 200) + "a" + strings.Repeat(")", 200), strings.Repeat("(", 1100) + "a" + strings.Repeat(")", 1100), strings.Repeat("a?", 60) + strings.Repeat("a", 60),
}

var (
	atoms = []string{
		`a`, `b`, `Z`, `0`, `-`, ` `, `é`, `€`, `🍐`, `.`, `\.`, `\*`, `\d`, `\D`, `\w`, `\W`, `\s`, `\S`, `[abc]`, `[^abc]`, `[a-z0-9]`, `[A-Z]`, `[^\d\s]`, `[[:alpha:]]`, `[[:^digit:]_]`, `[[:space:][:punct:]]`, `[[:word:]]`, `[[:xdigit:]]`, `\pL`, `\p{Lu}`, `\PN`, `\p{Greek}`, `[\p{Han}a]`, `[^\p{L}]`,
		`\x41`, `\x{1F350}`, `\n`, `\t`, `\\`, `[\]]`, `[\-a]`, `[a\-z]`, `\Qa.b\E`, `\101`, `(?i:k)`, `(?i:ß)`, `(?s:.)`, `\/`, `[é-ü]`, `[🍐-🍕]`, `[^a]`, `\x7f`, "\u2028", `[^\n]`,
	}
	quantifiers = []string{"*", "+", "?", "*?", "+?", "??", "{2}", "{0}", "{1,3}", "{2,}", "{0,2}?", "{3,3}"}
	flags       = []string{"(?i)", "(?s)", "(?m)", "(?U)", "(?im-s)", "(?-i)"}
)

// Expression is a regular expression of RE2's grammar, or one that is nearly one.
func (d *Dice) Expression() string {
	expr, _ := d.expression()
	return expr
}

func (d *Dice) expression() (string, bool) {
	if d.one(5) {
		expr := d.of(broken)
		if d.one(3) {
			expr = d.sequence(2) + expr
		}
		return expr, false
	}
	expr := d.alternatives(3)
	if d.one(2) {
		expr = "^" + expr
	}
	if d.one(2) {
		expr += "$"
	}
	if d.one(8) {
		expr = d.of(flags) + expr
	}
	return expr, true
}

func (d *Dice) alternatives(depth int) string {
	expr := d.sequence(depth)
	for d.one(4) {
		expr += "|" + d.sequence(depth)
	}
	return expr
}

func (d *Dice) sequence(depth int) string {
	var b strings.Builder
	for range 1 + d.n(4) {
		switch k := d.n(12); {
		case k == 0 && depth > 0:
			b.WriteString("(" + d.alternatives(depth-1) + ")")
		case k == 1 && depth > 0:
			b.WriteString("(?:" + d.alternatives(depth-1) + ")")
		case k == 2 && depth > 0:
			b.WriteString("(?P<n" + strconv.Itoa(d.n(1000)) + ">" + d.alternatives(depth-1) + ")")
		case k == 3:
			b.WriteString(d.of([]string{`\b`, `\B`, `^`, `$`, `\A`, `\z`, `(?m:^)`, `(?m:$)`}))
			continue
		default:
			b.WriteString(d.of(atoms))
		}
		if d.one(3) {
			b.WriteString(d.of(quantifiers))
		}
	}
	return b.String()
}

// Matches are texts that an expression matches, nearly matches, or has nothing to do with.
func (d *Dice) Matches(expr string) []string {
	list := []string{"", "\n", "a", "A", "k", "\u212a", "ſ", "a\n", "\na", "a\nb", "\ufffd", "\xff", "é", "0", " "}
	re, err := syntax.Parse(expr, syntax.Perl)
	if err != nil {
		return list
	}
	re = re.Simplify()
	for range 6 {
		var b []byte
		b = d.expand(b, re, 0)
		s := string(b)
		list = append(list, s, d.miss(s), d.miss(s), s+"\n", "\n"+s, "x"+s+"x", strings.ToUpper(s))
	}
	return list
}

func (d *Dice) matches(expr string) []string {
	list := d.Matches(expr)
	out := make([]string, 0, 16)
	for range 16 {
		out = append(out, d.of(list))
	}
	return out
}

// miss is a text with one byte or rune more, less or another.
func (d *Dice) miss(s string) string {
	at := 0
	if len(s) > 0 {
		at = d.n(len(s) + 1)
	}
	insert := d.of([]string{"a", "0", "-", ".", ":", "/", " ", "\n", "é", "\xff", "\x00", "Z", "_", "%", "٣", "\u200b", "g", "9", "+", "@", "\t", "=", "#", "[", "]", "x", "1", "255"})
	switch d.n(7) {
	case 0, 1:
		return s[:at] + insert + s[at:]
	case 2:
		if at < len(s) {
			return s[:at] + s[at+1:]
		}
	case 3, 4:
		if at < len(s) {
			return s[:at] + insert + s[at+1:]
		}
	case 5:
		if at < len(s) { // a part twice
			end := at + 1 + d.n(len(s)-at)
			return s[:end] + s[at:]
		}
	default:
		if at+1 < len(s) { // two neighbours swapped
			b := []byte(s)
			b[at], b[at+1] = b[at+1], b[at]
			return string(b)
		}
	}
	return s + insert
}

// expand appends a text that the expression matches, assertions aside.
func (d *Dice) expand(b []byte, re *syntax.Regexp, depth int) []byte {
	if depth > 60 || len(b) > 200 {
		return b
	}
	switch re.Op {
	case syntax.OpLiteral:
		for _, r := range re.Rune {
			if re.Flags&syntax.FoldCase != 0 && d.one(2) {
				r = fold(r)
			}
			b = utf8.AppendRune(b, r)
		}
	case syntax.OpCharClass:
		if len(re.Rune) > 1 {
			i := d.n(len(re.Rune)/2) * 2
			lo, hi := re.Rune[i], re.Rune[i+1]
			switch d.n(3) {
			case 0:
				hi = lo
			case 1:
				lo = hi
			}
			b = utf8.AppendRune(b, lo+rune(d.n(int(hi-lo)+1)))
		}
	case syntax.OpAnyChar:
		b = append(b, d.of([]string{"\n", "a", "é", "🍐", "\xff"})...)
	case syntax.OpAnyCharNotNL:
		b = append(b, d.of([]string{"\r", "a", "é", "🍐", "\xff"})...)
	case syntax.OpCapture, syntax.OpConcat:
		for _, sub := range re.Sub {
			b = d.expand(b, sub, depth+1)
		}
	case syntax.OpAlternate:
		b = d.expand(b, re.Sub[d.n(len(re.Sub))], depth+1)
	case syntax.OpBeginLine, syntax.OpEndLine:
		if d.one(2) {
			b = append(b, '\n')
		}
	case syntax.OpStar, syntax.OpPlus, syntax.OpQuest, syntax.OpRepeat:
		least, most := re.Min, re.Max
		switch re.Op {
		case syntax.OpStar:
			least, most = 0, 3
		case syntax.OpPlus:
			least, most = 1, 3
		case syntax.OpQuest:
			least, most = 0, 1
		}
		if most < 0 || most > least+2 {
			most = least + 2
		}
		for range least + d.n(most-least+1) {
			b = d.expand(b, re.Sub[0], depth+1)
		}
	}
	return b
}

func fold(r rune) rune {
	switch {
	case r >= 'a' && r <= 'z':
		return r - 'a' + 'A'
	case r >= 'A' && r <= 'Z':
		return r - 'A' + 'a'
	}
	return r
}
