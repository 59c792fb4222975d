package diff

import (
	"fmt"
	"regexp/syntax"

	"github.com/espalier-dev/espalier/internal/pattern"
)

// lengths returns bounds of the length of strings that patterns and formats imply, beyond minLength and maxLength.
func (v *value) lengths() (least, most int64, bounded bool) {
	for i := range v.parts {
		s := v.parts[i].s
		if s.Pattern != "" {
			if _, err := pattern.Compile(s.Pattern); err != nil {
				return 0, 0, false
			}
			low, high, ok := lengthsOf(s.Pattern)
			least = max(least, low)
			if ok && (!bounded || high < most) {
				most, bounded = high, true
			}
		}
	}
	if least == 0 && !v.admits("") {
		least = 1
	}
	return least, most, bounded
}

// window returns a pattern that matches the strings within minLength and maxLength, empty if there is no minLength or a
// large one.
func (v *value) window() string {
	const large = 100
	least, most, bounded := int64(0), int64(0), false
	for i := range v.parts {
		s := v.parts[i].s
		if s.MinLength != nil {
			least = max(least, *s.MinLength)
		}
		if s.MaxLength != nil && (!bounded || *s.MaxLength < most) {
			most, bounded = *s.MaxLength, true
		}
	}
	switch {
	case least > large || least == 0: // examples are shortest ones, so maxLength alone needs no pattern
		return ""
	case bounded && most >= least && most <= large:
		return fmt.Sprintf(`(?s)^.{%d,%d}$`, least, most)
	}
	return fmt.Sprintf(`(?s)^.{%d,}$`, least)
}

// lengthsOf returns bounds of the lengths of texts that an expression matches, in runes.
func lengthsOf(expr string) (least, most int64, bounded bool) {
	re, err := syntax.Parse(expr, syntax.Perl)
	if err != nil || len(expr) > maxPattern {
		return 0, 0, false
	}
	x := whole(re.Simplify())
	return x.least, x.most, x.bounded
}

// span is a range of lengths.
type span struct {
	least, most int64
	bounded     bool
}

const longest = 1 << 40 // more is as good as no bound, and sums do not overflow

func (a span) then(b span) span {
	s := span{a.least + b.least, a.most + b.most, a.bounded && b.bounded}
	s.least = min(s.least, longest)
	s.bounded = s.bounded && s.most < longest
	return s
}

func (a span) or(b span) span {
	return span{min(a.least, b.least), max(a.most, b.most), a.bounded && b.bounded}
}

// whole returns the lengths of whole texts: those of the expression if it is anchored at both ends.
func whole(re *syntax.Regexp) span {
	switch re.Op {
	case syntax.OpCapture:
		return whole(re.Sub[0])
	case syntax.OpAlternate:
		s := whole(re.Sub[0])
		for _, sub := range re.Sub[1:] {
			s = s.or(whole(sub))
		}
		return s
	case syntax.OpConcat:
		s := matched(re)
		if re.Sub[0].Op != syntax.OpBeginText || re.Sub[len(re.Sub)-1].Op != syntax.OpEndText {
			s.bounded = false
		}
		return s
	}
	return span{least: matched(re).least}
}

// matched returns the lengths of what an expression itself matches.
func matched(re *syntax.Regexp) span {
	switch re.Op {
	case syntax.OpLiteral:
		n := int64(len(re.Rune))
		return span{n, n, true}
	case syntax.OpCharClass, syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		return span{1, 1, true}
	case syntax.OpCapture:
		return matched(re.Sub[0])
	case syntax.OpConcat:
		s := span{bounded: true}
		for _, sub := range re.Sub {
			s = s.then(matched(sub))
		}
		return s
	case syntax.OpAlternate:
		s := matched(re.Sub[0])
		for _, sub := range re.Sub[1:] {
			s = s.or(matched(sub))
		}
		return s
	case syntax.OpQuest:
		s := matched(re.Sub[0])
		s.least = 0
		return s
	case syntax.OpPlus:
		return span{least: matched(re.Sub[0]).least}
	case syntax.OpStar:
		return span{}
	case syntax.OpBeginLine, syntax.OpEndLine, syntax.OpBeginText, syntax.OpEndText, syntax.OpWordBoundary, syntax.OpNoWordBoundary, syntax.OpEmptyMatch:
		return span{bounded: true}
	}
	return span{} // nothing is known
}
