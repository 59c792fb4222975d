package doctor

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/espalier-dev/espalier/cmd/internal/cluster"
	"github.com/espalier-dev/espalier/finding"
)

// Finding is one thing that is wrong.
type Finding struct {
	Check    string           `json:"check"`
	Severity finding.Severity `json:"severity"`
	Where    string           `json:"where"`
	Message  string           `json:"message"`
	Why      string           `json:"why"`
	Fix      string           `json:"fix"`
}

// Skipped is what was not checked.
type Skipped struct {
	What   string `json:"what"`
	Reason string `json:"reason"`
}

// Report is what was found.
type Report struct {
	SchemaVersion int       `json:"schemaVersion"`
	Server        string    `json:"server"`
	Version       string    `json:"version,omitempty"`
	Checked       []string  `json:"checked"`
	Skipped       []Skipped `json:"notChecked,omitempty"`
	Findings      []Finding `json:"findings"`
}

// The bounds of a report.
const (
	maxOfCheck = 20 // findings of one check
	maxText    = 600
	parallel   = 4 // calls of kubectl
)

// examination is a report that several goroutines add to.
type examination struct {
	from    cluster.Source
	now     time.Time
	metrics metricsOnce

	mu     sync.Mutex
	report *Report
	counts map[string]int
}

// step is a part of the examination.
type step struct {
	what string
	run  func(*examination, context.Context) error
}

// steps are all parts, in the order of the report. Parts that need the server come after the connection.
var steps = []step{
	{"readiness", (*examination).health},
	{"CRDs", (*examination).crds},
	{"webhooks", (*examination).webhooks},
	{"API services", (*examination).apiServices},
	{"quotas", (*examination).quotas},
	{"namespaces", (*examination).namespaces},
	{"leaders of controllers", (*examination).leases},
	{"metrics", (*examination).measured},
	{"tenants", (*examination).tenants},
}

// Examine looks at a server. It calls a function after each of the steps, whose number it passes first. The error is that
// there is no usable kubeconfig.
func Examine(ctx context.Context, from cluster.Source, begin func(steps int), done func()) (*Report, error) {
	e := &examination{from: from, now: time.Now(), report: &Report{SchemaVersion: 1, Findings: []Finding{}}, counts: map[string]int{}}
	begin(len(steps) + 1)
	reached, err := e.connection(ctx)
	if err != nil {
		return nil, err
	}
	done()
	var running sync.WaitGroup
	places := make(chan struct{}, parallel)
	for _, s := range steps {
		if !reached {
			e.skip(s.what, "the server cannot be reached")
			done()
			continue
		}
		running.Go(func() {
			places <- struct{}{}
			defer func() { <-places; done() }()
			if err := s.run(e, ctx); err != nil {
				e.skip(s.what, reasonOf(err))
				return
			}
			e.checked(s.what)
		})
	}
	running.Wait()
	if err := ctx.Err(); err != nil {
		return nil, context.Cause(ctx)
	}
	e.sort()
	return e.report, nil
}

// sort orders a report: the gravest findings first.
func (e *examination) sort() {
	order := func(what string) int { return slices.IndexFunc(steps, func(s step) bool { return s.what == what }) }
	slices.SortFunc(e.report.Checked, func(a, b string) int { return cmp.Compare(order(a), order(b)) })
	slices.SortFunc(e.report.Skipped, func(a, b Skipped) int {
		return cmp.Or(cmp.Compare(order(a.What), order(b.What)), cmp.Compare(a.What, b.What))
	})
	slices.SortStableFunc(e.report.Findings, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.Severity, b.Severity), cmp.Compare(a.Check, b.Check), cmp.Compare(a.Where, b.Where))
	})
}

// add adds a finding, unless there are many of its check already.
func (e *examination) add(f Finding) {
	f.Where, f.Message, f.Why, f.Fix = plain(f.Where), plain(f.Message), plain(f.Why), plain(f.Fix)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.counts[f.Check]++
	if e.counts[f.Check] > maxOfCheck {
		if e.counts[f.Check] == maxOfCheck+1 {
			e.report.Skipped = append(e.report.Skipped, Skipped{f.Check, fmt.Sprintf("there are more than %d findings of this check", maxOfCheck)})
		}
		return
	}
	e.report.Findings = append(e.report.Findings, f)
}

func (e *examination) skip(what, reason string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.report.Skipped = append(e.report.Skipped, Skipped{plain(what), plain(reason)})
}

func (e *examination) checked(what string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.report.Checked = append(e.report.Checked, what)
}

// Fails reports whether a report has a finding of a severity that fails says fails.
func (r *Report) Fails(fails func(finding.Severity) bool) bool {
	return slices.ContainsFunc(r.Findings, func(f Finding) bool { return fails(f.Severity) })
}

// reasonOf says why a request failed.
func reasonOf(err error) string {
	if cluster.Reason(err) == "Forbidden" {
		return "you may not read it: " + err.Error()
	}
	return err.Error()
}

// plain is a text of a server in one line, without characters that a terminal acts on, and not longer than a limit.
func plain(text string) string {
	text = strings.Join(strings.FieldsFunc(text, func(r rune) bool { return r <= ' ' || r == 0x7f || 0x80 <= r && r < 0xa0 }), " ")
	if len(text) > maxText {
		text = strings.ToValidUTF8(text[:maxText], "") + "…"
	}
	return text
}
