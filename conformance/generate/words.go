package generate

import (
	"regexp"
	"regexp/syntax"
	"slices"
	"unicode/utf8"

	"github.com/espalier-dev/espalier/conformance/tree"
)

// words returns a few JSON strings that match a pattern, for patterns that are easy; others may get words that do not
// match, which makes an object invalid and nothing worse.
func words(re *syntax.Regexp, minLen, maxLen int) []string {
	d := newDice(uint64(len(re.String())), 7)
	var out []string
	for try := 0; try < 8 && len(out) < 3; try++ {
		var b []byte
		b = expand(b, re, &d, 0)
		if l := utf8.RuneCount(b); l <= maxLen && (l >= minLen || try > 5) {
			out = append(out, tree.Quote(string(b)))
		}
	}
	return out
}

// matching is words for a pattern, without those that do not match it if there are others.
func matching(pattern string, minLen, maxLen int) []string {
	re, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return nil
	}
	list := words(re.Simplify(), minLen, maxLen)
	exact, err := regexp.Compile(pattern)
	if err != nil {
		return list
	}
	good := slices.DeleteFunc(slices.Clone(list), func(raw string) bool { return !exact.MatchString(tree.Unquote(raw)) })
	if len(good) == 0 {
		return list
	}
	return good
}

// expand appends a text that the expression matches, assertions aside.
func expand(b []byte, re *syntax.Regexp, d *dice, depth int) []byte {
	if depth > 40 || len(b) > 300 {
		return b
	}
	switch re.Op {
	case syntax.OpLiteral:
		for _, r := range re.Rune {
			b = utf8.AppendRune(b, r)
		}
	case syntax.OpCharClass:
		b = utf8.AppendRune(b, fromClass(re.Rune, d))
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		b = append(b, byte('a'+d.n(26)))
	case syntax.OpCapture, syntax.OpConcat:
		for _, sub := range re.Sub {
			b = expand(b, sub, d, depth+1)
		}
	case syntax.OpAlternate:
		b = expand(b, re.Sub[d.n(len(re.Sub))], d, depth+1)
	case syntax.OpStar, syntax.OpPlus, syntax.OpQuest, syntax.OpRepeat:
		least, most := re.Min, re.Max
		switch re.Op {
		case syntax.OpStar:
			least, most = 0, 3
		case syntax.OpPlus:
			least, most = 1, 4
		case syntax.OpQuest:
			least, most = 0, 1
		}
		if most < 0 || most > least+3 {
			most = least + 3
		}
		for range least + d.n(most-least+1) {
			b = expand(b, re.Sub[0], d, depth+1)
		}
	}
	return b
}

// fromClass picks from the ranges of a class, preferring printable ASCII.
func fromClass(ranges []rune, d *dice) rune {
	if len(ranges) == 0 {
		return 'x'
	}
	for range 6 {
		i := d.n(len(ranges)/2) * 2
		lo, hi := max(ranges[i], 0x20), min(ranges[i+1], 0x7e)
		if lo <= hi {
			return lo + rune(d.n(int(hi-lo)+1))
		}
	}
	return ranges[0]
}
