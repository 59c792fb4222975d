package kinds

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/espalier-dev/espalier/conformance/kinds/answer"
)

// A Score counts comparisons.
type Score struct {
	Objects      int `json:"objects"`
	Requests     int `json:"requests"`     // that write
	BothAccept   int `json:"bothAccept"`   // of these
	Equal        int `json:"equal"`        // stored the same
	RefusedHere  int `json:"refusedHere"`  // and accepted there
	RefusedThere int `json:"refusedThere"` // here or not
	AcceptedHere int `json:"acceptedHere"` // and refused there
	SameField    int `json:"sameField"`    // of those both refuse
	SameText     int `json:"sameText"`
	Tables       int `json:"tables"`
	EqualTables  int `json:"equalTables"`
	Panics       int `json:"panics"`    // requests that kube-apiserver gave no answer to
	Published    int `json:"published"` // differences in discovery, OpenAPI and columns
}

// Add adds the counts of another score.
func (s *Score) Add(o Score) {
	s.Objects += o.Objects
	s.Requests += o.Requests
	s.BothAccept += o.BothAccept
	s.Equal += o.Equal
	s.RefusedHere += o.RefusedHere
	s.RefusedThere += o.RefusedThere
	s.AcceptedHere += o.AcceptedHere
	s.SameField += o.SameField
	s.SameText += o.SameText
	s.Tables += o.Tables
	s.EqualTables += o.EqualTables
	s.Panics += o.Panics
	s.Published += o.Published
}

// percent returns 100 if there is nothing to count.
func percent(part, all int) float64 {
	if all == 0 {
		return 100
	}
	return 100 * float64(part) / float64(all)
}

// EqualPercent is the share of objects that both servers stored alike.
func (s Score) EqualPercent() float64 { return percent(s.Equal, s.BothAccept) }

// AcceptedPercent is the share of the refusals there that are accepted here.
func (s Score) AcceptedPercent() float64 {
	if s.RefusedThere == 0 {
		return 0
	}
	return percent(s.AcceptedHere, s.RefusedThere)
}

// FieldPercent is the share of refusals by both with the same code, reason, types and fields.
func (s Score) FieldPercent() float64 { return percent(s.SameField, s.RefusedThere-s.AcceptedHere) }

// A Rule is a group of misses.
type Rule struct {
	What    string   `json:"what"`
	Rule    string   `json:"rule"`
	Count   int      `json:"count"`
	Kinds   []string `json:"kinds"`
	Example string   `json:"example"` // kind/index
	Detail  string   `json:"detail,omitempty"`
}

// A Report is the result of a run.
type Report struct {
	Seed      uint64            `json:"seed"`
	Kinds     map[string]*Score `json:"kinds"`
	NotServed []string          `json:"notServed"`
	NoSeed    []string          `json:"noSeed"`
	Panicked  []string          `json:"panicked"` // objects that kube-apiserver gave no answer about
	Intended  map[string]int    `json:"intended"` // requests whose answers differ as a row of DIVERGENCES.md says
	mutex     sync.Mutex
	rules     map[string]*Rule
}

// NewReport returns an empty report.
func NewReport(seed uint64) *Report {
	return &Report{Seed: seed, Kinds: map[string]*Score{}, Intended: map[string]int{}, rules: map[string]*Rule{}}
}

// note adds misses that are not about one object.
func (r *Report) note(kind, example string, misses []answer.Miss) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.score(kind).Published += len(misses)
	r.group(kind, example, misses)
}

func (r *Report) score(kind string) *Score {
	s := r.Kinds[kind]
	if s == nil {
		s = &Score{}
		r.Kinds[kind] = s
	}
	return s
}

func (r *Report) group(kind, example string, misses []answer.Miss) {
	for _, m := range misses {
		key := m.What + ": " + m.Rule
		rule := r.rules[key]
		if rule == nil {
			rule = &Rule{What: m.What, Rule: m.Rule, Example: example, Detail: m.Detail}
			r.rules[key] = rule
		}
		rule.Count++
		if !slices.Contains(rule.Kinds, kind) {
			rule.Kinds = append(rule.Kinds, kind)
		}
	}
}

// add counts what a script has found.
func (r *Report) add(k *Kind, index int, s *script) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	score := r.score(k.ID)
	score.Objects++
	for _, x := range s.exchanges {
		score.count(x)
		for _, row := range x.Intended {
			r.Intended[row]++
		}
		if x.Panic {
			r.Panicked = append(r.Panicked, fmt.Sprintf("%s/%d", k.ID, index))
		}
	}
	r.group(k.ID, fmt.Sprintf("%s/%d", k.ID, index), s.misses())
}

