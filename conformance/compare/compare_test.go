package compare

import (
	"strings"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/conformance/oracle"
)

// A shrinker can be tested without a defect: this one looks for any object that has a certain thing in it.
func TestReduceFindsTheSmallest(t *testing.T) {
	for in, c := range map[string]struct{ need, want string }{
		`{"a":{"b":[1,2,{"c":"needle"}]},"d":{"e":"f"}}`: {`needle`, `{"a":"needle"}`},
		`{"a" : [ 1 , 2 ], "needle":[{"x":{}}]}`:         {`needle`, `{"needle":null}`},
		`{"a":1,"needle":tru`:                            {`needle`, `needle`},
	} {
		s := &shrinker{best: &Difference{Object: []byte(in)}, until: time.Now().Add(time.Minute)}
		s.reduce(func() []byte { return s.best.Object }, func(b []byte) *Difference {
			if strings.Contains(string(b), c.need) {
				return &Difference{Object: b}
			}
			return nil
		})
		if got := string(s.best.Object); got != c.want {
			t.Errorf("%s shrank to %s, want %s", in, got, c.want)
		}
	}
}

func TestEqual(t *testing.T) {
	object := func(bytes string, unknown ...string) oracle.Outcome {
		return oracle.Outcome{Bytes: []byte(bytes), Unknown: unknown}
	}
	refused := oracle.Outcome{Err: errText("no")}
	malformed := oracle.Outcome{Err: errText("bad"), Malformed: true}
	for _, c := range []struct {
		name         string
		ours, theirs oracle.Outcome
		want         bool
	}{
		{"same", object(`{}`, "a"), object(`{}`, "a"), true},
		{"bytes", object(`{}`), object(`{"a":1}`), false},
		{"unknown", object(`{}`, "a"), object(`{}`, "a", "a"), false},
		{"refused by both", refused, refused, true},
		{"other words", refused, oracle.Outcome{Err: errText("yes")}, false},
		{"malformed by both", malformed, oracle.Outcome{Err: errText("x"), Malformed: true}, true},
		{"refused by one", refused, object(`{}`), false},
		{"accepted by one", object(`{}`), malformed, false},
		{"malformed for refused", malformed, refused, false},
	} {
		if got := new(Pair).equal(c.ours, c.theirs); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}

type errText string

func (e errText) Error() string { return string(e) }

func TestVerdictsOfTheSame(t *testing.T) {
	for _, schema := range []string{`{"type":"object"}`, `{}`, `{"type":3}`} {
		if d, _ := Verdict([]byte(schema), false); d != nil {
			t.Error(d)
		}
	}
}
