package diff

import (
	"encoding/binary"
	"regexp/syntax"
	"slices"
	"unicode"
)

// answer is the result of a proof, which may exceed its budget.
type answer uint8

const (
	unknown answer = iota
	proven
	refuted
)

// What a comparison of two patterns may take.
const (
	maxPattern   = 2048 // bytes
	maxProgram   = 1024 // instructions
	maxRunes     = 256  // classes of runes
	maxProduct   = 1 << 13
	productSteps = 1 << 22 // for two patterns; a step of a program costs its instructions and a fixed sum
	maxAutomata  = 1 << 24 // for all
	fixedCost    = 64
)

// contains reports whether every text that the pattern small matches is matched
// by large and, if not, returns a shortest one that is not. It runs both
// programs side by side on all texts, which is finite because sets of
// instructions are.
func (c *comparer) contains(small, large string) (answer, string) {
	key := [2]string{small, large}
	x, known := c.patterns[key]
	if !known {
		x.answer, x.example = c.search(small, large)
		c.patterns[key] = x
	}
	return x.answer, x.example
}

// containment is an answer about two patterns.
type containment struct {
	answer  answer
	example string
}

func (c *comparer) search(small, large string) (answer, string) {
	a, okA := compileProgram(small)
	b, okB := compileProgram(large)
	if !okA || !okB {
		return unknown, ""
	}
	runes := classes(a.prog, b.prog)
	if len(runes) > maxRunes {
		return unknown, ""
	}
	p := product{a: a, b: b, seen: map[string]bool{}, left: min(productSteps, c.automata)}
	begin, cost := p.left, fixedCost+len(a.prog.Inst)+len(b.prog.Inst)
	defer func() { c.automata -= begin - p.left }()
	p.push(state{prev: -1}, state{prev: -1}, -1, 0)
	for i := 0; i < len(p.queue); i++ {
		if p.left < 0 || len(p.queue) > maxProduct {
			return unknown, ""
		}
		at := p.queue[i]
		if p.left -= cost; a.ends(at.a) && !b.ends(at.b) {
			return refuted, p.text(i)
		}
		for _, r := range runes {
			if p.left -= cost; p.left < 0 {
				return unknown, ""
			}
			next := b.step(at.b, r)
			if next.done { // nothing that follows is refused
				continue
			}
			if first := a.step(at.a, r); !first.dead {
				p.push(first, next, i, r)
			}
		}
	}
	return proven, ""
}

// program is a pattern that is being run.
type program struct {
	prog     *syntax.Prog
	anchored bool
}

func compileProgram(expr string) (*program, bool) {
	if len(expr) > maxPattern {
		return nil, false
	}
	re, err := syntax.Parse(expr, syntax.Perl)
	if err != nil {
		return nil, false
	}
	prog, err := syntax.Compile(re.Simplify())
	if err != nil || len(prog.Inst) > maxProgram {
		return nil, false
	}
	return &program{prog, prog.StartCond()&syntax.EmptyBeginText != 0}, true
}

// state is where a program may be before the next rune is known. A match once
// found stays: the pattern may match anywhere.
type state struct {
	at         []uint32 // sorted
	prev       rune     // a rune that stands for the one before; -1 at the beginning
	done, dead bool
}

// open returns the instructions that match runes, given the next rune, and
// whether the program matches before it.
func (p *program) open(s state, next rune) (list []uint32, matched bool) {
	flags := syntax.EmptyOpContext(s.prev, next)
	seen := make([]bool, len(p.prog.Inst))
	stack := append(slices.Clone(s.at), uint32(p.prog.Start))
	for len(stack) > 0 {
		pc := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if seen[pc] {
			continue
		}
		seen[pc] = true
		switch in := &p.prog.Inst[pc]; in.Op {
		case syntax.InstAlt, syntax.InstAltMatch:
			stack = append(stack, in.Out, in.Arg)
		case syntax.InstCapture, syntax.InstNop:
			stack = append(stack, in.Out)
		case syntax.InstEmptyWidth:
			if syntax.EmptyOp(in.Arg)&^flags == 0 {
				stack = append(stack, in.Out)
			}
		case syntax.InstMatch:
			return nil, true
		case syntax.InstFail:
		default:
			list = append(list, pc)
		}
	}
	return list, false
}

func (p *program) ends(s state) bool {
	if s.done {
		return true
	}
	_, matched := p.open(s, -1)
	return matched
}

func (p *program) step(s state, r rune) state {
	if s.done {
		return s
	}
	list, matched := p.open(s, r)
	if matched {
		return state{done: true}
	}
	next := state{prev: standIn(r)}
	for _, pc := range list {
		if in := &p.prog.Inst[pc]; in.MatchRune(r) {
			next.at = append(next.at, in.Out)
		}
	}
	slices.Sort(next.at)
	next.at = slices.Compact(next.at)
	next.dead = p.anchored && len(next.at) == 0
	return next
}

// standIn returns one rune for all that assertions cannot tell apart.
func standIn(r rune) rune {
	switch {
	case r == '\n':
		return r
	case syntax.IsWordChar(r):
		return 'a'
	}
	return ' '
}

// classes returns one rune of each class that the programs tell apart.
func classes(programs ...*syntax.Prog) []rune {
	// No text has surrogates, which end before 0xE000: a class that begins with them
	// goes on there.
	cuts := []rune{0, '\n', '\n' + 1, '0', '9' + 1, 'A', 'Z' + 1, '_', '_' + 1, 'a', 'z' + 1, 0xE000}
	cut := func(lo, hi rune) { cuts = append(cuts, lo, hi+1) }
	for _, p := range programs {
		for i := range p.Inst {
			in := &p.Inst[i]
			if in.Op != syntax.InstRune && in.Op != syntax.InstRune1 {
				continue
			}
			if len(in.Rune) == 1 {
				for r := in.Rune[0]; ; {
					cut(r, r)
					if r = unicode.SimpleFold(r); r == in.Rune[0] {
						break
					}
				}
				continue
			}
			for j := 0; j+1 < len(in.Rune); j += 2 {
				cut(in.Rune[j], in.Rune[j+1])
			}
		}
	}
	slices.Sort(cuts)
	cuts = slices.Compact(cuts)
	return slices.DeleteFunc(cuts, func(r rune) bool { return r > unicode.MaxRune || r >= 0xD800 && r < 0xE000 })
}

// product is the search through pairs of states.
type product struct {
	a, b  *program
	queue []pair
	seen  map[string]bool
	left  int
}

type pair struct {
	a, b state
	from int // in the queue
	by   rune
}

func (p *product) push(a, b state, from int, by rune) {
	key := a.key(nil)
	key = b.key(append(key, 0xff, 0xff, 0xff, 0xff))
	if !p.seen[string(key)] {
		p.seen[string(key)] = true
		p.queue = append(p.queue, pair{a, b, from, by})
	}
}

func (s state) key(b []byte) []byte {
	if s.done {
		return append(b, '+')
	}
	b = binary.LittleEndian.AppendUint32(b, uint32(s.prev))
	for _, pc := range s.at {
		b = binary.LittleEndian.AppendUint32(b, pc)
	}
	return b
}

// text returns what was read on the way to a pair.
func (p *product) text(i int) string {
	var runes []rune
	for ; p.queue[i].from >= 0; i = p.queue[i].from {
		runes = append(runes, p.queue[i].by)
	}
	slices.Reverse(runes)
	return string(runes)
}
