package history

import (
	"bytes"
	"testing"

	"github.com/espalier-dev/espalier/conformance/mutate"
	"github.com/espalier-dev/espalier/conformance/tree"
)

func maker(t *testing.T) *Maker {
	t.Helper()
	pool := &mutate.Pool{}
	if err := pool.Add("a", []byte(`{"type":"object","properties":{"spec":{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"array","items":{"type":"integer"}}}}}}`), 2); err != nil {
		t.Fatal(err)
	}
	return New(mutate.NewCRDs(pool), pool)
}

func TestHistoriesRepeat(t *testing.T) {
	m := maker(t)
	for seed := range uint64(200) {
		a, b := m.Begin(seed), m.Begin(seed)
		if !bytes.Equal(a.CRD, b.CRD) || a.Steps < 3 || a.Steps > 8 {
			t.Fatalf("seed %d: %d steps, %s\n%s", seed, a.Steps, a.CRD, b.CRD)
		}
		state := a.CRD
		for step := range a.Steps {
			doc, changes := m.Step(seed, step, state)
			again, _ := m.Step(seed, step, state)
			if !bytes.Equal(doc, again) || len(changes) == 0 || len(changes) > 2 {
				t.Fatalf("seed %d, step %d: %v\n%s\n%s", seed, step, changes, doc, again)
			}
			state = doc
		}
	}
}

// Every change of the table is made, and most change something.
func TestEveryChangeIsMade(t *testing.T) {
	m := maker(t)
	made, changed := map[string]int{}, map[string]int{}
	for seed := range uint64(4000) {
		state := Establish(m.Begin(seed).CRD)
		doc, changes := m.Step(seed, 0, state)
		for _, c := range changes {
			made[c]++
			if !bytes.Equal(doc, state) {
				changed[c]++
			}
		}
	}
	for _, c := range Changes() {
		if made[c] == 0 || changed[c] == 0 && c != "nothing" {
			t.Errorf("%s: made %d times, changed something %d times", c, made[c], changed[c])
		}
	}
	if Warns("none") || !Warns("format") || Warns("scope") {
		t.Error("a server warns of formats, and not of scopes")
	}
}

func TestEstablish(t *testing.T) {
	root := tree.Must(string(Establish([]byte(`{"metadata":{"resourceVersion":"1"},"spec":{"names":{"kind":"K"},"versions":[{"name":"v1","storage":true},{"name":"v2"}]}}`))))
	if got := string(root.Get("status").Get("storedVersions").Bytes()); got != `["v1"]` {
		t.Errorf("stored versions are %s", got)
	}
	if got := root.Get("metadata").Get("resourceVersion").Text(); got != "7" {
		t.Errorf("the resourceVersion is %s", got)
	}
	if root.Get("status").Get("acceptedNames").Get("kind").Text() != "K" {
		t.Error("names are not accepted")
	}
	if got := Establish([]byte("{")); string(got) != "{" {
		t.Errorf("what is no JSON became %s", got)
	}
}
