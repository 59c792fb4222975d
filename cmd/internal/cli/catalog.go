package cli

import (
	"slices"
	"strings"
	"sync"

	"github.com/espalier-dev/espalier/cmd/internal/report"
	"github.com/espalier-dev/espalier/crd"
	"github.com/espalier-dev/espalier/crd/cel"
	"github.com/espalier-dev/espalier/crd/conversion"
	"github.com/espalier-dev/espalier/crd/diff"
	"github.com/espalier-dev/espalier/crd/lint"
	"github.com/espalier-dev/espalier/docs"
	"github.com/espalier-dev/espalier/finding"
	"github.com/espalier-dev/espalier/internal/compile"
)

// idSyntax is the check that files are valid YAML or JSON.
const idSyntax finding.ID = "syntax"

// idFileUnreadable is the check that files can be read.
const idFileUnreadable finding.ID = "file-unreadable"

// own is the source of the checks that come from no other document.
const own = "Espalier"

// checkInfo is an entry of the catalog, which lists all checks of the commands.
type checkInfo struct {
	finding.Check
	Group string // the command that reports it, or the part of a CRD that it checks
	Off   bool   // off by default; the settings turn it on
}

// catalog returns all checks, grouped.
var catalog = sync.OnceValue(func() []checkInfo {
	var all []checkInfo
	known := make(map[finding.ID]bool)
	add := func(group string, c finding.Check, off bool) {
		if !known[c.ID] { // too-many-findings is a check of CRDs and of schemas
			all = append(all, checkInfo{c, group, off})
		}
		known[c.ID] = true
	}
	add("files", finding.New(idSyntax, finding.Error, "Files must be valid YAML or JSON, as kubectl reads them.", "YAML 1.1"), false)
	add("files", finding.New(idFileUnreadable, finding.Error, "Files must be readable.", own), false)
	add("files", finding.New(idSuppression, finding.Warning, "A comment that suppresses findings must name checks and a reason.", own), false)
	add("files", finding.New(idSuppressionUnused, finding.Info, "A comment that suppresses findings must suppress one.", own), false)
	for _, c := range crd.Checks {
		add("crd", c, false)
	}
	for _, c := range conversion.Checks {
		add("crd", c, false)
	}
	for _, c := range compile.Checks {
		add("schema", c, false)
	}
	for _, c := range cel.Checks {
		add("expressions", c, false)
	}
	for _, r := range lint.Checks {
		add("advice", r.Check, !r.Default)
	}
	for _, r := range objectChecks {
		add("objects", r.Check, false)
	}
	for _, r := range diff.Checks() {
		add("changes", r.Check(), false)
	}
	return all
})

var checksByID = sync.OnceValue(func() map[finding.ID]*checkInfo {
	all := catalog()
	byID := make(map[finding.ID]*checkInfo, len(all))
	for i := range all {
		byID[all[i].ID] = &all[i]
	}
	return byID
})

func checkByID(id finding.ID) (*checkInfo, bool) {
	r, ok := checksByID()[id]
	return r, ok
}

func explanation(id finding.ID) string {
	if r, ok := checkByID(id); ok {
		return r.Explanation
	}
	return ""
}

// fix returns the first paragraph about the fix on the page of a check.
func fix(id finding.ID) string {
	if text, ok := fixes.Load(id); ok {
		return text.(string)
	}
	text, _ := fixes.LoadOrStore(id, docs.Fix(id))
	return text.(string)
}

var fixes sync.Map // by identifier

// checksOf returns the checks that diagnostics refer to, with their pages.
func checksOf(diagnostics []report.Diagnostic) []report.CheckInfo {
	used := make(map[finding.ID]bool)
	for i := range diagnostics {
		used[diagnostics[i].Check] = true
	}
	var out []report.CheckInfo
	for _, r := range catalog() {
		if used[r.ID] {
			out = append(out, report.CheckInfo{Check: r.Check, Help: docs.Page(r.ID)})
		}
	}
	return out
}

// nearestCheck returns the identifier most like a mistyped one.
func nearestCheck(id finding.ID) finding.ID {
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
