package generate

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/espalier-dev/espalier/conformance/oracle"
)

func TestEditsAreJSONAndSpread(t *testing.T) {
	p := plan(t)
	same, n := 0, 2000
	for seed := range uint64(n) {
		old, other := p.Append(nil, seed, Options{Mode: Breach, Size: 400}), p.Append(nil, seed+1, Options{Mode: Breach, Size: 400})
		before := bytes.Clone(old)
		edited := Edit(old, other, seed)
		if !json.Valid(edited) {
			t.Fatalf("seed %d is no JSON:\n%s", seed, edited)
		}
		if !bytes.Equal(before, old) {
			t.Fatalf("seed %d changed the old object", seed)
		}
		if !bytes.Equal(edited, Edit(old, other, seed)) {
			t.Fatalf("seed %d gave two results", seed)
		}
		if bytes.Equal(edited, old) {
			same++
		}
	}
	if same < n/20 || same > n/2 {
		t.Errorf("%d of %d edits change nothing", same, n)
	}
}

// Objects made to breach their schema must often be valid, and often not, for many reasons.
func TestBreachesSpread(t *testing.T) {
	p := plan(t)
	s, err := oracle.Compile([]byte(schema))
	if err != nil {
		t.Fatal(err)
	}
	const n = 3000
	valid, kinds := 0, map[string]int{}
	for seed := range uint64(n) {
		b := p.Append(nil, seed, Options{Mode: Breach, Size: 500, Compact: true})
		v := s.Validate(b, oracle.ValidateOptions{Scope: oracle.Cluster})
		if v.Undecodable != nil || v.Panic != nil {
			t.Fatalf("seed %d: %v\n%s", seed, v.String(), b)
		}
		if v.Valid() {
			valid++
		}
		for _, e := range v.Errors {
			kinds[e[:bytes.IndexByte([]byte(e), '|')]]++
		}
	}
	t.Logf("%d of %d valid, %v", valid, n, kinds)
	if valid < n/10 || valid > n*9/10 || len(kinds) < 6 {
		t.Errorf("lopsided: %d of %d valid, %v", valid, n, kinds)
	}
}
