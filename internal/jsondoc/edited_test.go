package jsondoc

import (
	"encoding/json"
	"math/rand/v2"
	"testing"
)

// sameIndex reports how an index differs from that of the same bytes parsed.
func sameIndex(t *testing.T, got *Doc, src []byte) {
	t.Helper()
	want, err := Parse(src, Limits{})
	if err != nil {
		t.Fatalf("an index of what is no JSON: %s: %v", src, err)
	}
	defer want.Release()
	if !want.Canonical() || !got.Canonical() || !want.Settled() || len(got.tape) != len(want.tape) {
		t.Fatalf("%s: %d entries of %d, canonical %v", src, len(got.tape), len(want.tape), want.Canonical())
	}
	for i, n := range want.tape {
		m := got.tape[i]
		if m.off != n.off || m.end != n.end || m.info != n.info || n.info&key == 0 && m.next != n.next {
			t.Fatalf("%s: entry %d is %+v, not %+v", src, i, m, n)
		}
		if n.info&key != 0 && string(got.Key(Value(i))) != string(want.Key(Value(i))) {
			t.Fatalf("%s: key %d is %q, not %q", src, i, got.Key(Value(i)), want.Key(Value(i)))
		}
	}
}

func TestEdited(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	names := []string{"a", "b", "é", "<", "", "zz", "a\"\\b", "metadata"}
	taken := 0
	for range 20000 {
		members := map[string]json.RawMessage{}
		value := func() json.RawMessage {
			d, err := Parse(randomDocument(r, nil, 3), Limits{})
			if err != nil {
				t.Fatal(err)
			}
			defer d.Release()
			return d.AppendCanonical(nil, Root)
		}
		for range r.IntN(5) {
			members[names[r.IntN(len(names))]] = value()
		}
		text := func() []byte {
			b, err := json.Marshal(members)
			if err != nil {
				t.Fatal(err)
			}
			return b
		}
		old, err := Parse(text(), Limits{})
		if err != nil {
			t.Fatal(err)
		}
		name := names[r.IntN(len(names))]
		if r.IntN(3) == 0 {
			delete(members, name)
		} else {
			members[name] = value()
		}
		src := text()
		d, ok := old.Edited(src, name)
		if ok {
			taken++
			sameIndex(t, d, src)
			// Another edit of what was edited.
			members["metadata"] = value()
			again := text()
			if more, ok := d.Edited(again, "metadata"); ok {
				sameIndex(t, more, again)
			}
			d.Release()
		} else if now, err := Parse(src, Limits{}); err != nil || now.Canonical() && now.Settled() && old.Canonical() && old.Settled() {
			t.Fatalf("%s is not taken for an edit of %q in %s: %v", src, name, old.src, err)
		}
		if _, ok := old.Edited(append(src, ' '), name); ok {
			t.Fatalf("%s with a space is taken", src)
		}
		old.Release()
	}
	if taken < 10000 {
		t.Errorf("%d edits were compared", taken)
	}
}

// FuzzEdited has whatever is taken for an edit have the index that parsing gives.
func FuzzEdited(f *testing.F) {
	f.Add([]byte(`{"a":1,"c":[2]}`), []byte(`{"a":1,"b":{"x":"y"},"c":[2]}`), "b")
	f.Add([]byte(`{"a":1,"b":2}`), []byte(`{"b":2}`), "a")
	f.Add([]byte(`{"a":1}`), []byte(`{}`), "a")
	f.Add([]byte(`{"a":1}`), []byte(`{"a":1,"a":2}`), "a")
	f.Add([]byte(`{"a":1,"c":1}`), []byte(`{"a":1,"b":1,"b2":1,"c":1}`), "b")
	f.Add([]byte(`{"a":1,"c":1}`), []byte(`{"a":1,,"c":1}`), "b")
	f.Fuzz(func(t *testing.T, was, src []byte, name string) {
		old, err := Parse(was, Limits{})
		if err != nil {
			return
		}
		defer old.Release()
		if d, ok := old.Edited(src, name); ok {
			sameIndex(t, d, src)
			d.Release()
		}
	})
}
