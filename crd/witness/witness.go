package witness

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/espalier-dev/espalier"
	"github.com/espalier-dev/espalier/crd"
	"github.com/espalier-dev/espalier/internal/crdtree"
	"github.com/espalier-dev/espalier/internal/syntax"
)

// Step is a step of a path into objects.
type Step struct {
	Name string // of a field; empty for items and values
	Into Into
}

// Into says what a step leads to.
type Into uint8

// What steps lead to.
const (
	Field Into = iota
	Item       // of a list
	Value      // of a map
)

// Focus is the change that a witness has to break.
type Focus struct {
	Path []Step
	// Keyword is what the new schema has to refuse the object for; empty if it has to prune a field at the path.
	Keyword string
	// Rule is the CEL rule, for the keyword x-kubernetes-validations.
	Rule *syntax.Rule
	// Hints are JSON values for the place, to be tried first.
	Hints []string
}

// Witness is an object that a change breaks.
type Witness struct {
	Object  []byte // JSON, as the old schema stores it
	Before  []byte // for rules about updates: what is stored before Object is written
	Refusal string // what the new schema says
}

// Pair is a version of a CRD before and after a change.
type Pair struct {
	old, now side
	head     object                  // apiVersion, kind and metadata
	work     int                     // see maxWork
	strings  map[[4]*schema][]string // texts of parts, which are needed again and again
	matches  map[string][]string     // texts of patterns
	domains  map[string][]any
	base     any            // a small object that the old schema accepts
	bases    map[string]any // the same with a value at a place
	ready    bool
	failed   bool
}

// side is one of the two schemas.
type side struct {
	version *crd.Version
	keeps   bool // unknown fields are preserved everywhere
	tree    *syntax.Schema
	schema  *espalier.Schema
	rules   *espalier.Rules
	weights map[*schema]int
}

// NewPair returns the pair of two versions. Schemas are compiled by the first search.
func NewPair(old, now *crd.CRD, was, is *crd.Version) *Pair {
	return &Pair{
		old: side{version: was, keeps: old.PreserveUnknownFields}, now: side{version: is, keeps: now.PreserveUnknownFields},
		work:    maxWork,
		strings: map[[4]*schema][]string{}, matches: map[string][]string{}, domains: map[string][]any{}, bases: map[string]any{},
		head: object{"apiVersion": quoted(old.Group + "/" + was.Name), "kind": quoted(old.Kind), "metadata": object{"name": quoted("a")}},
	}
}

func (p *Pair) prepare() bool {
	if !p.ready {
		p.ready = true
		p.failed = !p.old.compile() || !p.now.compile()
	}
	return !p.failed && !p.exhausted()
}

func (s *side) compile() bool {
	if s.version.Schema == nil || s.keeps {
		return false
	}
	parsed := crdtree.Parse(s.version)
	if len(parsed.Problems) > 0 || parsed.Tree == nil {
		return false
	}
	s.tree, s.weights = parsed.Tree, map[*schema]int{}
	var err error
	s.schema, s.rules, err = s.version.Compile(espalier.CompileOptions{Stored: true})
	return err == nil
}

// Result says how a search ended.
type Result uint8

// The results.
const (
	Found Result = iota
	NotFound
	// NotSearched: the schemas do not compile, the budget is used up, no candidate with a value at the place was valid, or
	// candidates were too large.
	NotSearched
)

// Glance tries a few candidates for a witness of a change. With many changes, glance at all of them before you
// search for the witness of one: they share a budget.
func (p *Pair) Glance(f Focus) (Witness, Result) { return p.within(f, perGlance) }

// Find searches for a witness of a change.
func (p *Pair) Find(f Focus) (Witness, Result) { return p.within(f, perFocus) }

func (p *Pair) within(f Focus, candidates int) (Witness, Result) {
	if !p.prepare() {
		return Witness{}, NotSearched
	}
	p.spend(1) // also for what is not searched long
	s := &search{Pair: p, focus: f, left: candidates}
	w, ok := s.run()
	switch {
	case ok:
		return w, Found
	case s.reached == 0 || s.cut || p.exhausted():
		return Witness{}, NotSearched
	}
	return Witness{}, NotFound
}

// search is one search.
type search struct {
	*Pair
	focus Focus
	left  int // candidates
	nodes int // values made for the object at hand
	// reached counts the valid candidates with a value at the focus; where that has to be absent, with a parent of it.
	reached int
	updates [][]byte // valid candidates, for rules about updates
	last    int      // what the last candidate took
	cut     bool     // a value is smaller than it should be
}

// charge counts a candidate and its work.
func (s *search) charge(work int) {
	s.left--
	s.last = work
	s.spend(work)
}

// admit runs an object through the old schema.
func (s *search) admit(o any) ([]byte, []espalier.Violation, bool) {
	old, _ := s.old.check(o, s.old.tree)
	now, _ := s.now.check(o, s.now.tree)
	s.charge(old + now)
	admitted, v, err := s.old.schema.Admit(encode(o), espalier.AdmitOptions{Validate: espalier.ValidateOptions{Rules: s.old.rules}})
	if err != nil {
		return nil, nil, false
	}
	s.spend(errorWork * len(v.Errors))
	return bytes.Clone(admitted.Bytes), v.Errors, true
}

