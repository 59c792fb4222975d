package fieldmanager

import (
	"fmt"
	"strings"
	"testing"

	"sigs.k8s.io/structured-merge-diff/v6/value"

	"github.com/espalier-dev/espalier/internal/jsondoc"
)

func viewOf(t *testing.T, text string) *view {
	t.Helper()
	doc, err := jsondoc.Parse([]byte(text), jsondoc.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	return &view{doc, jsondoc.Root}
}

// A view is of the same kind as the library's own value, and has the same words in errors.
func TestKindsOfViews(t *testing.T) {
	for _, text := range []string{`{}`, `{"a":1}`, `[]`, `[1,2]`, `true`, `false`, `null`, `"x"`, `""`, `1`, `-7`, `1.5`, `1e3`, `12345678901234567890`} {
		v := viewOf(t, text)
		want := value.NewValueInterface(v.Unstructured())
		got := []bool{v.IsMap(), v.IsList(), v.IsBool(), v.IsString(), v.IsNull(), v.IsInt(), v.IsFloat()}
		if wanted := []bool{want.IsMap(), want.IsList(), want.IsBool(), want.IsString(), want.IsNull(), want.IsInt(), want.IsFloat()}; fmt.Sprint(got) != fmt.Sprint(wanted) {
			t.Errorf("%s: %v, want %v", text, got, wanted)
		}
		if v.String() != fmt.Sprint(want) || v.GoString() != fmt.Sprintf("%#v", want) {
			t.Errorf("%s: %s, %#v, want %s, %#v", text, v, v, want, want)
		}
		switch {
		case v.IsBool() && v.AsBool() != want.AsBool(), v.IsInt() && v.AsInt() != want.AsInt(),
			v.IsFloat() && v.AsFloat() != want.AsFloat(), v.IsString() && v.AsString() != want.AsString():
			t.Errorf("%s: another value", text)
		}
	}
}

// Members are found whether they are few or many, and come in the order of their keys.
func TestMembersOfViews(t *testing.T) {
	for _, n := range []int{0, 1, few, few + 1, 50} {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, `"k%02d":{"n":%d},`, i, i)
		}
		m := viewOf(t, "{"+strings.TrimSuffix(b.String(), ",")+"}").AsMap()
		if m.Length() != n || m.Empty() != (n == 0) {
			t.Errorf("%d members of %d", m.Length(), n)
		}
		next := 0
		whole := m.Iterate(func(key string, v value.Value) bool {
			if got, ok := m.Get(key); !ok || !m.Has(key) || key != fmt.Sprintf("k%02d", next) || fmt.Sprint(v.Unstructured()) != fmt.Sprint(map[string]any{"n": int64(next)}) || fmt.Sprint(got.Unstructured()) != fmt.Sprint(v.Unstructured()) {
				t.Errorf("member %d of %d is %s: %v, %v", next, n, key, v.Unstructured(), got)
			}
			next++
			return true
		})
		if next != n || !whole {
			t.Errorf("%d members of %d, %v", next, n, whole)
		}
		if v, ok := m.Get("none"); ok || v != nil || m.Has("none") {
			t.Errorf("of %d: %v", n, v)
		}
		if n > 1 {
			seen := 0
			if m.Iterate(func(string, value.Value) bool { seen++; return false }) || seen != 1 {
				t.Errorf("%d members after the end", seen)
			}
		}
	}
}

