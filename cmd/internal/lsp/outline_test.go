package lsp

import (
	"strings"
	"testing"
)

func TestOutline(t *testing.T) {
	text := `# a comment
kind: A # more
"quo ted": 'it''s'
spec:
  list:
  - name: one
    sub: |
      text: no key
      more
    after: 1
  -   name: two
  - - nested
  flow: {a: 1, b: [x, {c: "}"}],
    d: e}
  half
  url: http://x
other: x
`
	o := newOutline(text)
	for _, tt := range []struct{ mark, path, value string }{
		{"A #", "kind", "A"},
		{"it''s", "quo ted", "it's"},
		{"one", "spec.list[0].name", "one"},
		{"text: no", "spec.list[0].sub", "      text: no key\n      more\n"},
		{"after", "spec.list[0].after", "1"},
		{"two", "spec.list[1].name", "two"},
		{"nested", "spec.list[2][0]", "nested"},
		{"1, b", "spec.flow.a", "1"},
		{"x, {", "spec.flow.b[0]", "x"},
		{"\"}\"", "spec.flow.b[1].c", "}"},
		{"e}", "spec.flow.d", "e"},
		{"half", "spec.half", ""},
		{"http", "spec.url", "http://x"},
		{"other", "other", "x"},
	} {
		at := strings.Index(text, tt.mark) + 1
		e, _ := o.at(at)
		if got := path(e.steps()); got != tt.path || e.value != tt.value {
			t.Errorf("at %q is %s = %q, want %s = %q", tt.mark, got, e.value, tt.path, tt.value)
		}
	}
}

// FuzzOutline reads anything, and checks that places are places of the text and children are in order.
func FuzzOutline(f *testing.F) {
	f.Add("a: {b: [c, {d: e\nf: |\n  x\n- - -\n? : \"", 3)
	f.Add("a: [\n  - b\n}]: x", 7)
	f.Fuzz(func(t *testing.T, text string, at int) {
		if len(text) > 1<<14 {
			return
		}
		o := newOutline(text)
		var walk func(e *entry, depth int)
		walk = func(e *entry, depth int) {
			if depth > 2*maxDepth+2 {
				return
			}
			before := -1
			for _, c := range e.children {
				if c.keyAt < before || c.keyAt > c.keyEnd || c.keyEnd > len(text) || c.valueAt > c.valueEnd || c.valueEnd > len(text) || c.parent != e {
					t.Fatalf("%+v", c)
				}
				before = c.keyAt
				walk(c, depth+1)
			}
		}
		walk(o.root, 0)
		if at >= 0 && at <= len(text) {
			e, _ := o.at(at)
			_ = pointer(e.steps())
			s := newScope(text[:at], nil)
			s.resolve(receiverOf(text[:at]))
		}
	})
}
