package jsondoc

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
)

// TestStringsAreWrittenAsUpstreamWritesThem compares all pairs of bytes. Most of
// them are no UTF-8.
func TestStringsAreWrittenAsUpstreamWritesThem(t *testing.T) {
	compare := func(s string) {
		want, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		if got := AppendString(nil, s); string(got) != string(want) {
			t.Errorf("%q is written as %s, want %s", s, got, want)
		}
	}
	for a := range 256 {
		for b := range 256 {
			compare(string([]byte{byte(a), byte(b)}))
		}
	}
	for _, s := range []string{"", "a", "x\u2028y\u2029z\u2027\u202a", "ü€😀", "\xe2\x80", "\xf0\x9f\x98", "\ufffd", "\x7f\x80\x81"} {
		compare(s)
	}
}

// A value that JSON cannot express is an error, wherever it is. What came before stays.
func TestAppendAnyRefusesInfinity(t *testing.T) {
	for _, x := range []any{math.Inf(1), []any{1.5, math.Inf(1)}, map[string]any{"a": math.Inf(1)}} {
		if got, err := AppendAny([]byte("x="), x); err == nil || !strings.HasPrefix(string(got), "x=") {
			t.Errorf("%v: %s, %v", x, got, err)
		}
	}
}

func TestNumbersAreKept(t *testing.T) {
	for src, want := range map[string]string{"1e2": "100", "-0": "0", "1.50": "1.5", `"\u0061"`: `"a"`} {
		d, err := Parse([]byte(src), Limits{})
		if err != nil {
			t.Fatal(err)
		}
		if got := string(d.AppendCanonical(nil, Root)); got != want {
			t.Errorf("%s is written as %s, want %s", src, got, want)
		}
		if want[0] != '"' {
			want = src
		}
		var w Writer
		w.Reset(d, nil)
		w.KeepNumbers = true
		w.Scalar(Root)
		if got, _ := w.Finish(); string(got) != want {
			t.Errorf("%s is kept as %s, want %s", src, got, want)
		}
		d.Release()
	}
}

func TestNilsAreNull(t *testing.T) {
	for _, x := range []any{nil, []any(nil), map[string]any(nil), map[string]any{"a": nil}} {
		want, err := json.Marshal(x)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := AppendAny([]byte("x="), x); err != nil || string(got) != "x="+string(want) {
			t.Errorf("%#v: %s, %v", x, got, err)
		}
	}
}

// The canonical form of a part of a document takes memory for the part: it was allocated for the whole document, so that
// reading n parts took the square of n.
func TestPartsTakeTheirOwnMemory(t *testing.T) {
	doc, err := Parse([]byte(`{"large":"`+strings.Repeat("x", 1<<20)+`","small":[1,"a"]}`), Limits{})
	if err != nil {
		t.Fatal(err)
	}
	defer doc.Release()
	v, _ := doc.Get(Root, "small")
	if got := doc.AppendCanonical(nil, v); string(got) != `[1,"a"]` || cap(got) > 64 {
		t.Errorf("%s has room for %d bytes", got, cap(got))
	}
}
