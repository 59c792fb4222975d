package openapi

import (
	"regexp"
	"strings"
	"testing"
)

func TestPortable(t *testing.T) {
	for _, c := range []struct{ pattern, want string }{
		{`^[a-z]+(?:-x)?$`, `^[a-z]+(?:-x)?$`},
		{`\Aab\z`, `^ab$`},
		{`(?i)ab1`, `[Aa][Bb]1`},
		{`^(?P<n>a|b)*?c`, `^(?:(?:[a-b]))*?c`},
		{`[[:digit:]_]{2,}`, `(?:[0-9_]){2,}`},
		{`^[]a-]$`, `^[\-\]a]$`},
		{`\Qa.b\E`, `a\.b`},
		{`(?s).`, `[\s\S]`},
		{`\x{e9}.`, `é[^\n]`},
		{`[^a-cx]`, `[^a-cx]`},
		{`\x{d800}`, ``}, // no text has it, and JSON cannot hold it
		{`\x01`, `\x01`},
		{`(?i)\ba\B`, `\b[Aa]\B`},
		{`(?m)^a$`, ``},
		{`(`, ``},
		{strings.Repeat(`\pL`, 30), ``},
	} {
		if got := portable(c.pattern); got != c.want {
			t.Errorf("%s\ngot  %s\nwant %s", c.pattern, got, c.want)
		}
	}
}

// FuzzPortable checks that a pattern means the same after it was rewritten.
func FuzzPortable(f *testing.F) {
	f.Add(`(?i)^a[[:alpha:]]+\z`, "AbC")
	f.Add(`\A(?:x|(?P<y>yy){2,3}?)\B.`, "yyyyz")
	f.Add(`[^]\-^]\Q[\E`, "a[")
	f.Fuzz(func(t *testing.T, pattern, text string) {
		before, err := regexp.Compile(pattern)
		got := portable(pattern)
		if err != nil || got == "" {
			return
		}
		after, err := regexp.Compile(got)
		if err != nil {
			t.Fatalf("%q became %q: %v", pattern, got, err)
		}
		if before.MatchString(text) != after.MatchString(text) {
			t.Errorf("%q became %q, which differs for %q", pattern, got, text)
		}
	})
}
