package compare

import (
	"testing"

	"github.com/espalier-dev/espalier/conformance/oracle"
)

func TestFirst(t *testing.T) {
	for _, from := range []int{1, 2, 57, 99, 100, 101} {
		if got := first(100, func(n int) bool { return n >= from }); got != from {
			t.Errorf("%d, want %d", got, from)
		}
	}
}

// Only what the reference says at random may be missing, and only what it has said may be there.
func TestScatter(t *testing.T) {
	answer := func(errors ...string) *oracle.Validation { return &oracle.Validation{Errors: errors} }
	var steady, random scatter
	for range 3 {
		steady.add(answer("a", "b"))
	}
	random.add(answer("a", "b1"))
	random.add(answer("a", "b2"))
	random.add(answer("a"))
	for _, c := range []struct {
		name string
		s    *scatter
		ours *oracle.Validation
		want bool
	}{
		{"the same each time, and not ours", &steady, answer("a"), false},
		{"one of them", &random, answer("a", "b1"), true},
		{"none of them", &random, answer("a"), true},
		{"a mixture", &random, answer("a", "b1", "b2"), true},
		{"what is always said is missing", &random, answer("b1"), false},
		{"something else", &random, answer("a", "b3"), false},
	} {
		if got := c.s.allow(c.ours); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}
