package expression

import (
	"bytes"
	"slices"
	"testing"

	"github.com/espalier-dev/espalier/conformance/oracle"
)

// The generator is of use only if most of what it makes compiles, and objects reach the rules.
func TestMostRulesCompile(t *testing.T) {
	rules, refused, blocked, objects := 0, 0, 0, 0
	for seed := range uint64(150) {
		c := New(seed)
		if again := New(seed); !bytes.Equal(again.Schema, c.Schema) {
			t.Fatalf("seed %d gives two schemas", seed)
		}
		theirs := oracle.Check(c.Schema, false)
		if theirs.Panic != nil {
			continue
		}
		if !theirs.Accepted() {
			t.Logf("seed %d: %v\n%s", seed, theirs, c.Schema)
			continue
		}
		rules += len(c.Rules)
		if testing.Verbose() {
			for _, e := range theirs.CEL {
				t.Log(e)
			}
		}
		for _, r := range c.Rules {
			if slices.ContainsFunc(theirs.CEL, r.Concerns) {
				refused++
			}
		}
		s, err := oracle.Compile(c.Schema)
		if err != nil {
			t.Fatal(err)
		}
		for i := range uint64(4) {
			objects++
			object := c.Object(i)
			if again := c.Object(i); !bytes.Equal(again, object) {
				t.Fatalf("seed %d gives two objects", i)
			}
			if v := s.Validate(object, oracle.ValidateOptions{}); v.Blocked {
				blocked++
			}
		}
	}
	t.Logf("%d rules, %d errors about them; %d objects, %d invalid for other reasons", rules, refused, objects, blocked)
	if refused > rules*35/100 {
		t.Errorf("%d of %d rules are refused", refused, rules)
	}
	if blocked > objects/4 {
		t.Errorf("the rules of %d of %d objects are not evaluated", blocked, objects)
	}
}

// An edge is found only if the schema of each bound is accepted apart from its rules.
func TestEdgesAreRepeatable(t *testing.T) {
	for seed := range uint64(20) {
		a, b := NewBound(seed), NewBound(seed)
		if !bytes.Equal(a.Schema(7), b.Schema(7)) || bytes.Equal(a.Schema(7), a.Schema(8)) {
			t.Errorf("bound %d: %s", seed, a.Schema(7))
		}
		if theirs := oracle.Check(a.Schema(1000), false); theirs.Panic == nil && !theirs.Accepted() {
			t.Errorf("bound %d: %v", seed, theirs)
		}
		x, y := NewBudget(seed), NewBudget(seed)
		if !bytes.Equal(x.Schema, y.Schema) || len(x.Object(20)) <= len(x.Object(10)) {
			t.Errorf("budget %d: %s", seed, x.Schema)
		}
		if theirs := oracle.Check(x.Schema, false); !theirs.Accepted() {
			t.Errorf("budget %d: %v", seed, theirs)
		}
	}
}
