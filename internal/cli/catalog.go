package cli

import (
	"slices"
	"strings"
	"sync"

	"github.com/espalier-dev/espalier/crd"
	"github.com/espalier-dev/espalier/crd/diff"
	"github.com/espalier-dev/espalier/crd/lint"
	"github.com/espalier-dev/espalier/docs"
	"github.com/espalier-dev/espalier/finding"
	"github.com/espalier-dev/espalier/internal/compile"
	"github.com/espalier-dev/espalier/internal/report"
	"github.com/espalier-dev/espalier/rules"
)

// ruleSyntax is the rule that files can be read.
const ruleSyntax finding.ID = "syntax"

// rule is an entry of the catalog of everything that commands can find.
type rule struct {
	finding.Check
	Group string // the command whose rule it is, or a part of what it checks
	Off   bool   // not looked for unless the settings ask for it
}

// catalog returns all rules, grouped.
var catalog = sync.OnceValue(func() []rule {
	var all []rule
	known := make(map[finding.ID]bool)
	add := func(group string, c finding.Check, off bool) {
		if !known[c.ID] { // definitions and schemas can both have too many findings
			all = append(all, rule{c, group, off})
		}
		known[c.ID] = true
	}
	add("files", finding.New(ruleSyntax, finding.Error, "A file is YAML or JSON, as kubectl reads it.", "YAML 1.1"), false)
	for _, c := range crd.Rules {
		add("definition", c, false)
	}
	for _, c := range compile.Rules {
		add("schema", c, false)
	}
	for _, c := range rules.Rules {
		add("expressions", c, false)
	}
	for _, r := range lint.Rules {
		add("advice", r.Check, !r.Default)
	}
	for _, r := range objectRules {
		add("objects", r.Check, false)
	}
	for _, r := range diff.Rules() {
		add("changes", r.Check(), false)
	}
	return all
})

var rulesByID = sync.OnceValue(func() map[finding.ID]*rule {
	all := catalog()
	byID := make(map[finding.ID]*rule, len(all))
	for i := range all {
		byID[all[i].ID] = &all[i]
	}
	return byID
})

func ruleByID(id finding.ID) (*rule, bool) {
	r, ok := rulesByID()[id]
	return r, ok
}

func explanation(id finding.ID) string {
	if r, ok := ruleByID(id); ok {
		return r.Explanation
	}
	return ""
}

// fix is what the rule's page says first about mending it.
func fix(id finding.ID) string {
	if text, ok := fixes.Load(id); ok {
		return text.(string)
	}
	text, _ := fixes.LoadOrStore(id, docs.Fix(id))
	return text.(string)
}

var fixes sync.Map // by identifier

// rulesOf returns the rules that diagnostics refer to, with their pages.
func rulesOf(diagnostics []report.Diagnostic) []report.Rule {
	used := make(map[finding.ID]bool)
	for i := range diagnostics {
		used[diagnostics[i].Rule] = true
	}
	var out []report.Rule
	for _, r := range catalog() {
		if used[r.ID] {
			out = append(out, report.Rule{Check: r.Check, Help: docs.Page(r.ID)})
		}
	}
	return out
}

// nearestRule returns the identifier most like a mistyped one.
func nearestRule(id finding.ID) finding.ID {
	best, shared := finding.ID(""), 0
	words := strings.Split(string(id), "-")
	for _, r := range catalog() {
		n := 0
		for _, w := range strings.Split(string(r.ID), "-") {
			if slices.Contains(words, w) {
				n++
			}
		}
		if n > shared {
			best, shared = r.ID, n
		}
	}
	return best
}
