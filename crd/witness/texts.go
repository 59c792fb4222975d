package witness

import (
	"fmt"
	"regexp/syntax"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/espalier-dev/espalier/internal/format"
	"github.com/espalier-dev/espalier/internal/pattern"
	crdsyntax "github.com/espalier-dev/espalier/internal/syntax"
)

type jsonValue = crdsyntax.JSON

// samples are strings of common forms, at least one for each format.
var samples = []string{
	"a", "b", "", "A", "1", "0", "a-b", "a.b", "a_b", "/a", "a/b", "a b", "é", "-", "*", "*.a.b", "a:1", "true",
	"2020-01-01", "2020-01-01T00:00:00Z", "1s", "1m0s", "a@b.co", "10.0.0.1", "::1", "10.0.0.0/8", "fe80::/64", "01:23:45:67:89:ab", "http://a.b", "https://a.b/c", "s3://a",
	"5f2c1f6e-3b5b-4b0e-9d7a-0b6a7f1f2e3d", "6fa459ea-ee8a-3ca4-894e-db77e160355e", "886313e1-3b8a-5372-9b90-0c9aee199e5d", "AAAA", "#fff", "rgb(0,0,0)", "9780306406157", "0306406152",
	"4111111111111111", "111-22-3333", "507f1f77bcf86cd799439011", "100m", "1Gi", "50%", "-1", "1.5", "v1", "v1.2.3", "arn:aws:iam::123456789012:role/a",
	"c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m", "n",
}

const maxText = 1 << 16

// candidates returns strings that matter to the parts, those that the parts admit first and, if there are any, only these.
// others are schemas whose patterns and lengths matter as well, more are strings to try first.
func (s *search) candidates(p, others parts, more ...string) []string {
	s.spend(len(samples))
	list := slices.Clone(more)
	lengths := []int{}
	for _, q := range slices.Concat(p, others) {
		for _, n := range []*int64{q.MaxLength, q.MinLength} {
			switch {
			case n != nil && *n >= maxText:
				s.cut = true
			case n != nil && *n >= 0:
				lengths = append(lengths, int(*n), int(*n)+1, int(max(0, *n-1)))
			}
		}
		if q.Pattern != "" {
			s.spend(len(samples) * patternWork)
		}
	}
	slices.Sort(lengths)
	lengths = slices.Compact(lengths)
	patterned := false
	for _, q := range p {
		if q.Pattern != "" {
			patterned = true
			list = append(list, s.matching(q.Pattern, lengths)...)
		}
	}
	list = append(list, samples[:3]...) // the smallest come first
	for _, q := range others {
		if q.Pattern != "" {
			list = append(list, s.matching(q.Pattern, lengths)...)
		}
	}
	for _, n := range lengths {
		list = append(list, strings.Repeat("a", n), strings.Repeat("1", n))
		if n > 8 {
			list = append(list, "http://a."+strings.Repeat("b", n-9), "/"+strings.Repeat("a", n-1), strings.Repeat("AAAA", (n+3)/4)) // base64
		}
	}
	list = append(list, samples...)
	if patterned {
		list = append(list, nearby(list)...)
	}
	var good []string
	seen := map[string]bool{}
	for _, t := range list {
		if !seen[t] && len(t) <= maxText && admits(p, t) {
			good = append(good, t)
		}
		seen[t] = true
	}
	if len(good) == 0 {
		return list[:min(len(list), 8)]
	}
	// Those that the others refuse come first: they are what a witness needs. The very first stays the smallest.
	first, last := good[:1:1], []string(nil)
	for _, t := range good[1:] {
		if len(others) > 0 && !admits(others, t) {
			first = append(first, t)
		} else {
			last = append(last, t)
		}
	}
	return append(first, last...)
}

// nearby returns texts that differ in one character.
func nearby(list []string) (more []string) {
	for _, t := range list[:min(len(list), 4)] {
		for _, x := range []string{"-", "_", ".", "/", "A", "0", " ", "a", ":"} {
			more = append(more, t+x, x+t, t+x+"a")
		}
	}
	return more
}

