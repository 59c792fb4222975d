package main

import (
	"cmp"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"github.com/espalier-dev/espalier/conformance/specs"
)

// longest is how much of a reason is printed.
const longest = 300

var (
	// Gomega prints an error as <type | address>: text, followed by the fields of the error in braces.
	typed   = regexp.MustCompile(`<\*?[\w./]+ \| 0x[0-9a-f]+>: `)
	dump    = regexp.MustCompile(` \{ ?[A-Z]\w*: .*$`)
	address = regexp.MustCompile(`0x[0-9a-f]+`)
	// Names that a run invents end with a random part: -4711, -x7k2p, a UUID.
	random = regexp.MustCompile(`-[a-z0-9]*[0-9][a-z0-9]*\b`)
	number = regexp.MustCompile(`\b[0-9]+(\.[0-9]+)?`)
)

// say returns the reason of a failure as people read it: without the fields of errors, and not too long.
func say(reason string) string {
	reason = typed.ReplaceAllString(reason, "")
	reason = strings.TrimPrefix(dump.ReplaceAllString(reason, ""), "Unexpected error: ")
	if len(reason) > longest {
		reason = strings.ToValidUTF8(reason[:longest], "") + "…"
	}
	if reason == "" {
		return "no reason was reported"
	}
	return reason
}

// cause is what reasons of the same cause have in common: the reason without addresses, random names and numbers.
func cause(reason string) string {
	reason = address.ReplaceAllString(say(reason), "0x…")
	// What the spec wanted to do matters less than the resource that is missing.
	if i := strings.Index(reason, "the server could not find the requested resource"); i > 0 {
		reason = reason[i:]
	}
	reason = random.ReplaceAllString(reason, "-…")
	return number.ReplaceAllString(reason, "…")
}

// A group is the failed specs of one cause.
type group struct {
	cause string
	specs []specs.Spec
}

// groups sorts failed specs by cause, the most frequent first.
func groups(failed []specs.Spec) []group {
	byCause := map[string][]specs.Spec{}
	for _, s := range failed {
		c := cause(s.Reason)
		byCause[c] = append(byCause[c], s)
	}
	var all []group
	for c, list := range byCause {
		slices.SortFunc(list, func(a, b specs.Spec) int { return cmp.Compare(a.Name, b.Name) })
		all = append(all, group{c, list})
	}
	slices.SortFunc(all, func(a, b group) int {
		return cmp.Or(cmp.Compare(len(b.specs), len(a.specs)), cmp.Compare(a.cause, b.cause))
	})
	return all
}

// show prints failed specs by cause, each with its own reason where that says more.
func show(w io.Writer, title string, failed []specs.Spec) {
	if len(failed) == 0 {
		return
	}
	fmt.Fprintf(w, "\n%d specs %s:\n", len(failed), title)
	for _, g := range groups(failed) {
		fmt.Fprintf(w, "  %d × %s\n", len(g.specs), g.cause)
		for _, s := range g.specs {
			fmt.Fprintf(w, "    %s after %.0f s: %s\n", s.State, s.Took.Seconds(), s.Name)
			if reason := say(s.Reason); reason != g.cause {
				fmt.Fprintf(w, "      %s\n", reason)
			}
		}
	}
}
