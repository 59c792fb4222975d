package mistakes_test

import (
	"slices"
	"testing"

	"github.com/espalier-dev/espalier/conformance/engine"
	"github.com/espalier-dev/espalier/conformance/mistakes"
)

// TestMistakesAreNoticed: Espalier's engine says of each case what upstream's code says, with the same errors.
func TestMistakesAreNoticed(t *testing.T) {
	cases, err := mistakes.Cases()
	if err != nil {
		t.Fatal(err)
	}
	ours := mistakes.Evaluator{CRD: engine.CRD, Resource: func(doc []byte, version string) (mistakes.Resource, error) { return engine.NewResource(doc, version) }}
	wrong, right := map[mistakes.Form]int{}, map[mistakes.Form]int{}
	for i := range cases {
		c := &cases[i]
		want, err := mistakes.Upstream().Evaluate(c)
		if err != nil {
			t.Error(err)
			continue
		}
		got, err := ours.Evaluate(c)
		if err != nil {
			t.Error(err)
			continue
		}
		slices.Sort(want)
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("%s (%s):\nours     %q\nupstream %q", c.Name, c.Form, got, want)
		}
		if len(want) > 0 {
			wrong[c.Form]++
		} else {
			right[c.Form]++
		}
		t.Logf("%s (%s): %q", c.Name, c.Form, want)
	}
	for _, form := range []mistakes.Form{mistakes.Object, mistakes.Update, mistakes.CRD, mistakes.Change} {
		if wrong[form] == 0 || right[form] == 0 {
			t.Errorf("of the form %q there are %d mistakes and %d correct cases: a tool that always says the same would pass", form, wrong[form], right[form])
		}
	}
}
