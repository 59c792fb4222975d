package report

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/espalier-dev/espalier/finding"
)

// Findings of one cause in one file are shown once, with their places.
func TestGroups(t *testing.T) {
	r := &Report{Noun: "CRD"}
	for i := range 20 {
		r.Diagnostics = append(r.Diagnostics, Diagnostic{Check: "a", Message: fmt.Sprintf("field %d", i), Fix: "do it", Place: Place{File: "f.yaml", Line: i + 1, Column: 5}})
	}
	r.Diagnostics = append(r.Diagnostics,
		Diagnostic{Check: "a", Message: "another fix", Fix: "do that", Place: Place{File: "f.yaml", Line: 30}},
		Diagnostic{Check: "a", Message: "another file", Fix: "do it", Place: Place{File: "g.yaml", Line: 1}},
		Diagnostic{Check: "a", Message: "another severity", Severity: finding.Warning, Fix: "do it", Place: Place{File: "f.yaml", Line: 31}},
		Diagnostic{Check: "a", Message: "with a note", Fix: "do it", Notes: []Note{{Message: "n"}}, Place: Place{File: "f.yaml", Line: 32}},
		Diagnostic{Check: "a", Message: "of a file", Fix: "do it", Place: Place{File: "f.yaml"}},
	)
	text := write(t, r, "text", Options{})
	for _, want := range []string{"also: 2:5  field 1\n", "13:5 field 12\n", "and 7 more places\n", "another fix", "another file", "another severity", "with a note", "of a file"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
	if n := strings.Count(text, "fix: do it"); n != 5 {
		t.Errorf("the fix is shown %d times:\n%s", n, text)
	}
	if strings.Contains(text, "field 13") || !strings.Contains(text, "24 errors, 1 warning") {
		t.Error(text)
	}
}

// The first line is short; what it leaves out is below.
func TestHeadlines(t *testing.T) {
	long := strings.Repeat("words and ", 40)
	for _, c := range []struct {
		d    Diagnostic
		want string // of the first line
		more bool
	}{
		{Diagnostic{Check: "a", Message: "short", Place: Place{File: "f.yaml", Line: 1, Column: 2}}, "f.yaml:1:2: error: short [a]", false},
		{Diagnostic{Check: "a", Message: "server", Summary: "plain", Place: Place{File: "f.yaml"}}, "f.yaml: error: plain [a]", true},
		{Diagnostic{Check: "a", Message: "server", Summary: "plain", Complete: true, Place: Place{File: "f.yaml"}}, "f.yaml: error: plain [a]", false},
		{Diagnostic{Check: "a", Message: "one\ntwo", Place: Place{File: "f.yaml"}}, "f.yaml: error: one [a]", true},
		{Diagnostic{Check: "a", Message: long, Place: Place{File: "f.yaml", Line: 1, Column: 2}}, "", true},
		{Diagnostic{Check: "a", Message: `unsupported value "x": supported values: ` + strings.Repeat(`"y", `, 40), Place: Place{File: "f.yaml"}}, `f.yaml: error: unsupported value "x" [a]`, true},
		{Diagnostic{Check: "a", Message: strings.Repeat("ü", 300), Place: Place{File: "f.yaml"}}, "", true},
	} {
		text := write(t, &Report{Diagnostics: []Diagnostic{c.d}}, "text", Options{})
		first, rest, _ := strings.Cut(text, "\n")
		if c.want != "" && first != c.want || utf8.RuneCountInString(first) > maxHeadline || strings.Contains(rest, "text: ") != c.more {
			t.Errorf("%d characters:\n%s", utf8.RuneCountInString(first), text)
		}
		if c.want == "" && (!strings.HasSuffix(first, "… [a]") || utf8.RuneCountInString(first) < maxHeadline-12) {
			t.Errorf("cut at %q", first)
		}
	}
	// A long name of a file leaves room for what is wrong.
	d := Diagnostic{Message: long, Place: Place{File: strings.Repeat("f", 200)}}
	if text, whole := d.headline(); whole || utf8.RuneCountInString(text) < leastText-12 || utf8.RuneCountInString(text) > leastText {
		t.Errorf("%q", text)
	}
}
