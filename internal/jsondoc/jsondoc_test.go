package jsondoc

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	kjson "sigs.k8s.io/json"
)

// samples are documents whose reading is worth a look: each is compared with
// upstream's decoder and encoder, and seeds the fuzz target.
var samples = []string{
	`{}`, `[]`, `null`, `true`, `false`, `0`, `""`, ` { } `, "\t[\n]\r",
	`{"a":1,"b":[1,2,{"c":null}]}`,
	`{"b":1,"a":2}`, `{"a":1,"a":2}`, `{"a":1,"\u0061":2}`, `{"":1,"!":2}`, `{"!":1,"":2}`,
	`{"a":{"x":1},"b":0,"a":{"y":2}}`,
	`[0,-0,0.0,-0.0,1.0,1e3,1E+3,1e-7,0.000001,1e20,1e21,123456789012345678]`,
	`[9223372036854775807,9223372036854775808,-9223372036854775808,-9223372036854775809]`,
	`[9007199254740991,9007199254740993,1e308,4.9e-324,0.1e-400,100000000000000000000000]`,
	`1e400`, `-1e400`, `{"a":1,"a":1e999}`, `01`, `-`, `1.`, `1e`, `.5`, `+1`, `1e+`, `-01`, `00`, `1:`, `[1:2]`, `[1.5:2]`, `[1e2:3]`,
	`"\u003c\u003e\u0026<>&"`, `"\u2028\u2029` + "\u2028\u2029" + `"`, `"\u0000\u001f\u007f` + "\x7f" + `"`,
	`"\b\f\n\r\t\/\"\\"`, `"\u0008\u000c\u000A\u000d\u0009"`, `"\u003C"`,
	`"\ud800"`, `"\udc00"`, `"\ud83d\ude00"`, `"\ud83dx"`, `"\ud83d\u0041"`, `"\ud83d\ud83d\ude00"`,
	"\"\xff\"", "\"\xed\xa0\x80\"", "\"\xc3\x28\"", "{\"\xff\":1,\"\xfe\":2}", "\"\xef\xbf\xbd\"", "\xef\xbb\xbf{}",
	`"abc`, `"\x"`, `"\u12"`, `"\u12g4"`, "\"\n\"", `{"a"}`, `{"a":}`, `{"a":1,}`, `[1,]`, `[1 2]`, `{,}`, `{a:1}`, `nul`, `truex`, `tru`, `[`, `{`, `{"a"`, `]`, `{]`, `[}`, ``, ` `, `{} {}`, `{}x`, `"a" "b"`,
	`{"key with a long name":"value that is longer than eight bytes","another":"ünï"}`,
	`{"12345678":1,"12345678 ":2,"1234567":3,"12345678` + "\\u0000" + `":4}`,
}

func upstream(src []byte) (any, error) {
	var x any
	err := kjson.UnmarshalCaseSensitivePreserveInts(src, &x)
	return x, err
}

// compare checks one document against upstream's decoder and encoder.
func compare(t *testing.T, src []byte) {
	t.Helper()
	want, wantErr := upstream(src)
	d, err := Parse(src, Limits{})
	if (err == nil) != (wantErr == nil) {
		t.Fatalf("%q: error %v, upstream's %v", src, err, wantErr)
	}
	if err != nil {
		var se *SyntaxError
		if !errors.As(err, &se) || se.Offset < 0 || se.Offset > len(src) {
			t.Fatalf("%q: error %#v does not say where", src, err)
		}
		return
	}
	defer d.Release()
	if got := d.Any(Root); !reflect.DeepEqual(got, want) {
		t.Fatalf("%q: read as %#v, upstream reads %#v", src, got, want)
	}
	wantBytes, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	if got := d.AppendCanonical(nil, Root); !bytes.Equal(got, wantBytes) {
		t.Fatalf("%q: canonical form %q, want %q", src, got, wantBytes)
	}
	if got, err := AppendAny(nil, want); err != nil || !bytes.Equal(got, wantBytes) {
		t.Fatalf("%q: AppendAny %q, %v, want %q", src, got, err, wantBytes)
	}
	if got := bytes.Equal(src, wantBytes); got != d.Canonical() {
		t.Fatalf("%q: Canonical is %v, want %v", src, d.Canonical(), got)
	}
	var w Writer
	w.Reset(d, nil)
	w.Value(Root)
	if out, unchanged := w.Finish(); !bytes.Equal(out, wantBytes) || unchanged != d.Canonical() {
		t.Fatalf("%q: Writer gives %q, unchanged %v", src, out, unchanged)
	}
	checkTree(t, d, Root, want)
}

