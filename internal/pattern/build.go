package pattern

import (
	"encoding/binary"
	"regexp/syntax"
	"slices"
)

// What an automaton may take. Expressions beyond these limits are matched by
// package regexp.
const (
	maxExpr    = 1 << 15 // bytes of the expression
	maxInsts   = 4096    // instructions of the program
	maxSteps   = 1 << 18 // visits of instructions while building: a few milliseconds
	maxEntries = 1 << 14 // of the table before it is minimized
	maxKept    = 1 << 12 // of the table: 8 KB
	maxRanges  = 2048    // of runes, in all classes
	maxClass   = 254
)

// newAutomaton builds the automaton of an expression, false if it is too large.
func newAutomaton(expr string) (automaton, bool) {
	b, ok := newBuilder(expr)
	if !ok {
		return automaton{}, false
	}
	return b.build()
}

// newBuilder returns a builder for expr, which is valid, false if expr alone is
// too large.
func newBuilder(expr string) (*builder, bool) {
	if len(expr) > maxExpr {
		return nil, false
	}
	re, err := syntax.Parse(expr, syntax.Perl)
	if err != nil || size(re) > maxInsts {
		return nil, false
	}
	prog, err := syntax.Compile(re.Simplify())
	if err != nil || len(prog.Inst) > maxInsts {
		return nil, false
	}
	return &builder{
		prog:   prog,
		budget: maxSteps,
		seen:   make([]uint32, len(prog.Inst)),
		ids:    map[string]int{},
	}, true
}

// size estimates the instructions of an expression before there are any: it
// keeps repetitions from being written out just to find that they are too many.
func size(re *syntax.Regexp) int {
	n := 1 + len(re.Sub)
	if re.Op == syntax.OpLiteral {
		n = len(re.Rune)
	}
	for _, sub := range re.Sub {
		n = min(n+size(sub), 2*maxInsts)
	}
	if re.Op == syntax.OpRepeat {
		n *= max(re.Min, re.Max, 1)
	}
	return min(n, 2*maxInsts)
}

// before is what assertions can ask of the text before a position.
type before uint8

const (
	nothing before = iota // the text begins here
	lineEnd
	wordRune
	otherRune
)

// state is a set of instructions at which the program may be: runes to match,
// and assertions about the text that follows.
type state struct {
	insts   []uint32 // sorted
	asserts bool     // there are assertions among insts
	prev    before   // otherRune unless asserts
}

// builder turns a program into an automaton: the subset construction. Its
// states are those of one program that starts anew at each position, because a
// match may begin anywhere.
type builder struct {
	prog     *syntax.Prog
	budget   int
	anchored bool // a match can only begin where the text does
	begins   bool // the program asks whether a line begins
	words    bool // the program asks for word boundaries
	division

	states []state // without dead and accept, which are rows 0 and 1
	ids    map[string]int
	rows   []int // of ids

	// The set that closure works on.
	seen  []uint32 // generation in which an instruction was last visited
	gen   uint32
	stack []uint32
	set   []uint32
	key   []byte
}

const (
	deadID   = 0
	acceptID = 1
	firstID  = 2
)

func (b *builder) build() (automaton, bool) {
	var ok bool
	if b.division, ok = divide(b.prog, &b.budget); !ok {
		return automaton{}, false
	}
	b.findContext()
	width := len(b.samples) + 1

	b.reset()
	matched := b.follow(uint32(b.prog.Start), decidedBy(nothing), ahead)
	start := b.intern(matched, nothing)
	for _, id := range []int{deadID, acceptID} {
		b.rows = append(b.rows, slices.Repeat([]int{id}, width)...)
	}
	for i := 0; i < len(b.states); i++ {
		if len(b.rows)+width > maxEntries {
			return automaton{}, false
		}
		for class := range b.samples {
			if b.budget <= 0 {
				return automaton{}, false
			}
			b.rows = append(b.rows, b.step(i, class))
		}
		b.rows = append(b.rows, b.finish(i))
	}
	rows, start := minimize(b.rows, width, start)
	if len(rows) > maxKept {
		return automaton{}, false
	}
	a := automaton{
		next:     make([]uint16, len(rows)),
		start:    uint16(start * width),
		accept:   uint16(acceptID * width),
		end:      uint16(width - 1),
		alphabet: b.alphabet,
	}
	for i, id := range rows {
		a.next[i] = uint16(id * width)
	}
	return a, true
}

// findContext notes which assertions there are, so that states differ only in
// what one of them can ask for.
func (b *builder) findContext() {
	b.anchored = b.prog.StartCond()&syntax.EmptyBeginText != 0
	for _, in := range b.prog.Inst {
		if in.Op != syntax.InstEmptyWidth {
			continue
		}
		switch syntax.EmptyOp(in.Arg) {
		case syntax.EmptyBeginLine:
			b.begins = true
		case syntax.EmptyWordBoundary, syntax.EmptyNoWordBoundary:
			b.words = true
		}
	}
}

