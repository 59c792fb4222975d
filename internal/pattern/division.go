package pattern

import (
	"regexp/syntax"
	"slices"
	"unicode"
	"unicode/utf8"
)

// division divides the runes into classes that a program cannot tell apart.
type division struct {
	alphabet
	samples []rune    // one rune of each class
	sets    []runeSet // the different sets of runes that the program asks for
	setOf   []int32   // which of the sets an instruction matches
}

// What setOf says of instructions that match every rune, or do not match runes.
const (
	everyRune = -1
	noRune    = -2
)

type runeSet struct {
	*syntax.Inst
	classes []bool // which classes are in the set
}

// divide returns the division for prog, false if it would be too large.
func divide(prog *syntax.Prog, budget *int) (division, bool) {
	d := collect(prog)
	firsts := boundaries(d.sets)
	steps := len(firsts) * len(d.sets)
	if len(firsts) > maxRanges || steps > *budget {
		return d, false
	}
	*budget -= steps
	// Start with a single class, and let each set split those it cuts through.
	class := make([]int, len(firsts))
	for _, set := range d.sets {
		type part struct {
			class int
			in    bool
		}
		parts := map[part]int{}
		for i, r := range firsts {
			p := part{class[i], set.MatchRunePos(r) >= 0}
			id, known := parts[p]
			if !known {
				id = len(parts)
				parts[p] = id
			}
			class[i] = id
		}
	}
	if !d.tabulate(firsts, class) {
		return d, false
	}
	for i := range d.sets {
		for _, r := range d.samples {
			d.sets[i].classes = append(d.sets[i].classes, d.sets[i].MatchRunePos(r) >= 0)
		}
	}
	return d, true
}

// tabulate fills the alphabet from ranges, given by their first runes, and
// their classes, which are numbered in order of first use.
func (d *division) tabulate(firsts []rune, class []int) bool {
	for i, first := range firsts {
		id := class[i]
		if id > maxClass {
			return false
		}
		if id == len(d.samples) {
			d.samples = append(d.samples, first)
		}
		end := rune(utf8.RuneSelf)
		if i+1 < len(firsts) {
			end = min(end, firsts[i+1])
		}
		for r := first; r < end; r++ {
			d.ascii[r] = uint8(id)
		}
		if n := len(d.of); first >= utf8.RuneSelf && (n == 0 || d.of[n-1] != uint8(id)) {
			d.first = append(d.first, first)
			d.of = append(d.of, uint8(id))
		}
	}
	d.first, d.of = slices.Clip(d.first), slices.Clip(d.of)
	return true
}

// collect finds the sets of runes that prog distinguishes, by instructions or
// by assertions.
func collect(prog *syntax.Prog) division {
	d := division{setOf: make([]int32, len(prog.Inst))}
	known := map[setKey]int32{}
	add := func(set *syntax.Inst) int32 {
		k := keyOf(set)
		id, ok := known[k]
		if !ok {
			id = int32(len(d.sets))
			known[k] = id
			d.sets = append(d.sets, runeSet{Inst: set})
		}
		return id
	}
	for i := range prog.Inst {
		d.setOf[i] = noRune
		switch in := &prog.Inst[i]; in.Op {
		case syntax.InstRuneAny:
			d.setOf[i] = everyRune
		case syntax.InstRune, syntax.InstRune1:
			d.setOf[i] = add(in)
		case syntax.InstRuneAnyNotNL:
			d.setOf[i] = add(notNewline)
		case syntax.InstEmptyWidth:
			switch syntax.EmptyOp(in.Arg) {
			case syntax.EmptyBeginLine, syntax.EmptyEndLine:
				add(notNewline)
			case syntax.EmptyWordBoundary, syntax.EmptyNoWordBoundary:
				add(wordRunes)
			}
		}
	}
	return d
}

var (
	notNewline = &syntax.Inst{Op: syntax.InstRune, Rune: []rune{0, '\n' - 1, '\n' + 1, unicode.MaxRune}}
	wordRunes  = &syntax.Inst{Op: syntax.InstRune, Rune: []rune{'0', '9', 'A', 'Z', '_', '_', 'a', 'z'}}
)

// setKey identifies a set of runes. Sets of ranges are told apart by where they
// are in memory: repetitions, which make sets numerous, refer to the same
// slice, and taking equal sets for different ones does no harm.
type setKey struct {
	single rune
	fold   bool
	ranges *rune
	count  int
}

func keyOf(set *syntax.Inst) setKey {
	switch len(set.Rune) {
	case 0:
		return setKey{}
	case 1:
		return setKey{single: set.Rune[0], fold: folds(set), count: 1}
	}
	return setKey{ranges: &set.Rune[0], count: len(set.Rune)}
}

// folds reports whether a set of a single rune stands for all its cases.
func folds(set *syntax.Inst) bool {
	return syntax.Flags(set.Arg)&syntax.FoldCase != 0
}

// boundaries returns, sorted, the runes at which membership in a set may
// change, with 0 and the first rune that is not ASCII.
func boundaries(sets []runeSet) []rune {
	at := []rune{0, utf8.RuneSelf}
	add := func(lo, hi rune) { at = append(at, lo, hi+1) }
	for _, set := range sets {
		if len(set.Rune) == 1 {
			first := set.Rune[0]
			add(first, first)
			for r := unicode.SimpleFold(first); folds(set.Inst) && r != first; r = unicode.SimpleFold(r) {
				add(r, r)
			}
			continue
		}
		for i := 0; i+1 < len(set.Rune); i += 2 {
			add(set.Rune[i], set.Rune[i+1])
		}
	}
	slices.Sort(at)
	at = slices.Compact(at)
	if at[len(at)-1] > unicode.MaxRune {
		at = at[:len(at)-1]
	}
	return at
}
