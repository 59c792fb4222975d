package search

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/espalier-dev/espalier"
	"github.com/espalier-dev/espalier/conformance/corpus"
	"github.com/espalier-dev/espalier/conformance/generate"
	"github.com/espalier-dev/espalier/conformance/mutate"
	"github.com/espalier-dev/espalier/conformance/oracle"
	"github.com/espalier-dev/espalier/crd"
	"github.com/espalier-dev/espalier/crd/cel"
	"github.com/espalier-dev/espalier/crd/diff"
)

// Config says how much to search.
type Config struct {
	Seed     uint64
	Pairs    int           // how many; 0 for no limit
	Duration time.Duration // how long; 0 for no limit
	Workers  int           // default 2
	Show     int           // misses to keep; default 10
	Progress io.Writer     // nil for silence
}

// Counts is what a search has done.
type Counts struct {
	Pairs       atomic.Int64 // schemas that changed; both compile
	Skipped     atomic.Int64 // edits that did not lead to a schema
	Same        atomic.Int64 // pairs without any change reported
	Safe        atomic.Int64 // pairs without a change of level Breaking or Risky for writers or stored objects
	Breaking    atomic.Int64 // pairs with a change of level Breaking for them
	Risky       atomic.Int64 // pairs with a change of level Risky for them, and none that is Breaking
	Broken      atomic.Int64 // Breaking pairs for which a counterexample was found
	RiskyBroken atomic.Int64 // Risky pairs for which one was found
	Objects     atomic.Int64 // objects that OLD stores, run through NEW
	Doubtful    atomic.Int64 // counterexamples that the reference does not confirm
	Misses      atomic.Int64
}

// String is a line of progress.
func (c *Counts) String() string {
	return fmt.Sprintf("pairs %d (skipped %d), objects %d; breaking %d (counterexample found for %d), risky %d (found for %d), safe %d (nothing reported for %d); unconfirmed %d, misses %d",
		c.Pairs.Load(), c.Skipped.Load(), c.Objects.Load(), c.Breaking.Load(), c.Broken.Load(), c.Risky.Load(), c.RiskyBroken.Load(),
		c.Safe.Load(), c.Same.Load(), c.Doubtful.Load(), c.Misses.Load())
}

// A Miss is a pair of schemas and an object that the change breaks without a report.
type Miss struct {
	Seed             uint64
	Edits            []string
	Old, New, Object []byte
	What             string
	Reported         []diff.Change
}

// String is a reproducer.
func (m *Miss) String() string {
	s := fmt.Sprintf("seed %d, edits %q: %s\nold    %s\nnew    %s\nobject %s\n", m.Seed, m.Edits, m.What, m.Old, m.New, m.Object)
	for _, x := range m.Reported {
		s += fmt.Sprintf("reported: %s %s %s %q: %s\n", x.Level, x.Check, x.Breaks, x.Path, x.Message)
	}
	return s
}

// Run searches among changes of the schemas.
func Run(ctx context.Context, schemas []corpus.Schema, cfg Config) (*Counts, []*Miss, error) {
	pool := &mutate.Pool{}
	for _, s := range schemas {
		if err := pool.Add(s.Name, s.JSON, 3); err != nil {
			return nil, nil, err
		}
	}
	if pool.Len() == 0 {
		return nil, nil, fmt.Errorf("no schemas to search among")
	}
	if cfg.Duration > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, cfg.Duration)
		defer cancel()
	}
	r := &runner{cfg: cfg, pool: pool}
	r.cfg.Workers, r.cfg.Show = cmp.Or(cfg.Workers, 2), cmp.Or(cfg.Show, 10)
	done := make(chan struct{})
	go r.progress(done)
	var workers errgroup.Group
	workers.SetLimit(r.cfg.Workers)
	for i := 0; (cfg.Pairs == 0 || i < cfg.Pairs) && ctx.Err() == nil; i++ {
		workers.Go(func() error { r.pair(ctx, cfg.Seed<<32+uint64(i)); return nil })
	}
	_ = workers.Wait() // there are no errors
	close(done)
	return &r.counts, r.misses, nil
}

// How many objects a pair gets that nothing is reported for, and another one.
const quiet, alarmed = 60, 15

type runner struct {
	cfg    Config
	pool   *mutate.Pool
	counts Counts

	mu     sync.Mutex
	misses []*Miss
}

func (r *runner) progress(done chan struct{}) {
	if r.cfg.Progress == nil {
		return
	}
	tick := time.NewTicker(30 * time.Second)
	defer tick.Stop()
	for {
		select {
		case <-done:
			return
		case <-tick.C:
			fmt.Fprintln(r.cfg.Progress, &r.counts)
		}
	}
}

