package check

import (
	"encoding/json"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/conformance/robustness/history"
)

// TestReductions shows that what Minimise takes away does not make a correct history
// incorrect.
func TestReductions(t *testing.T) {
	for seed, bytes := range pool() {
		rng := rand.New(rand.NewPCG(uint64(seed), 2))
		h := new(history.History)
		if err := json.Unmarshal(bytes, h); err != nil {
			t.Fatal(err)
		}
		var names []string
		m := &minimiser{best: h, checker: "any"}
		// Each reduction is done to a random part, one on top of the other.
		for range 4 {
			var name string
			if name = reduce(rng, m); name != "" {
				names = append(names, name)
			}
		}
		if violations := All(m.best); len(violations) > 0 {
			t.Fatalf("seed %d: after %v a correct history has a violation: %s", seed, names, violations[0])
		}
	}
}

func reduce(rng *rand.Rand, m *minimiser) string {
	h := m.best
	random := func(int) bool { return rng.IntN(2) == 0 }
	switch rng.IntN(6) {
	case 0:
		kept := map[string]bool{}
		m.best = withoutKeys(h, func(key string) bool {
			if _, known := kept[key]; !known {
				kept[key] = random(0)
			}
			return kept[key]
		})
		return "keys"
	case 1:
		out := *h
		out.Sessions, out.Caches, out.Leads, out.Quotas = some(h.Sessions, random), some(h.Caches, random), some(h.Leads, random), some(h.Quotas, random)
		m.best = &out
		return "parts"
	case 2:
		if slices.ContainsFunc(h.Acks, func(a history.Ack) bool { return a.Deleted }) {
			return ""
		}
		out := *h
		out.Acks = some(h.Acks, random)
		m.best = &out
		return "acks"
	case 3:
		out := *h
		removable := map[int]bool{}
		for _, i := range removableOperations(h) {
			removable[i] = true
		}
		out.Operations = some(h.Operations, func(i int) bool { return !removable[i] || random(0) })
		m.best = &out
		return "operations"
	case 4:
		out := *h
		out.Sessions = slices.Clone(h.Sessions)
		for i := range out.Sessions {
			s := &out.Sessions[i]
			if n := len(s.Events); n > 0 {
				s.Events = s.Events[:rng.IntN(n+1)]
				resume(s, rng.IntN(len(s.Events)+1))
			}
		}
		m.best = &out
		return "events"
	default:
		// How a CRD goes and whether an owner lives is decided by the end.
		if len(h.Writes) == 0 || slices.ContainsFunc(h.Acks, func(a history.Ack) bool { return a.Deleted }) ||
			slices.ContainsFunc(h.Writes, func(w history.Write) bool { return len(w.Owners) > 0 }) {
			return ""
		}
		m.best = until(newIndex(h), h.Writes[rng.IntN(len(h.Writes))].Revision)
		return "end"
	}
}

// TestMinimise minimises spoilt histories: the same rule of the same checker complains
// about what is left, and little is left.
func TestMinimise(t *testing.T) {
	before, after, tried := 0, 0, 0
	for n, m := range mutations {
		if !m.always {
			continue
		}
		h := new(history.History)
		if err := json.Unmarshal(pool()[10+n], h); err != nil {
			t.Fatal(err)
		}
		if len(h.Writes) < 2 || !m.mutate(rand.New(rand.NewPCG(uint64(n), 1)), h) {
			continue
		}
		found := All(h)
		if len(found) == 0 {
			t.Errorf("%s: not found", m.name)
			continue
		}
		first := found[0]
		small := Minimise(h, first.Checker)
		tried, before, after = tried+1, before+weight(h), after+weight(small)
		if !slices.ContainsFunc(One(small, first.Checker), func(v Violation) bool { return v.Rule == first.Rule }) {
			t.Errorf("%s: the minimised history does not have %s", m.name, first)
		}
	}
	t.Logf("%d histories: %d parts became %d", tried, before, after)
	if tried < 10 || after*3 > before {
		t.Errorf("%d histories: %d parts became only %d", tried, before, after)
	}
}

// TestMinimiseBase shows how little is left of a stale read.
func TestMinimiseBase(t *testing.T) {
	h := base()
	o := &h.Operations[opGetNew]
	o.Got = h.Operations[opGetB].Got
	o.Got.Schema = 1
	for _, checker := range []string{Linear, Fresh} {
		small := Minimise(h, checker)
		var b strings.Builder
		Print(&b, small)
		t.Logf("%s: %d of %d\n%s", checker, weight(small), weight(h), b.String())
		if weight(small) > 12 {
			t.Errorf("%s: %d parts are left", checker, weight(small))
		}
	}
	if good := base(); Minimise(good, Fresh) != good {
		t.Error("a correct history was minimised")
	}
}

func TestPrint(t *testing.T) {
	h := base()
	h.Schedule = "robustness -seed 7"
	h.Faults = []history.Fault{{Name: "cut replica 1", Begin: 1, End: 2}}
	var b strings.Builder
	Print(&b, h)
	for _, want := range []string{
		"repeat: robustness -seed 7", "patch ns/b p2 (json)", "unknown", "refused 409 AlreadyExists", "end of initial events", "cut replica 1",
		"schema 1 acknowledged, storage v2", "example.dev/things/ns/a", "update ns/b u1 if at 12", "color=red", "token 1", "cache",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the table does not have %q", want)
		}
	}
}
