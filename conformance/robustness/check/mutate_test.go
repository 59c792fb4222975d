package check

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/espalier-dev/espalier/conformance/robustness/history"
)

// pool holds simulated histories as JSON: reading them is quicker than making them.
var pool = sync.OnceValue(func() [][]byte {
	var all [][]byte
	for seed := range uint64(300) {
		bytes, err := json.Marshal(simulate(seed, 300))
		if err != nil {
			panic(err)
		}
		all = append(all, bytes)
	}
	return all
})

// A mutation spoils a random place of a history, or reports that it has no such place.
// Always: no correct server can have made the outcome, so that it must be found.
type mutation struct {
	name   string
	always bool
	mutate func(rng *rand.Rand, h *history.History) bool
}

// pick chooses one of the indices below n for which a condition holds.
func pick(rng *rand.Rand, n int, condition func(int) bool) (int, bool) {
	for _, i := range rng.Perm(n) {
		if condition(i) {
			return i, true
		}
	}
	return 0, false
}

func operation(rng *rand.Rand, h *history.History, condition func(*history.Operation) bool) (*history.Operation, bool) {
	i, found := pick(rng, len(h.Operations), func(i int) bool { return condition(&h.Operations[i]) })
	if !found {
		return nil, false
	}
	return &h.Operations[i], true
}

// inner picks an event with a live event behind it, so that its place is known.
func inner(rng *rand.Rand, h *history.History) (s *history.Session, event int, found bool) {
	// Where no object has labels, the checkers do not know what a selector selects.
	labelled := slices.ContainsFunc(h.Writes, func(w history.Write) bool { return len(w.Labels) > 0 })
	i, found := pick(rng, len(h.Sessions), func(i int) bool {
		s := &h.Sessions[i]
		return s.From > 0 && !s.Initial && len(s.Events) > 2 && (labelled || !parseSelector(s.Selector).labels)
	})
	if !found {
		return nil, 0, false
	}
	s = &h.Sessions[i]
	event, found = pick(rng, len(s.Events)-1, func(j int) bool {
		return s.Events[j].Type != "BOOKMARK" && s.Events[j+1].Revision > s.Events[j].Revision
	})
	return s, event, found
}

func done(verbs ...string) func(*history.Operation) bool {
	return func(o *history.Operation) bool {
		return o.Outcome == history.Done && slices.Contains(verbs, o.Verb)
	}
}

