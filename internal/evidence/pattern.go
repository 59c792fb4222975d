package evidence

import "regexp/syntax"

// longestMatch returns the length of the longest string that a pattern accepts. It
// reports false if the pattern accepts strings of any length, as one without ^ and $ does.
func longestMatch(pattern string) (uint64, bool) {
	if pattern == "" {
		return 0, false
	}
	re, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil || !begins(re) || !ends(re) {
		return 0, false
	}
	n := longest(re)
	return n, n < endless
}

// endless stands for any length.
const endless = 1 << 20

// begins reports whether a match can only be at the beginning of a string.
func begins(re *syntax.Regexp) bool { return edge(re, syntax.OpBeginText, 0) }

// ends reports whether a match can only be at the end of a string.
func ends(re *syntax.Regexp) bool { return edge(re, syntax.OpEndText, -1) }

func edge(re *syntax.Regexp, op syntax.Op, at int) bool {
	switch re.Op {
	case op:
		return true
	case syntax.OpCapture:
		return edge(re.Sub[0], op, at)
	case syntax.OpConcat:
		if at < 0 {
			at = len(re.Sub) - 1
			return edge(re.Sub[at], op, -1)
		}
		return edge(re.Sub[0], op, at)
	case syntax.OpAlternate:
		for _, sub := range re.Sub {
			if !edge(sub, op, at) {
				return false
			}
		}
		return true
	}
	return false
}

// longest returns the characters that an expression matches at most, endless if there
// is no limit.
func longest(re *syntax.Regexp) uint64 {
	switch re.Op {
	case syntax.OpLiteral:
		return uint64(len(re.Rune))
	case syntax.OpCharClass, syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		return 1
	case syntax.OpCapture, syntax.OpQuest:
		return longest(re.Sub[0])
	case syntax.OpStar, syntax.OpPlus:
		return times(longest(re.Sub[0]), endless)
	case syntax.OpRepeat:
		if re.Max < 0 {
			return times(longest(re.Sub[0]), endless)
		}
		return times(longest(re.Sub[0]), uint64(re.Max))
	case syntax.OpConcat:
		n := uint64(0)
		for _, sub := range re.Sub {
			n = min(n+longest(sub), endless)
		}
		return n
	case syntax.OpAlternate:
		n := uint64(0)
		for _, sub := range re.Sub {
			n = max(n, longest(sub))
		}
		return n
	}
	return 0
}

func times(a, b uint64) uint64 { return min(a*b, endless) }