// validator is a compiled schema.
type validator struct {
	source []byte
	schema *espalier.Schema
	strict *espalier.Schema // validates values as JSON Schema does
	rules  *espalier.Rules
}

func newValidator(schema []byte) (*validator, error) {
	s, err := espalier.Compile(schema, espalier.CompileOptions{})
	if err != nil {
		return nil, err
	}
	strict, err := espalier.Compile(schema, espalier.CompileOptions{Strict: true})
	if err != nil {
		return nil, err
	}
	set, err := cel.Compile(s)
	if err != nil {
		return nil, err
	}
	return &validator{source: schema, schema: s, strict: strict, rules: set}, nil
}

// stores returns what is stored of an object, nil if it is refused, or accepted by mistake.
func (j *validator) stores(object []byte) []byte {
	res, result, err := j.schema.Admit(object, espalier.AdmitOptions{Validate: espalier.ValidateOptions{Rules: j.rules}})
	if err != nil || !result.Valid() {
		return nil
	}
	if v, err := j.strict.Validate(res.Bytes, espalier.ValidateOptions{}); err != nil || !v.Valid() {
		return nil
	}
	return bytes.Clone(res.Bytes)
}

// fate is what happens to a stored object.
type fate struct {
	what  string   // "" if nothing
	paths []string // where, if that can be said
}

func (j *validator) against(stored []byte) fate {
	var report espalier.Report
	res, result, err := j.schema.Admit(stored, espalier.AdmitOptions{Report: &report, Validate: espalier.ValidateOptions{Rules: j.rules}})
	switch {
	case err != nil:
		return fate{what: "refused: " + err.Error()}
	case len(report.Pruned()) > 0:
		return fate{fmt.Sprintf("pruned: %q", report.Pruned()), report.Pruned()}
	case !result.Valid():
		f := fate{what: "invalid: " + result.Err().Error()}
		f.paths = blamed(result.Errors)
		return f
	case !bytes.Equal(res.Bytes, stored):
		return fate{what: "changed: " + string(res.Bytes)}
	}
	return fate{}
}

// blamed returns where the violations are. Errors in the branches of anyOf and the like count for the keyword:
// that a field satisfies no branch may be because of a change of another.
func blamed(errs []espalier.Violation) (paths []string) {
	var junctors []string
	for i := range errs {
		switch errs[i].Keyword {
		case "allOf", "anyOf", "oneOf", "not":
			junctors = append(junctors, errs[i].At)
		}
	}
	for i := range errs {
		at := errs[i].At
		if !slices.ContainsFunc(junctors, func(j string) bool { return j != at && (j == "" || strings.HasPrefix(at, j)) }) {
			paths = append(paths, at)
		}
	}
	return paths
}

var indexes = regexp.MustCompile(`\[(\d+|[a-z"][^]]*)\]`)

// steps splits a path. Indexes, and keys of maps, are those of any item.
func steps(path string) []string {
	path = strings.ReplaceAll(path, "[*]", ".*")
	return strings.FieldsFunc(indexes.ReplaceAllString(path, ".*"), func(r rune) bool { return r == '.' })
}

// covers reports whether a change at one path may be what happens at another: one is the other's or above it.
func covers(change, path string) bool {
	if strings.Contains(change, `["`) {
		return true // a name with dots in it, which the paths of objects do not tell from several names
	}
	a, b := steps(change), steps(path)
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] && a[i] != "*" && b[i] != "*" {
			return false
		}
	}
	return true
}

// confirmed asks the reference the same.
func confirmed(old, now *validator, stored []byte) bool {
	if !accepted(old.source) || !accepted(now.source) {
		return false
	}
	a, err := oracle.Compile(old.source)
	if err != nil {
		return false
	}
	b, err := oracle.Compile(now.source)
	if err != nil {
		return false
	}
	before := a.Normalize(stored, oracle.Request)
	if v := a.Validate(stored, oracle.ValidateOptions{}); before.Err != nil || !bytes.Equal(before.Bytes, stored) || !v.Valid() {
		return false
	}
	after := b.Normalize(stored, oracle.Request)
	if after.Err != nil || !bytes.Equal(after.Bytes, stored) {
		return true
	}
	v := b.Validate(after.Bytes, oracle.ValidateOptions{})
	return !v.Valid()
}

func accepted(schema []byte) bool {
	v := oracle.Check(schema, false)
	return v.Accepted() && len(v.Defaults) == 0 && len(v.CEL) == 0
}

// CRD returns a CRD with one version of the given schema.
func CRD(schema []byte) []byte {
	return fmt.Appendf(nil, `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"trees.orchard.example"},`+
		`"spec":{"group":"orchard.example","scope":"Namespaced","names":{"plural":"trees","singular":"tree","kind":"Tree","listKind":"TreeList"},`+
		`"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":%s}}]}}`, schema)
}

