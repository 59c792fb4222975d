package search

import (
	"context"

	"github.com/espalier-dev/espalier/crd/diff"
)

// Break is an object that a change of a schema breaks.
type Break struct {
	Object []byte   // as the old schema stores it
	What   string   // what the new schema does to it
	Paths  []string // where, if that can be said
	old    *validator
	now    *validator
}

// Confirmed reports whether the reference implementation agrees.
func (b *Break) Confirmed() bool { return confirmed(b.old, b.now, b.Object) }

// Covered reports whether a change is about what happens to the object.
func (b *Break) Covered(x diff.Change) bool {
	for _, path := range b.Paths {
		if covers(x.Path, path) {
			return true
		}
	}
	return len(b.Paths) == 0
}

// Probe makes objects at random that the old schema stores, and calls found for those that the new one breaks, until it returns
// false. It returns how many objects the old schema stored. It fails if a schema does not compile.
func Probe(ctx context.Context, old, now []byte, seed uint64, budget int, found func(Break) bool) (int, error) {
	before, err := newValidator(old)
	if err != nil {
		return 0, err
	}
	after, err := newValidator(now)
	if err != nil {
		return 0, err
	}
	r := &runner{}
	r.objects(ctx, seed, before, after, budget, func(stored []byte, f fate) bool {
		return found(Break{stored, f.what, f.paths, before, after})
	})
	return int(r.counts.Objects.Load()), nil
}
