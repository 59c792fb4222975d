package lint

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// TestGuarding: the tests are put where they do not change what has a result today.
func TestGuarding(t *testing.T) {
	for _, c := range []struct{ rule, want string }{
		{`self.a > 0`, `!has(self.a) || self.a > 0`},
		{`self.a > self.b`, `!has(self.a) || !has(self.b) || self.a > self.b`},
		{`self.a > 0 && self.a < 9`, `!has(self.a) || self.a > 0 && self.a < 9`},
		{`[has(self.s), has(self.o)].exists_one(x, x) && self.s != 'r'`, `[has(self.s), has(self.o)].exists_one(x, x) && (!has(self.s) || self.s != 'r')`},
		{`self.must == 'x' || self.a > 0`, `self.must == 'x' || (has(self.a) && self.a > 0)`},
		{`self.o.opt > 0`, `!has(self.o) || !has(self.o.opt) || self.o.opt > 0`},
		{`self.s == 'x' ? has(self.a) : !has(self.a)`, `!has(self.s) || (self.s == 'x' ? has(self.a) : !has(self.a))`},
		{`self.must == '' && (self.s != 'x' ? has(self.a) : !has(self.a))`, `self.must == '' && (!has(self.s) || (self.s != 'x' ? has(self.a) : !has(self.a)))`},
		{`!(self.a > 5)`, `!has(self.a) || !(self.a > 5)`},
		{`!(self.must == '' && self.a > 5)`, `!(self.must == '' && (has(self.a) && self.a > 5))`},
		{`!has(self.l) || self.l.all(x, x.v > 0)`, `!has(self.l) || self.l.all(x, !has(x.v) || x.v > 0)`},
		{`!has(self.l) || self.l.all(i, i.v == 3)`, `!has(self.l) || self.l.all(i, !has(i.v) || i.v == 3)`},
		{`self.l.all(i, i.v == 3)`, `!has(self.l) || self.l.all(i, !has(i.v) || i.v == 3)`},
		{"self.a > 0 // '\n && self.must == \"it's\"", `(!has(self.a) || self.a > 0) && self.must == "it's"`},
		{`has(self.m) && self.m['x'] == 'y'`, `has(self.m) && (!("x" in self.m) || self.m['x'] == 'y')`},
		{`(has(self.b) ? self.a : 0) > 5`, ``},               // not read where b is absent
		{`!has(self.l) || self.l.map(x, x.v).sum() < 9`, ``}, // not the field of one element
		{`[self.must == 'a' || self.a > 1].all(x, x)`, ``},   // within a list
		{`[1, 2].all(x, self.must == 'a' || self.a > x)`, `[1, 2].all(x, self.must == 'a' || (has(self.a) && self.a > x))`},
	} {
		raw, err := json.Marshal([]map[string]string{{"rule": c.rule}})
		if err != nil {
			t.Fatal(err)
		}
		found := of(t, "rule-unguarded-optional", `{"type":"object","properties":{"spec":`+fmt.Sprintf(guarded, `,"x-kubernetes-validations":`+string(raw))+`}}`)
		if len(found) != 1 {
			t.Errorf("%s: %v", c.rule, found)
			continue
		}
		_, got, _ := strings.Cut(found[0].Fix, "\nrule: ")
		if c.want != "" {
			c.want = quote(c.want)
		}
		if got != c.want {
			t.Errorf("%s\n got %s\nwant %s", c.rule, got, c.want)
		}
		if got != "" && !strings.HasPrefix(found[0].Fix, "# ") {
			t.Errorf("%s: %q does not say what changes", c.rule, found[0].Fix)
		}
	}
}