var mutations = []mutation{
	{"write lost from the log", true, func(rng *rand.Rand, h *history.History) bool {
		i, found := pick(rng, len(h.Writes), func(i int) bool {
			// A later write of the key names it, so that the loss is visible.
			return slices.ContainsFunc(h.Writes, func(w history.Write) bool { return w.Previous == h.Writes[i].Revision && w.Key == h.Writes[i].Key })
		})
		if found {
			h.Writes = slices.Delete(h.Writes, i, i+1)
		}
		return found
	}},
	{"acknowledged write taken back", true, func(rng *rand.Rand, h *history.History) bool {
		o, found := operation(rng, h, done(history.Create, history.Patch, history.Apply))
		if !found {
			return false
		}
		for i := range h.Writes {
			w := &h.Writes[i]
			w.Log = slices.DeleteFunc(w.Log, func(id string) bool { return id == o.ID })
			maps.DeleteFunc(w.Marks, func(_, id string) bool { return id == o.ID })
		}
		return true
	}},
	{"written operation refused", true, func(rng *rand.Rand, h *history.History) bool {
		o, found := operation(rng, h, done(history.Create, history.Patch, history.Apply))
		if found {
			o.Outcome, o.Code, o.Reason, o.Got = history.Refused, 403, "Forbidden", history.Item{}
		}
		return found
	}},
	{"acknowledged revision changed", true, func(rng *rand.Rand, h *history.History) bool {
		o, found := operation(rng, h, done(history.Create, history.Patch))
		if found {
			o.Got.Revision--
		}
		return found
	}},
	{"shown log shortened", true, func(rng *rand.Rand, h *history.History) bool {
		o, found := operation(rng, h, func(o *history.Operation) bool {
			return o.Outcome == history.Done && o.Verb == history.Get && len(o.Got.Log) > 0
		})
		if found {
			o.Got.Log = o.Got.Log[:len(o.Got.Log)-1]
		}
		return found
	}},
	{"shown UID changed", true, func(rng *rand.Rand, h *history.History) bool {
		o, found := operation(rng, h, done(history.Get))
		if found {
			o.Got.UID += "x"
		}
		return found
	}},
	{"object came back", true, func(rng *rand.Rand, h *history.History) bool {
		i, found := pick(rng, len(h.Writes), func(i int) bool { return h.Writes[i].Deleted })
		if found {
			w := h.Writes[i]
			w.Deleted, w.Created, w.Previous, w.Revision = false, true, 0, h.Writes[len(h.Writes)-1].Revision+1
			h.Writes = append(h.Writes, w)
		}
		return found
	}},
	{"value below another key", true, func(rng *rand.Rand, h *history.History) bool {
		i, found := pick(rng, len(h.Writes), func(int) bool { return true })
		if found {
			h.Writes[i].Name += "x"
		}
		return found
	}},
	{"log disordered", true, func(rng *rand.Rand, h *history.History) bool {
		i, found := pick(rng, len(h.Writes)-1, func(i int) bool { return i >= 0 })
		if found {
			h.Writes[i], h.Writes[i+1] = h.Writes[i+1], h.Writes[i]
		}
		return found
	}},
	{"event lost", true, func(rng *rand.Rand, h *history.History) bool {
		s, event, found := inner(rng, h)
		if found {
			s.Events = slices.Delete(s.Events, event, event+1)
		}
		return found
	}},
	{"event twice", true, func(rng *rand.Rand, h *history.History) bool {
		s, event, found := inner(rng, h)
		if found {
			s.Events = slices.Insert(s.Events, event+1, s.Events[event])
		}
		return found
	}},
	{"events exchanged", true, func(rng *rand.Rand, h *history.History) bool {
		s, event, found := inner(rng, h)
		if found {
			s.Events[event], s.Events[event+1] = s.Events[event+1], s.Events[event]
		}
		return found
	}},
	{"event of another type", true, func(rng *rand.Rand, h *history.History) bool {
		s, event, found := inner(rng, h)
		if found {
			e := &s.Events[event]
			e.Type = map[string]string{"ADDED": "MODIFIED", "MODIFIED": "DELETED", "DELETED": "ADDED"}[e.Type]
		}
		return found
	}},
	{"event with other bytes", true, func(rng *rand.Rand, h *history.History) bool {
		s, event, found := inner(rng, h)
		if found {
			s.Events[event].Log = append(s.Events[event].Log, "x")
		}
		return found
	}},
	{"bookmark ahead", false, func(rng *rand.Rand, h *history.History) bool {
		i, found := pick(rng, len(h.Sessions), func(i int) bool {
			return slices.ContainsFunc(h.Sessions[i].Events, func(e history.Event) bool { return e.Type == "BOOKMARK" })
		})
		if found {
			events := h.Sessions[i].Events
			events[slices.IndexFunc(events, func(e history.Event) bool { return e.Type == "BOOKMARK" })].Revision += 3
		}
		return found
	}},
	{"initial event lost", true, func(rng *rand.Rand, h *history.History) bool {
		i, found := pick(rng, len(h.Sessions), func(i int) bool {
			s := &h.Sessions[i]
			return s.Initial && len(s.Events) > 1 && slices.ContainsFunc(s.Events[1:], func(e history.Event) bool { return e.InitialEnd }) &&
				s.Events[0].Type == "ADDED" && !slices.ContainsFunc(s.Events[1:], func(e history.Event) bool { return e.Name == s.Events[0].Name && !e.InitialEnd })
		})
		if found {
			s := &h.Sessions[i]
			// Without its deletion behind, nothing explains that it is missing.
			if gone := removedBetween(h, s); gone {
				return false
			}
			s.Events = s.Events[1:]
		}
		return found
	}},
	{"list misses an item", true, func(rng *rand.Rand, h *history.History) bool {
		o, found := operation(rng, h, func(o *history.Operation) bool {
			return o.Verb == history.List && o.Outcome == history.Done && len(o.Items) > 0 && o.Reason == ""
		})
		if found {
			i := rng.IntN(len(o.Items))
			o.Items = slices.Delete(o.Items, i, i+1)
		}
		return found
	}},
	{"list shows an item twice", true, func(rng *rand.Rand, h *history.History) bool {
		o, found := operation(rng, h, func(o *history.Operation) bool {
			return o.Verb == history.List && o.Outcome == history.Done && len(o.Items) > 0
		})
		if found {
			o.Items = append(o.Items, o.Items[0])
		}
		return found
	}},
	{"list of another revision", false, func(rng *rand.Rand, h *history.History) bool {
		o, found := operation(rng, h, func(o *history.Operation) bool {
			return o.Verb == history.List && o.Outcome == history.Done && len(o.Items) > 0 && o.Mode == ""
		})
		if found {
			o.ListRevision -= 2
			o.PageRevisions = nil
		}
		return found
	}},
	{"read moved behind everything", false, func(rng *rand.Rand, h *history.History) bool {
		o, found := operation(rng, h, func(o *history.Operation) bool {
			return o.Verb == history.Get && o.Outcome == history.Done && o.Mode == "" && o.Got.Revision < h.Writes[len(h.Writes)-1].Revision-3
		})
		if found {
			o.Call = h.Operations[len(h.Operations)-1].Call + 1e9
			o.Return = o.Call + 1
		}
		return found
	}},
	{"schema of an answer too old", false, func(rng *rand.Rand, h *history.History) bool {
		o, found := operation(rng, h, func(o *history.Operation) bool { return done(history.Get)(o) && o.Got.Schema > 0 })
		if found {
			o.Got.Schema--
		}
		return found
	}},
	{"schema of a write too old", false, func(rng *rand.Rand, h *history.History) bool {
		i, found := pick(rng, len(h.Writes), func(i int) bool { return h.Writes[i].Schema > 0 && !h.Writes[i].Deleted })
		if found {
			h.Writes[i].Schema--
		}
		return found
	}},
	{"cache misses an item", true, func(rng *rand.Rand, h *history.History) bool {
		i, found := pick(rng, len(h.Caches), func(i int) bool { return len(h.Caches[i].Items) > 0 })
		if found {
			h.Caches[i].Items = h.Caches[i].Items[1:]
		}
		return found
	}},
	{"token goes back", true, func(_ *rand.Rand, h *history.History) bool {
		h.Leads = append(h.Leads, history.Lead{Holder: "late", Token: 0, Revision: h.Leads[len(h.Leads)-1].Revision + 1})
		return true
	}},
	{"quota exceeded", true, func(rng *rand.Rand, h *history.History) bool {
		h.Quotas[rng.IntN(len(h.Quotas))].Count = 6
		return true
	}},
}

