package openapi

import (
	"fmt"
	"regexp"
	"regexp/syntax"
	"strings"
	"unicode"
)

// peculiar finds what Go's regular expressions have and those of JavaScript,
// which editors run, do not have or understand otherwise: flags, named groups,
// classes by name, \A, \z, \Q, \a, \C, \x{10FFFF}, and ] right after [.
var peculiar = regexp.MustCompile(`\(\?[^:]|\[:|\[\^?\]|\\[AzQEaCpPx]`)

// maxPortable bounds the patterns that are rewritten, because a class by name
// becomes hundreds of ranges wherever it is used.
const maxPortable = 4096

// portable returns a pattern that means the same to Go and to JavaScript, or
// nothing if there is none.
func portable(pattern string) string {
	re, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return ""
	}
	if !peculiar.MatchString(pattern) {
		return pattern
	}
	var p printer
	p.print(re)
	if p.failed || p.b.Len() > maxPortable {
		return ""
	}
	return p.b.String()
}

// printer writes an expression with what both languages have in common.
type printer struct {
	b      strings.Builder
	failed bool
}

func (p *printer) print(re *syntax.Regexp) {
	if p.failed || p.b.Len() > maxPortable {
		p.failed = true
		return
	}
	switch re.Op {
	case syntax.OpEmptyMatch:
		p.b.WriteString("(?:)")
	case syntax.OpLiteral:
		p.literal(re)
	case syntax.OpCharClass:
		p.class(re.Rune)
	case syntax.OpAnyCharNotNL:
		p.b.WriteString(`[^\n]`)
	case syntax.OpAnyChar:
		p.b.WriteString(`[\s\S]`)
	case syntax.OpBeginText:
		p.b.WriteByte('^')
	case syntax.OpEndText:
		p.b.WriteByte('$')
	case syntax.OpWordBoundary:
		p.b.WriteString(`\b`)
	case syntax.OpNoWordBoundary:
		p.b.WriteString(`\B`)
	case syntax.OpCapture:
		p.group(re.Sub[0])
	case syntax.OpStar, syntax.OpPlus, syntax.OpQuest, syntax.OpRepeat:
		p.repeat(re)
	case syntax.OpConcat:
		for _, sub := range re.Sub {
			if sub.Op == syntax.OpAlternate {
				p.group(sub)
			} else {
				p.print(sub)
			}
		}
	case syntax.OpAlternate:
		for i, sub := range re.Sub {
			if i > 0 {
				p.b.WriteByte('|')
			}
			p.print(sub)
		}
	default: // the beginnings and ends of lines, and what matches nothing
		p.failed = true
	}
}

func (p *printer) group(re *syntax.Regexp) {
	p.b.WriteString("(?:")
	p.print(re)
	p.b.WriteByte(')')
}

func (p *printer) repeat(re *syntax.Regexp) {
	p.group(re.Sub[0])
	switch re.Op {
	case syntax.OpStar:
		p.b.WriteByte('*')
	case syntax.OpPlus:
		p.b.WriteByte('+')
	case syntax.OpQuest:
		p.b.WriteByte('?')
	default:
		switch re.Max {
		case re.Min:
			fmt.Fprintf(&p.b, "{%d}", re.Min)
		case -1:
			fmt.Fprintf(&p.b, "{%d,}", re.Min)
		default:
			fmt.Fprintf(&p.b, "{%d,%d}", re.Min, re.Max)
		}
	}
	if re.Flags&syntax.NonGreedy != 0 {
		p.b.WriteByte('?')
	}
}

func (p *printer) literal(re *syntax.Regexp) {
	for _, r := range re.Rune {
		if re.Flags&syntax.FoldCase == 0 || unicode.SimpleFold(r) == r {
			p.rune(r, outside)
			continue
		}
		p.b.WriteByte('[')
		p.rune(r, inside)
		for other := unicode.SimpleFold(r); other != r; other = unicode.SimpleFold(other) {
			p.rune(other, inside)
		}
		p.b.WriteByte(']')
	}
}

func (p *printer) class(ranges []rune) {
	p.b.WriteByte('[')
	if len(ranges) > 0 && ranges[0] == 0 && ranges[len(ranges)-1] == unicode.MaxRune {
		// What is left out is easier to read.
		p.b.WriteByte('^')
		var rest []rune
		for i := 1; i+1 < len(ranges); i += 2 {
			rest = append(rest, ranges[i]+1, ranges[i+1]-1)
		}
		ranges = rest
	}
	if len(ranges) == 0 {
		p.failed = true
	}
	for i := 0; i+1 < len(ranges); i += 2 {
		p.rune(ranges[i], inside)
		if ranges[i+1] > ranges[i] {
			p.b.WriteByte('-')
			p.rune(ranges[i+1], inside)
		}
	}
	p.b.WriteByte(']')
}

// The characters that do not mean themselves, inside and outside classes.
// JavaScript refuses to have others escaped.
const (
	inside  = `\]^-[`
	outside = `\.+*?()|[]{}^$`
)

// rune writes a character so that it means itself.
func (p *printer) rune(r rune, special string) {
	switch {
	case r < ' ' || r == 0x7f:
		fmt.Fprintf(&p.b, `\x%02x`, r)
	case strings.ContainsRune(special, r):
		p.b.WriteByte('\\')
		p.b.WriteRune(r)
	case 0xD800 <= r && r < 0xE000:
		p.failed = true
	default:
		p.b.WriteRune(r)
	}
}
