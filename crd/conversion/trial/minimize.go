package trial

import (
	"slices"

	"github.com/espalier-dev/espalier/crd/sample"
)

// maxAttempts bounds what is tried to make an object smaller.
const maxAttempts = 3000

// minimize returns a violation of the same contract with a smaller object and fewer edits.
func (t *Trial) minimize(c attempt, found *Violation) *Violation {
	best, left := found, maxAttempts
	fails := func(a any, edits []sample.Edit) bool {
		if left--; left < 0 || len(edits) == 0 && len(best.Edits) > 0 {
			return false
		}
		next := attempt{Trial: t, from: c.from, to: c.to, a: a, edits: edits}
		v := next.run()
		if v == nil || v.Contract != best.Contract {
			return false
		}
		best, c.a, c.edits = v, a, edits
		return true
	}
	for again := true; again && left > 0; {
		again = false
		for i := len(c.edits) - 1; i >= 0 && len(c.edits) > 1; i-- {
			again = fails(c.a, slices.Delete(slices.Clone(c.edits), i, i+1)) || again
		}
		for _, path := range pathsOf(c.a) {
			smaller := sample.Apply(c.a, sample.Edit{Op: sample.Delete, Path: path})
			if len(encode(smaller)) < len(encode(c.a)) { // another step may have taken it away
				again = fails(smaller, c.edits) || again
			}
		}
	}
	return best
}

// pathsOf lists the places in a value, the largest parts and the last items first.
func pathsOf(v any) [][]any {
	var all [][]any
	level := [][]any{nil}
	values := []any{v}
	for len(level) > 0 {
		var next [][]any
		var below []any
		for i, path := range level {
			switch x := values[i].(type) {
			case map[string]any:
				names := make([]string, 0, len(x))
				for name := range x {
					names = append(names, name)
				}
				slices.Sort(names)
				for _, name := range names {
					if path == nil && name == "metadata" {
						next, below = append(next, []any{name, "annotations"}, []any{name, "labels"}, []any{name, "finalizers"}, []any{name, "generation"}, []any{name, "namespace"}), append(below, nil, nil, nil, nil, nil)
						continue
					}
					if len(path) == 0 && (name == "apiVersion" || name == "kind") {
						continue
					}
					next, below = append(next, append(slices.Clip(path), name)), append(below, x[name])
				}
			case []any:
				for j := len(x) - 1; j >= 0; j-- {
					next, below = append(next, append(slices.Clip(path), j)), append(below, x[j])
				}
			}
		}
		all = append(all, next...)
		level, values = next, below
	}
	return all
}