func (s *Score) count(x *Exchange) {
	if x.Panic {
		s.Panics++
		return
	}
	if x.Table {
		s.Tables++
		if len(x.Outcome.Misses) == 0 {
			s.EqualTables++
		}
		return
	}
	s.Requests++
	o := x.Outcome
	if !o.There {
		s.RefusedThere++
	}
	switch {
	case o.There && o.Here:
		s.BothAccept++
		if o.Equal {
			s.Equal++
		}
	case o.There:
		s.RefusedHere++
	case o.Here:
		s.AcceptedHere++
	default:
		if o.SameField {
			s.SameField++
		}
		if o.SameText {
			s.SameText++
		}
	}
}

// Total returns the sum over all kinds.
func (r *Report) Total() Score {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	var sum Score
	for _, s := range r.Kinds {
		sum.Add(*s)
	}
	return sum
}

// Rules returns the misses by rule, the most frequent first.
func (r *Report) Rules() []*Rule {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	out := slices.Collect(maps.Values(r.rules))
	slices.SortFunc(out, func(a, b *Rule) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.What, b.What), cmp.Compare(a.Rule, b.Rule))
	})
	return out
}

// Summary is the last line of the report.
func (r *Report) Summary() string {
	sum := r.Total()
	return fmt.Sprintf("kinds: %d kinds, %d objects: stored equal in %s %% of those both accept, refused here but accepted there %d, accepted here but refused there %s %%, same field in %s %% of refusals",
		len(r.Kinds), sum.Objects, short(sum.EqualPercent()), sum.RefusedHere, short(sum.AcceptedPercent()), short(sum.FieldPercent()))
}

// short prints a share so that only 100 is shown as 100.
func short(percent float64) string {
	if percent == 100 || percent == 0 {
		return fmt.Sprintf("%.0f", percent)
	}
	return fmt.Sprintf("%.2f", min(max(percent, 0.01), 99.99))
}

// Write prints the report: a line for each kind, the misses by rule, and the summary.
func (r *Report) Write(w io.Writer) {
	fmt.Fprintf(w, "%-58s %7s %8s %8s %8s %8s %7s %7s %7s %5s\n", "kind", "objects", "requests", "equal %", "refused", "accepted", "field %", "text %", "table %", "publ.")
	for _, id := range slices.Sorted(maps.Keys(r.Kinds)) {
		s := *r.Kinds[id]
		fmt.Fprintf(w, "%-58s %7d %8d %8s %8d %8d %7s %7s %7s %5d\n", id, s.Objects, s.Requests, short(s.EqualPercent()), s.RefusedHere, s.AcceptedHere,
			short(s.FieldPercent()), short(percent(s.SameText, s.RefusedThere-s.AcceptedHere)), short(percent(s.EqualTables, s.Tables)), s.Published)
	}
	if len(r.NotServed) > 0 {
		fmt.Fprintf(w, "\nnot served here: %d: %s\n", len(r.NotServed), strings.Join(r.NotServed, ", "))
	}
	if len(r.NoSeed) > 0 {
		fmt.Fprintf(w, "\nwithout a seed: %d: %s\n", len(r.NoSeed), strings.Join(r.NoSeed, ", "))
	}
	if n := len(r.Panicked); n > 0 {
		fmt.Fprintf(w, "\nkube-apiserver closed the connection without an answer: %d requests, not compared: %s\n", n, strings.Join(r.Panicked[:min(n, 10)], ", "))
	}
	for _, row := range slices.Sorted(maps.Keys(r.Intended)) {
		fmt.Fprintf(w, "\nintended (conformance/DIVERGENCES.md: %s), counted as equal: %d requests\n", row, r.Intended[row])
	}
	if rules := r.Rules(); len(rules) > 0 {
		fmt.Fprintf(w, "\nmisses by rule (seed %d; -show KIND/NUMBER shows an example):\n", r.Seed)
		for _, rule := range rules {
			fmt.Fprintf(w, "%6d  %-13s  %s  [%s] %s\n", rule.Count, rule.What, rule.Rule, kindList(rule.Kinds), rule.Example)
		}
	}
	fmt.Fprintf(w, "\n%s\n", r.Summary())
}

func kindList(kinds []string) string {
	if len(kinds) > 3 {
		return fmt.Sprintf("%s and %d more", strings.Join(kinds[:3], ", "), len(kinds)-3)
	}
	return strings.Join(kinds, ", ")
}

// JSON returns the whole report, with the first example of each rule in detail.
func (r *Report) JSON() ([]byte, error) {
	return json.MarshalIndent(struct {
		*Report
		Total   Score   `json:"total"`
		Rules   []*Rule `json:"rules"`
		Summary string  `json:"summary"`
	}{r, r.Total(), r.Rules(), r.Summary()}, "", "  ")
}