// removedBetween reports whether an initial object was deleted before the initial events
// ended: then the state without it is a state, too.
func removedBetween(h *history.History, s *history.Session) bool {
	end := slices.IndexFunc(s.Events, func(e history.Event) bool { return e.InitialEnd })
	return slices.ContainsFunc(h.Writes, func(w history.Write) bool {
		return w.Name == s.Events[0].Name && w.Revision > s.Events[0].Revision && w.Revision <= s.Events[end].Revision
	})
}

// TestMutations spoils simulated histories at random places: what cannot be right is
// found each time, the rest often enough.
func TestMutations(t *testing.T) {
	const tries = 20
	for _, m := range mutations {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			tried, found := 0, 0
			by := map[string]int{}
			for seed, bytes := range pool() {
				if tried == tries {
					break
				}
				h := new(history.History)
				if err := json.Unmarshal(bytes, h); err != nil {
					t.Fatal(err)
				}
				if len(h.Writes) < 2 || !m.mutate(rand.New(rand.NewPCG(uint64(seed), 1)), h) {
					continue
				}
				tried++
				violations := All(h)
				for _, v := range violations {
					by[v.Checker]++
				}
				if len(violations) > 0 {
					found++
				} else if m.always {
					t.Errorf("seed %d: not found", seed)
				}
			}
			t.Logf("%d of %d found, by %s", found, tried, fmt.Sprint(by))
			if tried < tries/3 {
				t.Errorf("only %d histories have a place for it", tried)
			}
			if found*4 < tried {
				t.Errorf("only %d of %d found", found, tried)
			}
		})
	}
}
