package pattern

import (
	"regexp/syntax"
	"unicode"
)

// sampler writes texts that an expression is likely to match, because random
// ones almost never do. Its choices come from bytes, and are 0 when they end.
type sampler struct {
	choices []byte
	out     []byte
}

func (s *sampler) choose(n int) int {
	if len(s.choices) == 0 || n <= 1 {
		return 0
	}
	c := int(s.choices[0]) % n
	s.choices = s.choices[1:]
	return c
}

const maxSample = 300

func (s *sampler) write(re *syntax.Regexp) {
	if len(s.out) > maxSample {
		return
	}
	switch re.Op {
	case syntax.OpLiteral:
		for _, r := range re.Rune {
			if re.Flags&syntax.FoldCase != 0 && s.choose(2) == 1 {
				r = unicode.SimpleFold(r)
			}
			s.out = append(s.out, string(r)...)
		}
	case syntax.OpCharClass:
		if len(re.Rune) > 0 {
			i := 2 * s.choose(len(re.Rune)/2)
			width := int(re.Rune[i+1]-re.Rune[i]) + 1
			s.out = append(s.out, string(re.Rune[i]+rune(s.choose(width)))...)
		}
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		some := []string{"a", "-", "_", "é", "\xff", "\n"}
		s.out = append(s.out, some[s.choose(len(some))]...)
	case syntax.OpAlternate:
		s.write(re.Sub[s.choose(len(re.Sub))])
	case syntax.OpStar:
		s.repeat(re.Sub[0], s.choose(4))
	case syntax.OpPlus:
		s.repeat(re.Sub[0], 1+s.choose(3))
	case syntax.OpQuest:
		s.repeat(re.Sub[0], s.choose(2))
	case syntax.OpRepeat:
		most := re.Max
		if most < 0 {
			most = re.Min + 2
		}
		s.repeat(re.Sub[0], re.Min+s.choose(most-re.Min+2)) // at times one too many
	case syntax.OpConcat, syntax.OpCapture:
		for _, sub := range re.Sub {
			s.write(sub)
		}
	}
}

func (s *sampler) repeat(re *syntax.Regexp, n int) {
	for range n {
		s.write(re)
	}
}

// sample returns a text for expr, which is valid.
func sample(expr string, choices []byte) []byte {
	re, err := syntax.Parse(expr, syntax.Perl)
	if err != nil {
		return nil
	}
	s := sampler{choices: choices}
	s.write(re)
	return s.out
}