// after says what r is to assertions that follow it.
func (b *builder) after(r rune) before {
	switch {
	case b.begins && r == '\n':
		return lineEnd
	case b.words && syntax.IsWordChar(r):
		return wordRune
	}
	return otherRune
}

// step returns the state after reading a rune of a class.
func (b *builder) step(from, class int) int {
	s, r := b.states[from], b.samples[class]
	insts := s.insts
	if s.asserts {
		matched := b.resolve(s, r)
		if matched {
			return acceptID
		}
		insts = slices.Clone(b.set)
	}
	prev := b.after(r)
	known := decidedBy(prev)
	b.reset()
	matched := !b.anchored && b.follow(uint32(b.prog.Start), known, ahead)
	for _, pc := range insts {
		if set := b.setOf[pc]; set == everyRune || set >= 0 && b.sets[set].classes[class] {
			matched = b.follow(b.prog.Inst[pc].Out, known, ahead) || matched
		}
	}
	return b.intern(matched, prev)
}

// finish returns the result if the text ends in a state.
func (b *builder) finish(from int) int {
	if s := b.states[from]; s.asserts && b.resolve(s, endOfText) {
		return acceptID
	}
	return deadID
}

const endOfText = -1

// resolve decides the assertions of s now that the next rune is known, and
// leaves in b.set the instructions that match runes.
func (b *builder) resolve(s state, next rune) (matched bool) {
	b.reset()
	flags := syntax.EmptyOpContext(s.prev.rune(), next)
	for _, pc := range s.insts {
		matched = b.follow(pc, flags, 0) || matched
	}
	return matched
}

// rune returns a rune that stands for what is before.
func (p before) rune() rune {
	return [...]rune{nothing: endOfText, lineEnd: '\n', wordRune: 'a', otherRune: ' '}[p]
}

// ahead are the assertions that take the next rune to decide.
const ahead = syntax.EmptyEndLine | syntax.EmptyEndText | syntax.EmptyWordBoundary | syntax.EmptyNoWordBoundary

// decidedBy returns the assertions that hold because of what is before alone.
func decidedBy(p before) syntax.EmptyOp {
	return syntax.EmptyOpContext(p.rune(), ' ') &^ ahead
}

// reset empties the set that follow adds to.
func (b *builder) reset() {
	b.gen++
	b.set = b.set[:0]
}

// follow adds to the set what can be reached from pc without reading a rune,
// given the assertions that hold; those in open are not decided yet and are
// added themselves. It reports whether the program may match here.
func (b *builder) follow(pc uint32, holds, open syntax.EmptyOp) (matched bool) {
	b.stack = append(b.stack[:0], pc)
	for len(b.stack) > 0 {
		pc := b.stack[len(b.stack)-1]
		b.stack = b.stack[:len(b.stack)-1]
		b.budget--
		if b.seen[pc] == b.gen {
			continue
		}
		b.seen[pc] = b.gen
		switch in := &b.prog.Inst[pc]; in.Op {
		case syntax.InstAlt, syntax.InstAltMatch:
			b.stack = append(b.stack, in.Arg, in.Out)
		case syntax.InstCapture, syntax.InstNop:
			b.stack = append(b.stack, in.Out)
		case syntax.InstEmptyWidth:
			switch op := syntax.EmptyOp(in.Arg); {
			case op&open != 0:
				b.set = append(b.set, pc)
			case op&^holds == 0:
				b.stack = append(b.stack, in.Out)
			}
		case syntax.InstMatch:
			matched = true
		case syntax.InstRune, syntax.InstRune1, syntax.InstRuneAny, syntax.InstRuneAnyNotNL:
			b.set = append(b.set, pc)
		}
	}
	return matched
}

// intern returns the state whose instructions are in b.set, which stands after
// prev.
func (b *builder) intern(matched bool, prev before) int {
	if matched {
		return acceptID
	}
	if len(b.set) == 0 && !b.begins { // else a match may begin on the next line
		return deadID
	}
	slices.Sort(b.set)
	s := state{prev: otherRune}
	for _, pc := range b.set {
		if b.prog.Inst[pc].Op == syntax.InstEmptyWidth {
			s.asserts, s.prev = true, prev
		}
	}
	b.key = append(b.key[:0], byte(s.prev))
	for _, pc := range b.set {
		b.key = binary.LittleEndian.AppendUint16(b.key, uint16(pc))
	}
	id, known := b.ids[string(b.key)]
	if !known {
		id = firstID + len(b.states)
		b.ids[string(b.key)] = id
		s.insts = slices.Clone(b.set)
		b.states = append(b.states, s)
	}
	return id
}
