package grammar_test

import (
	"bytes"
	"slices"
	"testing"

	"github.com/espalier-dev/espalier/conformance/grammar"
	"github.com/espalier-dev/espalier/conformance/oracle"
	"github.com/espalier-dev/espalier/conformance/tree"
)

func TestSeedsRepeat(t *testing.T) {
	for seed := range uint64(500) {
		a, b := grammar.Make(seed), grammar.Make(seed)
		if !bytes.Equal(a.Schema, b.Schema) {
			t.Fatalf("seed %d: %s, then %s", seed, a.Schema, b.Schema)
		}
		x, y := grammar.Values(a.Schema, seed, 20), grammar.Values(b.Schema, seed, 20)
		if !slices.EqualFunc(x, y, func(a, b grammar.Value) bool { return a.Raw == b.Raw }) {
			t.Fatalf("seed %d: %v, then %v", seed, x, y)
		}
	}
}

func TestRoundHasEveryKeywordWithEveryClass(t *testing.T) {
	seen := map[[2]string]bool{}
	for seed := range grammar.Edges() + grammar.Round() {
		c := grammar.Make(seed)
		seen[[2]string{c.Keyword, c.Class}] = true
		if _, err := tree.Parse(c.Schema); err != nil {
			t.Errorf("seed %d: %v: %s", seed, err, c.Schema)
		}
	}
	if want := len(grammar.Keywords) * len(grammar.Classes); len(seen) != want {
		t.Errorf("%d of %d combinations", len(seen), want)
	}
}

func TestForms(t *testing.T) {
	for raw, want := range map[string]string{
		"0": "0", "-0": "-0", "0.00": "0.0", "-0.0": "-0.0", "0e5": "0e0", "12": "int", "-3": "negative int", "9007199254740993": "above 2^53",
		"9223372036854775807": "2^63-1", "9223372036854775808": "2^63", "-9223372036854775808": "-2^63", "-9223372036854775809": "below -2^63",
		"18446744073709551616": "2^64 and more", "2.0": "n.0", "1e2": "ne+", "100e-2": "ne-", "2.5": "fraction", "1e400": "overflow", "2e-324": "underflow",
		"5e-324": "tiny", "1e308": "huge", "0.1000000000000000055511151231257827": "long fraction",
	} {
		if got := grammar.Form(raw); got != want {
			t.Errorf("%s is %q, want %q", raw, got, want)
		}
	}
}

// TestValidTextsAreValid keeps the grammar of every format honest: otherwise the near misses would be near nothing.
func TestValidTextsAreValid(t *testing.T) {
	d := grammar.NewDice(1, 1)
	for _, name := range grammar.Formats {
		valid, accepted := 0, 0
		for range 4000 {
			text, class := d.Format(name)
			if class != grammar.Valid {
				continue
			}
			valid++
			if oracle.Format(name, text) {
				accepted++
			}
		}
		if accepted < valid*9/10 {
			t.Errorf("%s: %d of %d texts are valid", name, accepted, valid)
		}
	}
}