// Two objects are compared member by member; equal ones are left out.
func TestZippedViews(t *testing.T) {
	zip := func(a, b string, order value.MapTraverseOrder, most int) (string, bool) {
		var got []string
		var other value.Map
		if b != "" {
			other = viewOf(t, b).AsMap()
		}
		whole := viewOf(t, a).AsMap().Zip(other, order, func(key string, l, r value.Value) bool {
			text := func(v value.Value) any {
				if v == nil {
					return "-"
				}
				return v.Unstructured()
			}
			got = append(got, fmt.Sprint(key, " ", text(l), " ", text(r)))
			return len(got) < most
		})
		return strings.Join(got, ", "), whole
	}
	for _, c := range []struct{ a, b, want string }{
		{`{}`, `{}`, ""},
		{`{"a":1,"b":2}`, `{"a":1,"b":3}`, "b 2 3"},
		{`{"a":1}`, `{"b":2}`, "a 1 -, b - 2"},
		{`{"b":1}`, `{"a":2}`, "a - 2, b 1 -"},
		{`{"a":{"x":[1]},"c":2,"e":1}`, `{"b":1,"c":2,"d":3}`, "a map[x:[1]] -, b - 1, d - 3, e 1 -"},
		{`{"a":1,"b":2}`, `{}`, "a 1 -, b 2 -"},
		{`{}`, `{"a":1,"b":2}`, "a - 1, b - 2"},
		{`{"a":1,"b":[2]}`, ``, "a 1 -, b [2] -"},
		{`{"a":1,"ab":2}`, `{"a":2,"aa":3}`, "a 1 2, aa - 3, ab 2 -"},
	} {
		if got, whole := zip(c.a, c.b, value.Unordered, 9); got != c.want || !whole {
			t.Errorf("%s, %s: %s, %v, want %s", c.a, c.b, got, whole, c.want)
		}
		first, _, _ := strings.Cut(c.want, ", ")
		if got, whole := zip(c.a, c.b, value.Unordered, 1); got != first || whole != (c.want == "") {
			t.Errorf("%s, %s, only one: %s, %v", c.a, c.b, got, whole)
		}
	}
	// In another order the library does it, which leaves nothing out.
	if got, _ := zip(`{"a":1,"b":2}`, `{"a":1,"b":3}`, value.LexicalKeyOrder, 9); got != "a 1 1, b 2 3" {
		t.Error(got)
	}
}

// What is not written alike may be equal, and what is equal is.
func TestEqualViews(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{`{"a":1}`, `{"a":1}`, true}, {`{"a":1}`, `{"a":1.0}`, true}, {`{"a":1}`, `{"a":2}`, false}, {`{"a":1}`, `{}`, false},
		{`[1,2]`, `[1,2]`, true}, {`[1,2]`, `[1,2.0]`, true}, {`[1,2]`, `[2,1]`, false}, {`[1]`, `[1,2]`, false}, {`[]`, `[]`, true},
	} {
		a, b := viewOf(t, c.a), viewOf(t, c.b)
		var got, mixed bool
		if a.IsMap() {
			got, mixed = a.AsMap().Equals(b.AsMap()), a.AsMap().Equals(b.decoded().AsMap())
		} else {
			got, mixed = a.AsList().Equals(b.AsList()), a.AsList().Equals(b.decoded().AsList())
		}
		if got != c.want || mixed != c.want {
			t.Errorf("%s, %s: %v, %v", c.a, c.b, got, mixed)
		}
	}
}

// Items are found in any order, and one after the other.
func TestItemsOfViews(t *testing.T) {
	for n, text := range []string{`[]`, `[{"a":[0]}]`, `[0,{"a":[1,1]}]`, `[[0],[1],[2,2]]`} {
		l := viewOf(t, text).AsList()
		if l.Length() != n {
			t.Errorf("%s has %d items", text, l.Length())
		}
		var want []any
		if n > 0 {
			want = viewOf(t, text).Unstructured().([]any)
		}
		for i := range 3 * n { // forward, back and again
			at := i * 2 % n
			if got := l.At(at).Unstructured(); fmt.Sprint(got) != fmt.Sprint(want[at]) {
				t.Errorf("%s: item %d is %v", text, at, got)
			}
		}
		r, seen := l.Range(), 0
		for r.Next() {
			if i, v := r.Item(); i != seen || fmt.Sprint(v.Unstructured()) != fmt.Sprint(want[i]) {
				t.Errorf("%s: item %d is %v", text, i, v.Unstructured())
			}
			seen++
		}
		if seen != n || r.Next() {
			t.Errorf("%s: %d items in a range", text, seen)
		}
	}
}
