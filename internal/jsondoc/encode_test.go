package jsondoc

import (
	"encoding/json"
	"testing"
)

// TestStringsAreWrittenAsUpstreamWritesThem compares all pairs of bytes, of which most are
// no UTF-8.
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
