package requests_test

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"sort"
	"strings"
	"testing"
	"unicode/utf8"

	utilnet "k8s.io/apimachinery/pkg/util/net"
)

// difference is what only one of both says about a request.
type difference struct {
	*request
	server, cli                 []said // errors
	serverWarnings, cliWarnings []said
	decision                    bool // one accepts it, the other does not, and neither says why
}

// compare returns how the answers to a request differ, or nothing.
func compare(r *request) *difference {
	d := &difference{request: r}
	d.server, d.cli = apart(r.server.errors, r.cli.errors)
	d.serverWarnings, d.cliWarnings = compareWarnings(r.server.warnings, r.cli.warnings)
	d.decision = r.server.refused != r.cli.refused && len(d.server)+len(d.cli) == 0
	if unasked(r) {
		return nil
	}
	if !d.any() {
		return nil
	}
	return d
}

// unasked reports whether no client would ask a server about the object, since discovery shows no such kind or version.
// The command line then has the words of clients, or says that it does not validate such kinds. A server answers 404,
// or that the object is not of the kind that the path is for.
func unasked(r *request) bool {
	if !r.server.refused {
		return false
	}
	if len(r.cli.errors) == 0 {
		return slices.Equal(r.cli.infos, []string{"object-skipped"})
	}
	switch r.cli.errors[0].rule {
	case "crd-missing", "kind-unknown", "version-unknown", "version-unserved":
		return len(r.cli.errors) == 1
	}
	return false
}

// The limits of warnings in headers, in runes: if all of them are longer than the first, each is cut to the second, and
// what is beyond the first is dropped.
const (
	maxWarnings   = 4096
	maxCutWarning = 256
)

// compareWarnings returns the warnings that only one of both has. Headers have no line breaks in them, and some room
// only: if there are more, it depends on the order of warnings which of them a client gets to see.
func compareWarnings(server, cli []said) (onlyServer, onlyCLI []said) {
	cli = sendable(cli)
	total := 0
	for _, s := range cli {
		total += utf8.RuneCountInString(s.text)
	}
	if total <= maxWarnings {
		return apart(server, cli)
	}
	for i := range cli {
		if runes := []rune(cli[i].text); len(runes) > maxCutWarning {
			cli[i].text = string(runes[:maxCutWarning])
		}
	}
	onlyServer, _ = apart(server, cli)
	return onlyServer, nil
}

// sendable are the warnings that can be sent.
func sendable(list []said) []said {
	return slices.DeleteFunc(slices.Clone(list), func(s said) bool {
		_, err := utilnet.NewWarningHeader(299, "-", s.text)
		return err != nil
	})
}

// apart returns what is only in one of two lists, and in it once.
func apart(a, b []said) (onlyA, onlyB []said) {
	minus := func(a, b []said) (left []said) {
		for _, x := range a {
			same := func(y said) bool { return x.text == y.text }
			if !slices.ContainsFunc(b, same) && !slices.ContainsFunc(left, same) {
				left = append(left, x)
			}
		}
		return left
	}
	return minus(a, b), minus(b, a)
}

func (d *difference) any() bool {
	return d.decision || len(d.server)+len(d.cli)+len(d.serverWarnings)+len(d.cliWarnings) > 0
}

// String shows the difference.
func (d *difference) String() string {
	var b strings.Builder
	body := string(d.body)
	if len(body) > 1500 {
		body = body[:1500] + "…"
	}
	fmt.Fprintf(&b, "%v\n  %s\n  the server answers %d, the command line refuses: %v\n", d.request, body, d.request.server.code, d.request.cli.refused)
	for _, list := range []struct {
		who  string
		said []said
	}{{"server, error", d.server}, {"command line, error", d.cli}, {"server, warning", d.serverWarnings}, {"command line, warning", d.cliWarnings}} {
		for _, s := range list.said {
			text := s.text
			if len(text) > 1000 {
				text = text[:1000] + "…"
			}
			fmt.Fprintf(&b, "  only the %s: %s\n", list.who, strings.TrimSpace(s.rule+" "+text))
		}
	}
	return b.String()
}

// shown is how many differences of one kind are printed.
const shown = 3

// compareAll reports every difference without a known cause, and every known cause without a difference.
func compareAll(t *testing.T, requests []*request) {
	t.Helper()
	hits, first := map[string]int{}, map[string]*request{}
	seen := map[string]int{}
	for _, r := range requests {
		d := compare(r)
		if d == nil {
			continue
		}
		for _, cause := range d.explain() {
			if hits[cause]++; first[cause] == nil {
				first[cause] = r
			}
		}
		if !d.any() {
			continue
		}
		kind := d.kind()
		if seen[kind]++; seen[kind] <= shown {
			t.Errorf("%v", d)
		}
	}
	kinds := make([]string, 0, len(seen))
	for kind, n := range seen {
		kinds = append(kinds, fmt.Sprintf("%5d × %s", n, kind))
	}
	sort.Strings(kinds)
	if len(kinds) > 0 {
		t.Errorf("unexplained differences:\n%s", strings.Join(kinds, "\n"))
	}
	for _, k := range known {
		if hits[k.cause] == 0 && *seedFlag == 1 {
			t.Errorf("nothing differs by this cause any more, so it is to be deleted from the table: %s", k.cause)
		}
		if r := first[k.cause]; r != nil {
			t.Logf("%5d × %s: %v", hits[k.cause], k.cause, r)
		}
	}
}

// kind is what differences of a kind have in common: which side says more, by which checks, without what the texts quote.
func (d *difference) kind() string {
	parts := map[string]bool{}
	add := func(who string, list []said) {
		for _, s := range list {
			parts[who+" "+s.gist()] = true
		}
	}
	add("command line:", d.cli)
	add("command line, warning:", d.cliWarnings)
	add(fmt.Sprintf("server (%d):", d.request.server.code), d.server)
	add(fmt.Sprintf("server (%d), warning:", d.request.server.code), d.serverWarnings)
	return fmt.Sprintf("%s: %s", d.verb, strings.Join(slices.Sorted(maps.Keys(parts)), "; "))
}

// gist is the rule, or the end of the text.
func (s said) gist() string {
	if s.rule != "" {
		return s.rule
	}
	text := quoted.ReplaceAllString(s.text, "…")
	if at := strings.LastIndex(text, ": "); at >= 0 {
		text = text[at+2:]
	}
	return text[:min(len(text), 60)]
}

var quoted = regexp.MustCompile(`"([^"\\]|\\.)*"|'.*'|\S+\.requests\.example`)

// explain takes what has a known cause out of the difference, and returns the causes.
func (d *difference) explain() []string {
	var causes []string
	for _, k := range known {
		if k.explains(d) {
			causes = append(causes, k.cause)
		}
	}
	return causes
}
