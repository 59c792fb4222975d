package impact_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/crd/impact"
)

// What is hidden today, alone or with a field around it, is not lost by the change; and what is
// hidden with a field around it afterwards does not show.
func TestFieldsAroundHiddenOnes(t *testing.T) {
	const (
		without = `v1 served storage {"type":"object","properties":{"a":{"type":"string"}}}`
		empty   = `v1 served storage {"type":"object","properties":{"a":{"type":"string"},"o":{"type":"object"}}}`
		some    = `v1 served storage {"type":"object","properties":{"a":{"type":"string"},"o":{"type":"object","properties":{"x":{"type":"integer"}}}}}`
		dotted  = `v1 served storage {"type":"object","properties":{"a":{"type":"string"},"o.x":{"type":"integer"}}}`
	)
	for name, c := range map[string]struct {
		old, now, spec string
		lost, kept     []string
	}{
		"shows as empty":                {without, empty, `{"a":"s","o":{"x":1}}`, nil, []string{"spec.o"}},
		"shows in part":                 {without, some, `{"a":"s","o":{"x":1,"y":2}}`, nil, []string{"spec.o"}},
		"an empty one goes":             {empty, without, `{"a":"s","o":{"x":1}}`, []string{"spec.o"}, nil},
		"shows all that it has":         {empty, some, `{"o":{"x":1}}`, nil, []string{"spec.o.x"}},
		"loses all that it has":         {some, empty, `{"o":{"x":1,"y":2}}`, []string{"spec.o.x"}, nil},
		"a name that looks like a path": {dotted, without, `{"o":{"x":1},"o.x":2}`, []string{"spec.o.x"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			x := outcome(t, crdOf(t, "None", c.old), crdOf(t, "None", c.now), impact.Options{}, stored("v1", c.spec))
			if !slices.Equal(x.Lost, c.lost) || !slices.Equal(x.Kept, c.kept) || (x.Effects&impact.LosesFields != 0) != (len(c.lost) > 0) || (x.Effects&impact.KeepsFields != 0) != (len(c.kept) > 0) {
				t.Errorf("%+v", x)
			}
		})
	}
}

// The keys of namespaced objects are not those of others.
func TestScope(t *testing.T) {
	old := crdOf(t, "None", today)
	now := crdOf(t, "None", today)
	now.Namespaced = false
	if x := outcome(t, old, now, impact.Options{}, stored("v1", `{}`)); x.Effects&impact.Unreadable == 0 || x.Effects&impact.Loss == 0 {
		t.Errorf("%+v", x)
	}
}

// The size of a summary does not depend on that of the objects.
func TestLongTexts(t *testing.T) {
	const open = `v1 served storage {"type":"object","x-kubernetes-preserve-unknown-fields":true,"properties":{"s":{"type":"string"}}}`
	old, now := crdOf(t, "None", open), crdOf(t, "None", `v1 served storage {"type":"object","properties":{"s":{"type":"string","enum":["a"]}}}`)
	c, err := impact.New(old, now, impact.Options{})
	if err != nil {
		t.Fatal(err)
	}
	summary := impact.Summary{Most: 1000}
	for i := range 30 {
		spec := `{"s":"` + strings.Repeat("é", 20_000) + `"`
		for j := range 20 {
			spec += fmt.Sprintf(`,"%d-%d%s":1`, i, j, strings.Repeat("x", 5000))
		}
		list, err := c.Page(t.Context(), [][]byte{stored("v1", spec+"}")})
		if err != nil {
			t.Fatal(err)
		}
		if list[0].Effects&(impact.LosesFields|impact.RefusedOnCreate) != impact.LosesFields|impact.RefusedOnCreate || len(list[0].Lost) != 20 {
			t.Fatalf("%v", list[0].Effects)
		}
		summary.Add(&list[0])
	}
	data, err := json.Marshal(&summary)
	if err != nil || len(data) > 2<<20 || !json.Valid(data) || strings.Contains(string(data), `\ufffd`) {
		t.Errorf("a summary of %d bytes, %v", len(data), err)
	}
}
