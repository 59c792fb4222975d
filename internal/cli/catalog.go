package cli

import (
	"slices"
	"strings"
	"sync"

	"github.com/espalier-dev/espalier/crd"
	"github.com/espalier-dev/espalier/crd/diff"
	"github.com/espalier-dev/espalier/crd/lint"
	"github.com/espalier-dev/espalier/docs"
	"github.com/espalier-dev/espalier/internal/compile"
	"github.com/espalier-dev/espalier/internal/report"
	"github.com/espalier-dev/espalier/rules"
)

// ruleSyntax is the rule that files can be read.
const ruleSyntax = "syntax"

// rule is an entry of the catalog of everything that commands can find.
type rule struct {
	report.Rule
	Group  string // the command whose rule it is, or a part of what it checks
	Source string // the document it comes from
	Off    bool   // not looked for unless the settings ask for it
}

// catalog returns all rules, grouped.
var catalog = sync.OnceValue(func() []rule {
	var all []rule
	known := make(map[string]bool)
	add := func(group, id string, severity report.Severity, explanation, source string, off bool) {
		if !known[id] { // definitions and schemas can both have too many findings
			all = append(all, rule{report.Rule{ID: id, Severity: severity, Explanation: explanation}, group, source, off})
		}
		known[id] = true
	}
	add("files", ruleSyntax, report.Error, "A file is YAML or JSON, as kubectl reads it.", "YAML 1.1", false)
	for _, r := range crd.Rules {
		add("definition", r.ID, severity(r.Severity), r.Explanation, r.Source, false)
	}
	for i := range compile.Rules {
		r := &compile.Rules[i]
		add("schema", r.ID, severity(r.Severity), r.Explanation, r.Source, false)
	}
	for _, r := range rules.Rules {
		add("expressions", r.ID, report.Error, r.Explanation, r.Source, false)
	}
	for _, r := range lint.Rules {
		s := report.Warning
		if r.Severity == lint.Info {
			s = report.Info
		}
		add("advice", r.ID, s, r.Explanation, r.Source, !r.Default)
	}
	for _, r := range objectRules {
		add("objects", r.ID, r.Severity, r.Explanation, r.Source, false)
	}
	for _, r := range diff.Rules() {
		add("changes", r.ID, levelSeverities[r.Level], r.Explanation, "this engine", false)
	}
	return all
})

// severity is for the severities of the library, whose error is 0.
func severity[S ~uint8](s S) report.Severity {
	if s == 0 {
		return report.Error
	}
	return report.Warning
}

var rulesByID = sync.OnceValue(func() map[string]*rule {
	all := catalog()
	byID := make(map[string]*rule, len(all))
	for i := range all {
		byID[all[i].ID] = &all[i]
	}
	return byID
})

func ruleByID(id string) (*rule, bool) {
	r, ok := rulesByID()[id]
	return r, ok
}

func explanation(id string) string {
	if r, ok := ruleByID(id); ok {
		return r.Explanation
	}
	return ""
}

// fix is what the rule's page says first about mending it.
func fix(id string) string {
	if text, ok := fixes.Load(id); ok {
		return text.(string)
	}
	text, _ := fixes.LoadOrStore(id, docs.Fix(id))
	return text.(string)
}

var fixes sync.Map // by identifier

// rulesOf returns the rules that diagnostics refer to, with their pages.
func rulesOf(diagnostics []report.Diagnostic) []report.Rule {
	used := make(map[string]bool)
	for i := range diagnostics {
		used[diagnostics[i].Rule] = true
	}
	var out []report.Rule
	for _, r := range catalog() {
		if used[r.ID] {
			r.Help = docs.Page(r.ID)
			out = append(out, r.Rule)
		}
	}
	return out
}

// nearestRule returns the identifier most like a mistyped one.
func nearestRule(id string) string {
	best, shared := "", 0
	words := strings.Split(id, "-")
	for _, r := range catalog() {
		n := 0
		for _, w := range strings.Split(r.ID, "-") {
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