// checkTree compares the navigation methods with the decoded value.
func checkTree(t *testing.T, d *Doc, v Value, want any) {
	t.Helper()
	raw := d.Raw(v)
	if d.Kind(v) < Array && !json.Valid(raw) || d.Kind(v) >= Array && raw[0]+2 != raw[len(raw)-1] {
		t.Fatalf("%q: Raw(%d) is %q", d.src, v, d.Raw(v))
	}
	switch want := want.(type) {
	case map[string]any:
		if d.Len(v) != len(want) {
			t.Fatalf("%q: Len %d, want %d", d.src, d.Len(v), len(want))
		}
		seen, last := 0, -1
		for m := range d.Members(v) {
			key := d.Text(m.Key)
			if d.Offset(m.Key) <= last || string(d.Key(m.Key)) != key {
				t.Fatalf("%q: member %q out of order or of another key", d.src, key)
			}
			last = d.Offset(m.Key)
			x, ok := want[key]
			if !ok {
				t.Fatalf("%q: member %q is not there", d.src, key)
			}
			checkTree(t, d, m.Value, x)
			if got, ok := d.Get(v, key); !ok || got != m.Value {
				t.Fatalf("%q: Get(%q) is %d, want %d", d.src, key, got, m.Value)
			}
			seen++
		}
		if seen != len(want) {
			t.Fatalf("%q: %d members, want %d", d.src, seen, len(want))
		}
	case []any:
		if d.Len(v) != len(want) {
			t.Fatalf("%q: Len %d, want %d", d.src, d.Len(v), len(want))
		}
		for i, c := range d.Items(v) {
			checkTree(t, d, c, want[i])
			if got, ok := d.Index(v, i); !ok || got != c {
				t.Fatalf("%q: Index(%d) is %d, want %d", d.src, i, got, c)
			}
		}
	case string:
		if got := string(d.AppendText(nil, v)); got != want {
			t.Fatalf("%q: AppendText %q, want %q", d.src, got, want)
		}
	}
}

func TestAgainstUpstream(t *testing.T) {
	for _, s := range samples {
		compare(t, []byte(s))
	}
}

// TestRandomDocuments builds documents from fragments, so that every pair of
// oddities meets somewhere.
func TestRandomDocuments(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 5000 {
		compare(t, randomDocument(r, nil, 4))
	}
}

func randomDocument(r *rand.Rand, b []byte, depth int) []byte {
	space := func() {
		if r.IntN(8) == 0 {
			b = append(b, []string{" ", "\n", "\t\r", "  "}[r.IntN(4)]...)
		}
	}
	scalars := []string{`1`, `-0`, `1.0`, `2.5e3`, `9223372036854775808`, `true`, `null`, `"x"`, `""`, `"<"`, `"\u00e9"`, `"é"`, `"\ud800"`, `"long enough to need two words"`, `"\\u0041"`}
	keys := []string{`"a"`, `"b"`, `"\u0061"`, `""`, `"aa"`, `"a\u0000"`, `"abcdefgh"`, `"abcdefghi"`, `"<"`, `"é"`, `"\u00e9"`, `"z"`}
	space()
	switch n := r.IntN(6); {
	case depth == 0 || n < 2:
		b = append(b, scalars[r.IntN(len(scalars))]...)
	case n < 5:
		b = append(b, '{')
		space()
		for i := range r.IntN(22) * r.IntN(2) {
			if i > 0 {
				b = append(b, ',')
			}
			space()
			b = append(b, keys[r.IntN(len(keys))]...)
			space()
			b = append(b, ':')
			b = randomDocument(r, b, depth-1)
			space()
		}
		b = append(b, '}')
	default:
		b = append(b, '[')
		for i := range r.IntN(4) {
			if i > 0 {
				b = append(b, ',')
			}
			b = randomDocument(r, b, depth-1)
		}
		space()
		b = append(b, ']')
	}
	space()
	return b
}