// broken reports whether the new schema breaks a stored object at the focus, and how.
func (s *search) broken(stored []byte) (string, bool) {
	var report espalier.Report
	admitted, v, err := s.now.schema.Admit(stored, espalier.AdmitOptions{Report: &report, Validate: espalier.ValidateOptions{Rules: s.now.rules}})
	if err != nil {
		return "", false
	}
	s.spend(errorWork * len(v.Errors))
	at, present := s.spots(stored)
	if present || s.focus.Keyword == "required" && len(at) > 0 {
		s.reached++
	}
	if s.focus.Keyword == "" {
		for _, path := range report.Pruned() {
			if below(path, at) {
				return "the API server prunes " + path, true
			}
		}
	}
	for i := range v.Errors {
		if s.blames(&v.Errors[i], at) {
			return v.Errors[i].Error(), true
		}
	}
	if s.focus.Keyword == "nullable" && !bytes.Equal(admitted.Bytes, stored) {
		for _, c := range report.Changes {
			if at[c.Path] {
				return "the API server does not keep the null of " + c.Path, true
			}
		}
	}
	return "", false
}

// budgetText is in errors about rules that take too long: that is no reason to say that they fail.
const budgetText = "cost budget"

// blames reports whether a violation is of the focus.
func (s *search) blames(v *espalier.Violation, at map[string]bool) bool {
	f := &s.focus
	if f.Rule != nil {
		if v.Keyword != "x-kubernetes-validations" || strings.Contains(v.Detail, budgetText) {
			return false
		}
		switch {
		case f.Rule.MessageExpression != "": // the text is not known
		case f.Rule.Message != "" && !strings.Contains(v.Detail, strings.TrimSpace(f.Rule.Message)),
			f.Rule.Message == "" && !strings.Contains(v.Detail, strings.TrimSpace(f.Rule.Rule)):
			return false
		}
		return below(v.At, at)
	}
	if f.Keyword == "" || f.Keyword == "nullable" {
		return below(v.At, at) && !strings.Contains(v.Detail, budgetText)
	}
	return (at[v.At] || at[v.Path]) && (v.Keyword == f.Keyword || alike[v.Keyword] == f.Keyword)
}

// below reports whether a path is one of those, or leads on from it.
func below(path string, at map[string]bool) bool {
	for ; ; path = up(path) {
		if at[path] {
			return true
		}
		if path == "" {
			return false
		}
	}
}

// alike are keywords whose violations have another name.
var alike = map[string]string{
	"exclusiveMaximum": "maximum", "exclusiveMinimum": "minimum",
	"x-kubernetes-list-map-keys": "x-kubernetes-list-type", "x-kubernetes-int-or-string": "type", "nullable": "type",
}

// up returns the path of the parent.
func up(path string) string { return path[:max(0, strings.LastIndexAny(path, ".["))] }

// try runs a candidate, repaired if need be, and returns the smallest witness that it leads to.
func (s *search) try(o any) (Witness, bool) {
	o, stored, ok := s.repair(o)
	if !ok {
		return Witness{}, false
	}
	if s.focus.Rule != nil && strings.Contains(s.focus.Rule.Rule, "oldSelf") {
		if w, ok := s.update(stored); ok {
			return w, true
		}
	}
	refusal, ok := s.broken(stored)
	if !ok {
		return Witness{}, false
	}
	return s.shrink(o, Witness{Object: stored, Refusal: refusal}), true
}

// update tries updates from and to the other candidates.
func (s *search) update(stored []byte) (Witness, bool) {
	const most = 40
	at, _ := s.spots(stored)
	for _, other := range s.updates {
		for _, pair := range [][2][]byte{{other, stored}, {stored, other}} {
			s.charge(s.last)
			_, v, err := s.now.schema.Admit(pair[1], espalier.AdmitOptions{Validate: espalier.ValidateOptions{Rules: s.now.rules, Old: pair[0]}})
			if err != nil {
				continue
			}
			s.spend(errorWork * len(v.Errors))
			if bytes.Equal(pair[1], other) {
				at, _ = s.spots(other)
			}
			for i := range v.Errors {
				if s.blames(&v.Errors[i], at) {
					return Witness{pair[1], pair[0], v.Errors[i].Error()}, true
				}
			}
		}
	}
	if len(s.updates) < most {
		s.updates = append(s.updates, stored)
	}
	return Witness{}, false
}

// shrink removes members of the object as long as it stays a witness.
func (s *search) shrink(o any, w Witness) Witness {
	const large = 100
	tries := 24
	for tries > 0 {
		smaller := false
		all := nodes(o)
		if len(all) > large { // a long list
			break
		}
		for _, n := range all {
			if len(n.path) < 2 || n.path[0].Name == "metadata" || s.exhausted() {
				continue
			}
			if tries--; tries < 0 {
				break
			}
			without, ok := remove(o, n.path)
			if !ok {
				continue
			}
			stored, errs, ok := s.admit(without)
			if !ok || len(errs) > 0 || len(stored) >= len(w.Object) {
				continue
			}
			if refusal, ok := s.broken(stored); ok {
				o, w, smaller = without, Witness{Object: stored, Refusal: refusal}, true
				break
			}
		}
		if !smaller {
			break
		}
	}
	return w
}

func encode(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if e.Encode(v) != nil { // a literal of a schema that is not JSON: there is none
		return []byte("null")
	}
	return bytes.TrimSpace(b.Bytes())
}

func quoted(s string) literal { return literal(encode(s)) }
