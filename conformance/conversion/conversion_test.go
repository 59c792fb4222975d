package conversion

import (
	"flag"
	"testing"

	"github.com/espalier-dev/espalier/crd/conversion/trial"
)

var (
	objects = flag.Int("objects", 100, "random objects of each version")
	made    = flag.Int("made", 10, "rule sets that are made")
	actual  = flag.Int("real", 10, "rule sets of real CRDs")
)

func try(t *testing.T, s Set) {
	t.Helper()
	r, err := Try(t.Context(), s, trial.Options{Objects: *objects, Seed: 3, Violations: 2})
	if err != nil {
		t.Error(err)
		return
	}
	for i := range r.Violations {
		t.Error(Explain(s, &r.Violations[i]))
	}
	if r.Objects < *objects {
		t.Errorf("%s: only %d objects", s.Name, r.Objects)
	}
}

func TestMadeRules(t *testing.T) {
	for seed := range uint64(*made) {
		s, err := Made(seed)
		if err != nil {
			t.Fatal(err)
		}
		try(t, s)
	}
}

func TestRulesOfRealCRDs(t *testing.T) {
	sets, skipped, err := Real(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d rule sets of real CRDs; %d skipped: %v", len(sets), len(skipped), skipped)
	if len(sets) == 0 {
		t.Skip("the corpus has no CRD whose versions differ")
	}
	n := min(*actual, len(sets))
	for i := range n {
		try(t, sets[i*len(sets)/n])
	}
}
