package check

import (
	"encoding/json"
	"io"
	"math"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/espalier-dev/espalier/conformance/robustness/history"
)

// FuzzAll asks for one thing: no history, however malformed, makes a checker panic.
func FuzzAll(f *testing.F) {
	seeds := []*history.History{base(), {}, simulate(3, 120), simulate(4, 120)}
	for _, h := range seeds {
		bytes, err := json.Marshal(h)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(bytes)
	}
	f.Add([]byte(`{"Operations":[{"Verb":"list","Outcome":"done","Mode":"exact:x/y/z"}],"Writes":[{"Deleted":true}],"Sessions":[{"From":-1,"Selector":"a in (b,,!c(","Events":[{"Type":"ADDED"},{"Type":"BOOKMARK","Revision":-9223372036854775808}]}]}`))
	f.Fuzz(func(_ *testing.T, bytes []byte) {
		h := new(history.History)
		if json.Unmarshal(bytes, h) != nil {
			return
		}
		// Histories that porcupine cannot decide take their time and find nothing more.
		if len(h.Operations) > 60 {
			return
		}
		for _, v := range All(h) {
			_ = v.String()
		}
		Print(io.Discard, h)
	})
}

// TestNil shows that an empty history has no violations.
func TestNil(t *testing.T) {
	Print(io.Discard, nil)
	if All(nil) != nil || One(&history.History{}, "nobody") != nil || len(All(&history.History{})) != 0 {
		t.Error("an empty history has violations")
	}
	if err := Picture(t.TempDir()+"/p.html", nil, "k"); err == nil {
		t.Error("nothing was drawn")
	}
}

// TestMalformed changes fields of simulated histories at random, also to what no client
// can have recorded, and asks that nothing panics.
func TestMalformed(t *testing.T) {
	violations := 0
	for round := range 2 {
		for seed, bytes := range pool() {
			h := new(history.History)
			if err := json.Unmarshal(bytes, h); err != nil {
				t.Fatal(err)
			}
			rng := rand.New(rand.NewPCG(uint64(seed), uint64(round)))
			for range 1 << rng.IntN(6) {
				disturb(rng, reflect.ValueOf(h).Elem())
			}
			found := All(h)
			violations += len(found)
			if len(found) > 0 && seed%20 == 0 {
				Minimise(h, found[0].Checker)
			}
			Print(io.Discard, h)
		}
	}
	if violations == 0 {
		t.Error("nothing was disturbed")
	}
}

// disturb changes one random field somewhere below a value.
func disturb(rng *rand.Rand, v reflect.Value) {
	switch v.Kind() {
	case reflect.Struct:
		disturb(rng, v.Field(rng.IntN(v.NumField())))
	case reflect.Slice:
		n := v.Len()
		switch {
		case n == 0 || rng.IntN(20) == 0:
			v.Set(reflect.Append(v, reflect.Zero(v.Type().Elem())))
		case rng.IntN(20) == 0:
			v.SetLen(rng.IntN(n))
		case rng.IntN(10) == 0:
			v.Index(rng.IntN(n)).Set(v.Index(rng.IntN(n)))
		default:
			disturb(rng, v.Index(rng.IntN(n)))
		}
	case reflect.Int, reflect.Int64:
		numbers := []int64{0, -1, 1, 12, 20, v.Int() + 1, v.Int() - 1, math.MaxInt64, math.MinInt64}
		v.SetInt(numbers[rng.IntN(len(numbers))])
	case reflect.Bool:
		v.SetBool(!v.Bool())
	case reflect.String:
		texts := []string{"", "x", "ns0/k0", "ns1/k1", "exact:", "min:-1/0", "0/-3", "a in (", "!", ",", "/", "done", "refused", "unknown", "list", "create", "delete", "deletecollection", "ADDED", "BOOKMARK", "c1", "p2"}
		v.SetString(texts[rng.IntN(len(texts))])
	case reflect.Map:
		v.Set(reflect.ValueOf(map[string]string{"": "", "m0": "c1", "color": "red"}))
	}
}