func admits(p parts, text string) bool {
	length := int64(utf8.RuneCountInString(text))
	return !slices.ContainsFunc(p, func(s *schema) bool {
		if s.MaxLength != nil && length > *s.MaxLength || s.MinLength != nil && length < *s.MinLength {
			return true
		}
		if s.Pattern != "" {
			if re, err := pattern.Compile(s.Pattern); err != nil || !re.Match([]byte(text)) {
				return true
			}
		}
		return s.Format != "" && !format.Lookup(s.Format).Match([]byte(text))
	})
}

// matching returns strings that match a pattern. Many fields of a schema have the same one.
func (s *search) matching(expr string, lengths []int) []string {
	key := fmt.Sprint(expr, lengths)
	list, ok := s.matches[key]
	if !ok {
		list = matching(expr, lengths)
		s.matches[key] = list
	}
	return list
}

// matching returns strings that match a pattern: short ones, and some of about the given lengths.
func matching(expr string, lengths []int) (list []string) {
	re, err := syntax.Parse(expr, syntax.Perl)
	if err != nil || len(expr) > 4096 {
		return nil
	}
	counts := []int{0, 1, 2}
	for _, n := range lengths {
		counts = append(counts, n, max(0, n-1), max(0, n-2))
	}
	most := min(2*slices.Max(counts)+1024, maxText)
	for _, n := range counts[:min(len(counts), 16)] {
		for choice := range 4 {
			w := writer{repeat: n, choice: choice, most: most}
			w.write(re)
			if t := w.String(); w.Len() <= most && !slices.Contains(list, t) {
				list = append(list, t)
			}
		}
	}
	return list
}

// writer writes a text that matches an expression, but for its assertions.
type writer struct {
	strings.Builder
	repeat, choice int
	steps, most    int
}

func (w *writer) write(re *syntax.Regexp) {
	if w.steps++; w.steps > w.most || w.Len() > w.most {
		return
	}
	times := func(least, most int) {
		n := least + w.repeat
		if most >= 0 {
			n = min(n, most)
		}
		for range n {
			w.write(re.Sub[0])
			if w.steps > w.most || w.Len() > w.most {
				return
			}
		}
	}
	switch re.Op {
	case syntax.OpLiteral:
		for _, r := range re.Rune {
			w.WriteRune(r)
		}
	case syntax.OpCharClass:
		w.WriteRune(member1(re.Rune, w.choice))
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		w.WriteByte("a1-b"[w.choice%4])
	case syntax.OpCapture:
		w.write(re.Sub[0])
	case syntax.OpConcat:
		for _, s := range re.Sub {
			w.write(s)
		}
	case syntax.OpAlternate:
		w.write(re.Sub[w.choice%len(re.Sub)])
	case syntax.OpStar:
		times(0, -1)
	case syntax.OpPlus:
		times(1, -1)
	case syntax.OpQuest:
		times(0, 1)
	case syntax.OpRepeat:
		times(re.Min, re.Max)
	}
}

// member1 returns a rune of a class: a plain one if there is one.
func member1(ranges []rune, choice int) rune {
	for _, r := range [][]rune{{'a', '1', 'A', '-'}, {'1', 'a', '-', 'A'}, {'A', 'b', '0', '.'}, {'-', '_', '.', 'a'}}[choice%4] {
		for i := 0; i+1 < len(ranges); i += 2 {
			if ranges[i] <= r && r <= ranges[i+1] {
				return r
			}
		}
	}
	for i := 0; i+1 < len(ranges); i += 2 {
		for r := ranges[i]; r <= min(ranges[i+1], ranges[i]+64); r++ {
			if unicode.IsPrint(r) {
				return r
			}
		}
	}
	if len(ranges) > 0 {
		return ranges[0]
	}
	return 'a'
}