func TestManyKeys(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for _, prefix := range []string{"", "x", "a-prefix-of-more-than-eight-bytes-", strings.Repeat("0123456789", 20)} {
		for _, n := range []int{15, 16, 17, 100, 1000} {
			var b strings.Builder
			b.WriteByte('{')
			for i := range n {
				if i > 0 {
					b.WriteByte(',')
				}
				k := prefix + strings.Repeat(string(rune('a'+r.IntN(2))), r.IntN(40)) + fmt.Sprint(r.IntN(n))
				if r.IntN(5) == 0 {
					k = prefix + strings.Repeat(`\u0000`, r.IntN(9))
				}
				fmt.Fprintf(&b, `"%s":%d`, k, i)
			}
			b.WriteByte('}')
			compare(t, []byte(b.String()))
		}
	}
}

func TestLimits(t *testing.T) {
	deep := strings.Repeat("[", 10000) + strings.Repeat("]", 10000)
	for _, s := range []string{deep, "[" + deep + "]"} {
		_, want := upstream([]byte(s))
		d, err := Parse([]byte(s), Limits{})
		if (err == nil) != (want == nil) {
			t.Errorf("nesting of %d: error %v, upstream's %v", len(s)/2, err, want)
		}
		if err == nil {
			if got := d.AppendCanonical(nil, Root); string(got) != s {
				t.Errorf("nesting of %d comes out as %d bytes", len(s)/2, len(got))
			}
			d.Release()
		}
	}
	if _, err := Parse([]byte(`[[]]`), Limits{MaxDepth: 1}); err == nil {
		t.Error("depth 2 passes a limit of 1")
	}
	if _, err := Parse([]byte(`[1]`), Limits{MaxBytes: 2}); err == nil {
		t.Error("3 bytes pass a limit of 2")
	}
	d, err := Parse([]byte(`[1]`), Limits{MaxBytes: 3, MaxDepth: 1})
	if err != nil {
		t.Fatal(err)
	}
	d.Release()
	for _, open := range []string{"[", `{"a":`} {
		if _, err := Parse([]byte(strings.Repeat(open, 2_000_000)), Limits{}); err == nil {
			t.Errorf("two million %q are accepted", open)
		}
	}
}

// TestSyntaxErrors: an error names the first byte that is wrong.
func TestSyntaxErrors(t *testing.T) {
	for src, want := range map[string]string{
		`[01]`:       `invalid JSON at byte 2: unexpected '1' after a leading zero`,
		`[-]`:        `invalid JSON at byte 2: unexpected ']' in a number; a digit was expected`,
		`[1.x]`:      `invalid JSON at byte 3: unexpected 'x' after a decimal point; a digit was expected`,
		`[1e]`:       `invalid JSON at byte 3: unexpected ']' in an exponent; a digit was expected`,
		`[1:2]`:      `invalid JSON at byte 2: unexpected ':' after a value; a comma or the end of its container was expected`,
		`[x]`:        `invalid JSON at byte 1: unexpected 'x' looking for a value`,
		`[nul]`:      `invalid JSON at byte 1: unexpected 'n' looking for a value`,
		`{"a" 1}`:    `invalid JSON at byte 5: unexpected '1' after a key; a colon was expected`,
		`{1}`:        `invalid JSON at byte 1: unexpected '1' looking for a key`,
		`["\x"]`:     `invalid JSON at byte 2: invalid escape in a string`,
		`["\u12"]`:   `invalid JSON at byte 2: invalid escape in a string`,
		`"\`:         `invalid JSON at byte 2: unexpected end of the document`,
		`"a`:         `invalid JSON at byte 2: unexpected end of the document`,
		"\"\x01\"":   `invalid JSON at byte 1: control character '\x01' in a string`,
		`[1e400]`:    `invalid JSON at byte 1: the number is out of the range of a 64-bit float`,
		`[[[1]]]`:    `invalid JSON at byte 2: nested deeper than the limit of 2`,
		`[é]`:        `invalid JSON at byte 1: unexpected '\u00e9' looking for a value`,
		`[1, 2, 345`: `invalid JSON at byte 10: unexpected end of the document`,
	} {
		d, err := Parse([]byte(src), Limits{MaxDepth: 2})
		if err == nil {
			d.Release()
			t.Errorf("%s is accepted", src)
		} else if err.Error() != want {
			t.Errorf("%s: %v, want %s", src, err, want)
		}
	}
}

