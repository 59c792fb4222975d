package pattern

import (
	"slices"
	"unicode/utf8"
)

// automaton is a deterministic finite automaton over classes of runes.
//
// A state is the offset of its row in next; a row has one entry for each class
// and one for the end of the text. Two states have no way out: dead, which is
// row 0, and accept, which is row 1. Every entry for the end is one of them.
type automaton struct {
	next          []uint16
	start, accept uint16
	end           uint16 // the column for the end of the text
	alphabet
}

// run reports whether the automaton accepts text.
func (a *automaton) run(text []byte) bool {
	next, state, accept := a.next, int(a.start), int(a.accept)
	for i := 0; i < len(text) && state > accept; i++ {
		if b := text[i]; b < utf8.RuneSelf {
			state = int(next[state+int(a.ascii[b])])
			continue
		}
		r, size := utf8.DecodeRune(text[i:])
		state = int(next[state+int(a.wide(r))])
		i += size - 1
	}
	if state > accept {
		state = int(next[state+int(a.end)])
	}
	return state == accept
}

// alphabet maps runes to classes.
type alphabet struct {
	ascii [utf8.RuneSelf]uint8
	// Other runes: those from first[i] to before first[i+1] are of class of[i].
	// first[0] is the first rune that is not ASCII.
	first []rune
	of    []uint8
}

// wide returns the class of a rune that is not ASCII.
func (a *alphabet) wide(r rune) uint8 {
	if len(a.of) == 1 {
		return a.of[0]
	}
	i, found := slices.BinarySearch(a.first, r)
	if !found {
		i--
	}
	return a.of[i]
}
