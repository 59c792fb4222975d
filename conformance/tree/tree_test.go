package tree

import "testing"

func TestRoundTripKeepsEverythingAsWritten(t *testing.T) {
	for in, want := range map[string]string{
		`{}`:                                "{}",
		` { "a" : 1.0 , "a":-0} `:           `{"a":1.0,"a":-0}`,
		"[ 1e400,\n\"\\ud800\xff\", null ]": "[1e400,\"\\ud800\xff\",null]",
		`{"\u0061":[{}]}`:                   `{"\u0061":[{}]}`,
	} {
		n, err := Parse([]byte(in))
		if err != nil {
			t.Errorf("%q: %v", in, err)
			continue
		}
		if got := string(n.Bytes()); got != want {
			t.Errorf("%q became %q, want %q", in, got, want)
		}
		if got := string(n.Clone().Bytes()); got != want {
			t.Errorf("clone of %q became %q", in, got)
		}
	}
}

func TestBrokenDocumentsAreRefused(t *testing.T) {
	for _, in := range []string{``, `{`, `[1`, `[1 2]`, `{"a"}`, `{"a":}`, `{a:1}`, `{} {}`, `{"a":1,}`, `"abc`, `[,]`} {
		if n, err := Parse([]byte(in)); err == nil {
			t.Errorf("%q was read as %s", in, n.Bytes())
		}
	}
}

func TestEditing(t *testing.T) {
	n := Must(`{"a":1,"b":2,"\u0061":3}`)
	if got := n.Get("a").Raw; got != "3" {
		t.Errorf("the last duplicate should win, got %s", got)
	}
	n.Set("b", Str("x"))
	n.Del("a")
	n.Set("c", Arr(Lit("true")))
	if got := string(n.Bytes()); got != `{"a":1,"b":"x","c":[true]}` {
		t.Error(got)
	}
	if n.Size() != 5 {
		t.Errorf("size %d", n.Size())
	}
}