// TestInt64: what is no integer of 64 bits reads as 0.
func TestInt64(t *testing.T) {
	for src, want := range map[string]int64{
		`7`: 7, `-9223372036854775808`: -9223372036854775808, `9223372036854775807`: 9223372036854775807,
		`9223372036854775808`: 0, `-9223372036854775809`: 0, `12345678901234567890`: 0, `18446744073709551617`: 0, `1.5`: 0, `1e2`: 0, `"1"`: 0, `true`: 0,
	} {
		d, err := Parse([]byte(src), Limits{})
		if err != nil {
			t.Fatal(err)
		}
		if got, ok := d.Int64(Root); got != want || ok != (want != 0) {
			t.Errorf("%s: %d, %v", src, got, ok)
		}
		d.Release()
	}
}

func TestKindNames(t *testing.T) {
	for src, want := range map[string]string{`null`: "null", `true`: "boolean", `false`: "boolean", `1`: "number", `""`: "string", `[]`: "array", `{}`: "object"} {
		d, err := Parse([]byte(src), Limits{})
		if err != nil {
			t.Fatal(err)
		}
		if got := d.Kind(Root).String(); got != want {
			t.Errorf("%s: %s", src, got)
		}
		d.Release()
	}
	if got := (Object + 1).String(); got != "invalid" {
		t.Errorf("what is no kind is called %q", got)
	}
}

// TestLenBeyondTheCount: more children than an index counts are counted once more. Documents
// that have so many take too much memory for a test.
func TestLenBeyondTheCount(t *testing.T) {
	for src, want := range map[string]int{`[1,[2,3],{"a":4}]`: 3, `{"a":[1,2],"b":{"c":3}}`: 2, `[[]]`: 1, `{"a":{}}`: 1} {
		d, err := Parse([]byte(src), Limits{})
		if err != nil {
			t.Fatal(err)
		}
		d.tape[Root].info |= countMax << countShift
		if got := d.Len(Root); got != want {
			t.Errorf("%s: %d", src, got)
		}
		d.Release()
	}
	d, err := Parse([]byte(`{"a":1,"b":2}`), Limits{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Release()
	d.tape[Root].info |= countMax << countShift
	for src, want := range map[string]int{`{"a":1,"b":2,"c":3}`: 3, `{"a":1,"b":2}`: 2} {
		if more, ok := d.Edited([]byte(src), "c"); !ok || more.Len(Root) != want {
			t.Errorf("an edit to %s: %d members", src, more.Len(Root))
		}
	}
}

// TestEmptyKeys: an empty key is less than all others.
func TestEmptyKeys(t *testing.T) {
	for src, want := range map[string]string{
		`{"":1," ":2}`: `{"":1," ":2}`, `{"":1,"a":2}`: `{"":1,"a":2}`, `{" a":1,"":2}`: `{"":2," a":1}`, `{"a":1,"":2}`: `{"":2,"a":1}`, `{"":1,"":2}`: `{"":2}`,
	} {
		d, err := Parse([]byte(src), Limits{})
		if err != nil {
			t.Fatal(err)
		}
		if got := string(d.AppendCanonical(nil, Root)); got != want || d.Canonical() != (src == want) {
			t.Errorf("%s: %s, canonical %v", src, got, d.Canonical())
		}
		d.Release()
	}
}

// TestSettled: only the float -0 says something else once it is canonical.
func TestSettled(t *testing.T) {
	for src, want := range map[string]bool{
		`[0.0]`: true, `[0e5]`: true, `[-0]`: true, `[-1.0]`: true, `[1.50]`: true, `[-0.0]`: false, `[-0e5]`: false, `{"a":[1.0,-0.0,1.0]}`: false,
	} {
		d, err := Parse([]byte(src), Limits{})
		if err != nil {
			t.Fatal(err)
		}
		if got := d.Settled(); got != want {
			t.Errorf("%s: %v", src, got)
		}
		d.Release()
	}
}

// TestIndexes: bytes that are equal, or begin at the same place, are not the very bytes.
func TestIndexes(t *testing.T) {
	src := []byte(`[1] `)
	d, err := Parse(src, Limits{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Release()
	if !d.Indexes(src) || d.Indexes(bytes.Clone(src)) || d.Indexes(src[:3]) {
		t.Error("a document is taken for one of other bytes, or not for one of its own")
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range samples {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		compare(t, src)
	})
}