// expensive is part of the rules that are meant to exceed the budget for evaluating them: that takes minutes.
var expensive = []byte("[1,2,3,4,5,6,7,8,9,10].")

// pair searches for a counterexample to one pair of schemas.
func (r *runner) pair(ctx context.Context, seed uint64) {
	old := r.pool.Enrich(seed).Schema
	if seed%2 == 0 {
		old = Focus(old, seed)
	}
	now, edits := Edit(old, seed)
	if len(edits) == 0 || bytes.Equal(old, now) || bytes.Contains(old, expensive) {
		r.counts.Skipped.Add(1)
		return
	}
	before, err := newValidator(old)
	if err != nil {
		r.counts.Skipped.Add(1)
		return
	}
	after, err := newValidator(now)
	if err != nil {
		r.counts.Skipped.Add(1)
		return
	}
	changes, err := compare(CRD(old), CRD(now))
	if err != nil {
		r.miss(&Miss{Seed: seed, Edits: edits, Old: old, New: now, What: "Compare: " + err.Error()})
		return
	}
	r.counts.Pairs.Add(1)
	worst, defaulted := diff.Safe, false
	var alarms []diff.Change
	for _, x := range changes {
		if x.Breaks&(diff.Writers|diff.Stored) != 0 {
			worst = max(worst, x.Level)
			if x.Level != diff.Safe {
				alarms = append(alarms, x)
			}
		}
		defaulted = defaulted || x.Check == "default-added"
	}
	broken, budget := (*atomic.Int64)(nil), alarmed
	switch worst {
	case diff.Breaking:
		r.counts.Breaking.Add(1)
		broken = &r.counts.Broken
	case diff.Risky:
		r.counts.Risky.Add(1)
		broken = &r.counts.RiskyBroken
	default:
		budget = quiet
		r.counts.Safe.Add(1)
		if len(changes) == 0 {
			r.counts.Same.Add(1)
		}
	}
	r.objects(ctx, seed, before, after, budget, func(stored []byte, f fate) bool {
		uncovered := slices.ContainsFunc(f.paths, func(path string) bool {
			return !slices.ContainsFunc(alarms, func(x diff.Change) bool { return covers(x.Path, path) })
		})
		if broken != nil && !uncovered {
			broken.Add(1)
			return false
		}
		if defaulted && f.what[0] == 'c' { // a new field has a default, which was reported
			return true
		}
		if !confirmed(before, after, stored) {
			r.counts.Doubtful.Add(1)
			return true
		}
		r.miss(&Miss{seed, edits, old, now, stored, f.what, changes})
		return false
	})
}

func (r *runner) miss(m *Miss) {
	r.counts.Misses.Add(1)
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.misses) < r.cfg.Show {
		r.misses = append(r.misses, m)
		if r.cfg.Progress != nil {
			fmt.Fprintln(r.cfg.Progress, m)
		}
	}
}

// objects makes objects that before stores and calls found for those that after does something to, until it returns
// false.
func (r *runner) objects(ctx context.Context, seed uint64, before, after *validator, budget int, found func(stored []byte, f fate) bool) {
	var plans [2]*generate.Plan
	for i, j := range []*validator{before, after} {
		p, err := generate.Compile(j.source)
		if err != nil {
			return
		}
		plans[i] = p
	}
	var buf []byte
	doubts := 0
	for i := range 3 * budget {
		if budget <= 0 || doubts > 3 || ctx.Err() != nil {
			return
		}
		o := generate.Options{Mode: generate.Breach, Compact: true, Size: 100 + i%5*150}
		plan := plans[1]
		switch i % 6 {
		case 0:
			o.Mode, o.Resolve, plan = generate.Valid, true, plans[0]
		case 1:
			o.Mode, o.Resolve, o.Size = generate.Valid, true, 1500
		case 2, 3:
			plan = plans[0]
		}
		buf = plan.Append(buf[:0], seed<<8+uint64(i), o)
		if i%5 > 1 {
			buf = Poke(buf, seed<<8+uint64(i))
		}
		stored := before.stores(buf)
		if stored == nil {
			continue
		}
		budget--
		r.counts.Objects.Add(1)
		if f := after.against(stored); f.what != "" {
			if !found(stored, f) {
				return
			}
			doubts++
		}
	}
}

func compare(old, now []byte) ([]diff.Change, error) {
	before, err := crd.Parse(old)
	if err != nil {
		return nil, err
	}
	after, err := crd.Parse(now)
	if err != nil {
		return nil, err
	}
	return diff.Compare(before, after)
}
