package trial

import (
	"maps"
	"math/rand/v2"
	"slices"

	"github.com/espalier-dev/espalier/internal/syntax"
)

// ratcheted makes of some objects what only ratcheting keeps: a list of type map in which an item has the key of another
// item, or none. What is preserved of such an item must not come back in another.
func ratcheted(s *syntax.Schema, v any, r *rand.Rand) any {
	if s == nil {
		return v
	}
	switch v := v.(type) {
	case map[string]any:
		if s.EmbeddedResource {
			return v
		}
		for _, name := range slices.Sorted(maps.Keys(v)) {
			v[name] = ratcheted(member(s, name), v[name], r)
		}
	case []any:
		for i := range v {
			v[i] = ratcheted(s.ItemSchema(), v[i], r)
		}
		if s.ListType == nil || *s.ListType != "map" || len(v) < 2 || len(s.ListMapKeys) == 0 {
			return v
		}
		from, to := r.IntN(len(v)), r.IntN(len(v))
		a, ok := v[from].(map[string]any)
		b, is := v[to].(map[string]any)
		if !ok || !is {
			return v
		}
		without := r.IntN(3) == 0
		for _, name := range s.ListMapKeys {
			if without {
				delete(b, name)
			} else if key, ok := a[name]; ok {
				b[name] = key
			}
		}
	}
	return v
}
