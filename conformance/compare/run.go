package compare

import (
	"context"
	"fmt"
	"io"
	"regexp"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/espalier-dev/espalier/conformance/corpus"
	"github.com/espalier-dev/espalier/conformance/coverage"
	"github.com/espalier-dev/espalier/conformance/generate"
	"github.com/espalier-dev/espalier/conformance/history"
	"github.com/espalier-dev/espalier/conformance/modes"
	"github.com/espalier-dev/espalier/conformance/mutate"
	"github.com/espalier-dev/espalier/conformance/oracle"
)

// Config says how much to compare.
type Config struct {
	Seed     uint64
	Mutants  int // mutated schemas
	Objects  int // object runs over the schemas as they are: one object, one source, both sides
	Variants int // schemas varied within the rules; each gets objectsPerVariant object runs
	Enriched int // schemas rich in value validations and rules; each gets validationsPerEnriched validations
	// Expressions is the number of schemas with composed CEL rules; each gets objectsPerCase objects.
	Expressions int
	// Edges is the number of objects for which the size is looked for at which rules become too expensive, and of so many
	// times boundsPerBudget schemas with such a bound.
	Edges int
	Rules bool // compare the rules and the defaults of the schemas as they are
	// Requests is the number of resources, each of a schema and a form of its CRD, that get roundsPerResource objects.
	Requests  int
	Histories int // CRDs, each with 3 to 8 changes
	Modes     int // schemas in a mode of the engine, each with objectsPerMode objects
	// Whole CRDs are compared as they are, and then this many mutated ones, each created and changed.
	Whole     []corpus.CRD
	CRDs      int
	Grammar   int  // schemas made from nothing; each gets valuesPerCase objects, with comparisons of each
	NoSchemas bool // only whole CRDs
	// Validations are made over the schemas as they are: one object, new or changed, both sides.
	Validations int
	// Rounds is into how many rounds the work is divided; default 1. Every round has a share of every part, so that all
	// parts have been tried after the first.
	Rounds   int
	First    bool           // stop at the first difference
	Duration time.Duration  // go on with further seeds until this much time has passed; 0 stops at the numbers
	Workers  int            // default 2
	Show     int            // differences to shrink and print; default 10
	Ignore   *regexp.Regexp // reproducers that match are counted apart: to see what is behind a known defect
	Progress io.Writer      // nil for silence
}

// Counts is what has been compared.
type Counts struct {
	Results, Mutants, Accepted, Objects, Refused, Differences, Explained, Ignored, Panics atomic.Int64
	BadDefaults, BadRules                                                                 atomic.Int64 // schemas of the corpus whose defaults or rules are refused
	ValidationCounts
	CRDCounts
	*RequestCounts
	*HistoryCounts
	*ModeCounts
	ExpressionCounts
	EdgeCounts
	Grammar GrammarCounts
	// Evaluated is the number of distinct rules that were evaluated, Refuted that of fields for which one gave false or
	// failed, as the schemas have them.
	Evaluated, Refuted int
	Rows               map[string]int // explained differences by row of DIVERGENCES.md
	// Tables say what the generators of the parts that ran have produced.
	Tables []*coverage.Table
}

// Comparisons is the number of answers that were compared: about schemas, CRDs, objects, and values to which a rule applies.
func (c *Counts) Comparisons() int64 {
	return c.Results.Load() + c.Mutants.Load() + c.Objects.Load() + c.Runs() + c.CRDs.Load() + c.Created.Load() + c.Changed.Load() + c.RuleRuns.Load() +
		c.ComposedSchemas.Load() + c.ComposedRuns.Load() + c.Versioned.Load() + c.Paths.Load() + c.EdgeRuns.Load() +
		c.Grammar.Comparisons() +
		c.Asked.Load() + c.Admissions.Load() + 3*c.Steps.Load() + c.Moded.Load()
}

// Missing lists what the grammars of the generators promise and was never compared.
func (c *Counts) Missing() (list []string) {
	for _, t := range c.Tables {
		list = append(list, t.Missing()...)
	}
	return list
}

// String is a line of progress.
func (c *Counts) String() string {
	return fmt.Sprintf("comparisons %d, differences %d (explained %d), crashes of the reference %d",
		c.Comparisons(), c.Differences.Load(), c.Explained.Load(), c.Panics.Load())
}

// objectsPerMutant is how many objects every accepted mutant gets: mutants have combinations that real schemas lack.
const objectsPerMutant = 6

// objectsPerVariant is the same for variants.
const objectsPerVariant = 24

// share is the work of one round.
func (c Config) share() Config {
	for _, n := range []*int{&c.Mutants, &c.Objects, &c.Variants, &c.Enriched, &c.CRDs, &c.Validations, &c.Requests, &c.Histories, &c.Modes, &c.Expressions, &c.Edges, &c.Grammar} {
		*n = (*n + c.Rounds - 1) / c.Rounds
	}
	return c
}

// share is what one round takes of a list.
func share[T any](list []T, round, rounds int) (part []T) {
	for i := round % rounds; i < len(list); i += rounds {
		part = append(part, list[i])
	}
	return part
}

// Run compares everything over the schemas. It returns what was compared and the shrunk differences, Show at most.
func Run(ctx context.Context, schemas []corpus.Schema, cfg Config) (*Counts, []*Difference, error) {
	if cfg.Workers <= 0 {
		cfg.Workers = 2
	}
	if cfg.Show <= 0 {
		cfg.Show = 10
	}
	if cfg.Rounds <= 0 {
		cfg.Rounds = 1
	}
	cfg = cfg.share()
	r := &runner{cfg: cfg, until: time.Now().Add(cfg.Duration), kinds: map[string]int{}, seen: map[string]bool{},
		rows: map[string]int{}, reached: map[string]bool{}, refuted: map[string]bool{}}
	if cfg.Expressions > 0 {
		r.cover = newCover()
		r.counts.Tables = append(r.counts.Tables, r.cover.uses, r.cover.outcomes)
	}
	r.ctx, r.stop = context.WithCancel(ctx)
	defer r.stop()
	r.counts.RequestCounts = newRequestCounts()
	r.counts.HistoryCounts = newHistoryCounts()
	r.counts.ModeCounts = newModeCounts()
	if cfg.Modes > 0 {
		r.counts.Tables = append(r.counts.Tables, r.counts.Cells, r.counts.Versions)
	}
	if cfg.Histories > 0 {
		r.counts.Tables = append(r.counts.Tables, r.counts.Outcomes)
	}
	if cfg.Requests > 0 {
		r.counts.Tables = append(r.counts.Tables, r.counts.Forms)
	}
	go r.report()

	pool := &mutate.Pool{}
	for _, s := range schemas {
		if err := pool.Add(s.Name, s.JSON, 2); err != nil {
			return &r.counts, nil, fmt.Errorf("%s: %w", s.Name, err)
		}
	}
	whole := mutate.NewCRDs(pool)
	for _, d := range cfg.Whole {
		if err := whole.Add(d.Name, d.JSON); err != nil {
			return &r.counts, nil, fmt.Errorf("%s: %w", d.Name, err)
		}
	}
	usable := make([][]corpus.Schema, cfg.Rounds)
	for round := 0; r.ctx.Err() == nil; round++ {
		if cfg.Rounds > 1 {
			r.say("Round %d of %d", round+1, cfg.Rounds)
		}
		if round < cfg.Rounds {
			usable[round] = r.real(share(schemas, round, cfg.Rounds), share(cfg.Whole, round, cfg.Rounds))
		}
		r.made(usable[round%cfg.Rounds], pool, whole, uint64(round))
		if round+1 >= cfg.Rounds && (cfg.Duration == 0 || time.Now().After(r.until)) {
			break
		}
	}
	r.counts.Evaluated, r.counts.Refuted, r.counts.Rows = len(r.reached), len(r.refuted), r.rows
	return &r.counts, r.found, ctx.Err()
}

// real compares schemas and CRDs as they are, and returns the schemas that both sides accept.
func (r *runner) real(schemas []corpus.Schema, whole []corpus.CRD) (usable []corpus.Schema) {
	if !r.cfg.NoSchemas {
		r.say("Comparing the results of %d schemas", len(schemas))
		usable = r.compareSchemas(schemas)
	}
	if len(whole) > 0 && r.cfg.CRDs > 0 {
		r.say("%d whole CRDs", len(whole))
		r.crds(whole)
	}
	if r.cfg.Rules {
		r.say("costs of rules")
		r.rules(usable)
	}
	return usable
}

// made compares what generators make of the schemas and CRDs.
func (r *runner) made(usable []corpus.Schema, pool *mutate.Pool, whole *mutate.CRDs, round uint64) {
	cfg := &r.cfg
	if cfg.Grammar > 0 {
		r.say("%d schemas of the grammar with %d objects each", cfg.Grammar, valuesPerCase)
		r.grammarCases(round)
	}
	if cfg.Expressions > 0 {
		r.say("%d schemas with composed rules, with %d objects each", cfg.Expressions, objectsPerCase)
		r.expressions(round)
	}
	if cfg.Edges > 0 {
		r.say("cost edges of %d schemas and %d objects", cfg.Edges*boundsPerBudget, cfg.Edges)
		r.edges(round)
	}
	if cfg.CRDs > 0 && whole.Len() > 0 && pool.Len() > 0 {
		r.say("%d mutated CRDs, created and changed", cfg.CRDs)
		r.mutatedCRDs(whole, round)
	}
	if cfg.Modes > 0 && pool.Len() > 0 {
		r.say("%d schemas in a mode with %d objects each, and CRDs of %d compatibility versions", cfg.Modes, objectsPerMode, len(modes.Versions()))
		r.modes(pool, round)
	}
	if cfg.Histories > 0 && pool.Len() > 0 {
		r.say("%d histories of CRDs", cfg.Histories)
		r.histories(history.New(whole, pool), round)
	}
	if cfg.Requests > 0 && pool.Len() > 0 {
		r.say("%d resources with requests about %d objects each", cfg.Requests, roundsPerResource)
		r.requests(usable, pool, round)
	}
	if cfg.Enriched > 0 && pool.Len() > 0 {
		r.say("%d enriched schemas with %d validations each", cfg.Enriched, validationsPerEnriched)
		r.enriched(pool, round)
	}
	if cfg.Validations > 0 && len(usable) > 0 {
		r.say("%d validations over %d schemas", cfg.Validations, len(usable))
		r.validationsOf(usable, round)
	}
	if cfg.Mutants > 0 && pool.Len() > 0 {
		r.say("%d mutated schemas from %d parts", cfg.Mutants, pool.Len())
		r.mutants(pool, round)
	}
	if cfg.Variants > 0 && pool.Len() > 0 {
		r.say("%d varied schemas with %d object runs each", cfg.Variants, objectsPerVariant)
		r.variants(pool, round)
	}
	if cfg.Objects > 0 && len(usable) > 0 {
		r.say("%d object runs over %d schemas", cfg.Objects, len(usable))
		r.objects(usable, round)
	}
}

type runner struct {
	cfg    Config // of one round
	ctx    context.Context
	stop   func()
	until  time.Time
	counts Counts

	mu    sync.Mutex
	found []*Difference
	kinds map[string]int  // differences by signature
	seen  map[string]bool // shapes of those kept

	grammar *grammarTables

	rows             map[string]int  // explained differences
	reached, refuted map[string]bool // rules
	cover            *cover
}

func (r *runner) say(format string, args ...any) {
	if r.cfg.Progress != nil {
		fmt.Fprintf(r.cfg.Progress, format+"\n", args...)
	}
}

func (r *runner) report() {
	tick := time.NewTicker(5 * time.Second)
	defer tick.Stop()
	for {
		select {
		case <-r.ctx.Done():
			return
		case <-tick.C:
			r.say("  %s", &r.counts)
		}
	}
}

// each runs n pieces of work on the workers.
func (r *runner) each(n int, work func(i int)) {
	var workers errgroup.Group
	workers.SetLimit(r.cfg.Workers)
	for i := 0; i < n && r.ctx.Err() == nil; i++ {
		workers.Go(func() error { work(i); return nil })
	}
	_ = workers.Wait() // there are no errors
}

// triesPerKind bounds how many differences of one rough kind are shrunk, in search of others behind them.
const triesPerKind = 12

// differ counts a difference. Some of each kind are shrunk; those that remain different from each other are kept.
func (r *runner) differ(d *Difference, origin string) {
	if r.cfg.Ignore != nil && r.cfg.Ignore.MatchString(d.String()) {
		r.counts.Ignored.Add(1)
		return
	}
	r.counts.Differences.Add(1)
	d.Origin = origin
	rough := signature(d)
	r.mu.Lock()
	r.kinds[rough]++
	skip := r.kinds[rough] > triesPerKind || len(r.found) >= r.cfg.Show
	r.mu.Unlock()
	if skip {
		return
	}
	d = Shrink(d, 10*time.Second)
	fine := shape(d)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.seen[fine] || len(r.found) >= r.cfg.Show {
		return
	}
	r.seen[fine] = true
	r.found = append(r.found, d)
	r.say("%s", d)
	if r.cfg.First {
		r.stop()
	}
}

// compareSchemas compares the results of validating the schemas as they are and returns those that both sides accept.
func (r *runner) compareSchemas(schemas []corpus.Schema) []corpus.Schema {
	ok := make([]bool, len(schemas))
	r.each(len(schemas), func(i int) {
		s := schemas[i]
		d, theirs := Schema(s.JSON, s.Status)
		r.counts.Results.Add(1)
		if d != nil {
			r.differ(d, s.Name+" of "+s.Source)
			return
		}
		ok[i] = theirs.Accepted()
		if len(theirs.Defaults) > 0 {
			r.counts.BadDefaults.Add(1)
		}
		if len(theirs.CEL) > 0 {
			r.counts.BadRules.Add(1)
		}
	})
	var usable []corpus.Schema
	for i, yes := range ok {
		if yes {
			usable = append(usable, schemas[i])
		}
	}
	return usable
}

func (r *runner) mutants(pool *mutate.Pool, round uint64) {
	r.each(r.cfg.Mutants, func(i int) {
		seed := r.cfg.Seed + round*uint64(r.cfg.Mutants) + uint64(i)
		m := pool.Make(seed)
		origin := fmt.Sprintf("mutant %d of %s %v", seed, m.Base, m.Applied)
		d, theirs := Schema(m.Schema, m.Status)
		r.counts.Mutants.Add(1)
		if theirs.Panic != nil {
			r.counts.Panics.Add(1)
		}
		if d != nil {
			r.differ(d, origin)
			return
		}
		if !theirs.Accepted() {
			return
		}
		if !m.Status {
			r.counts.Accepted.Add(1)
			r.schema(m.Schema, origin, seed, objectsPerMutant)
		}
	})
}

// variants compares the results of validating schemas, and objects of schemas, that are rich in what normalization looks at.
func (r *runner) variants(pool *mutate.Pool, round uint64) {
	r.each(r.cfg.Variants, func(i int) {
		seed := r.cfg.Seed + round*uint64(r.cfg.Variants) + uint64(i)
		m := pool.Vary(seed)
		origin := fmt.Sprintf("variant %d of %s %v", seed, m.Base, m.Applied)
		d, theirs := Schema(m.Schema, false)
		r.counts.Mutants.Add(1)
		if d != nil {
			r.differ(d, origin)
			return
		}
		if theirs.Accepted() {
			r.counts.Accepted.Add(1)
			r.schema(m.Schema, origin, seed<<8, objectsPerVariant)
		}
	})
}

// objects spreads the object runs evenly over the schemas.
func (r *runner) objects(usable []corpus.Schema, round uint64) {
	n := len(usable)
	r.each(n, func(i int) {
		count := r.cfg.Objects * (i + 1) / n
		count -= r.cfg.Objects * i / n
		seed := r.cfg.Seed + round<<40 + uint64(i)<<20
		r.schema(usable[i].JSON, usable[i].Name+" of "+usable[i].Source, seed, count)
	})
}

// prepare compiles a schema for both sides and for the generator; there is no plan if there is nothing to run.
func (r *runner) prepare(schema []byte, origin string) (*Pair, *generate.Plan) {
	pair, d := Compile(schema)
	if d != nil {
		r.differ(d, origin)
	}
	if pair == nil {
		return nil, nil
	}
	plan, err := generate.Compile(schema)
	if err != nil {
		return nil, nil
	}
	return pair, plan
}

// schema makes object runs with one schema.
func (r *runner) schema(schema []byte, origin string, seed uint64, count int) {
	if count == 0 {
		return
	}
	pair, plan := r.prepare(schema, origin)
	if plan == nil {
		return
	}
	var buf []byte
	for done := 0; done < count && r.ctx.Err() == nil; seed++ {
		mode := [...]generate.Mode{generate.Hostile, generate.Near, generate.Hostile, generate.Valid, generate.Hostile}[seed%5]
		o := generate.Options{Mode: mode}
		if seed%199 == 0 {
			o.Size = 60000 // most objects are small, and some are not
		}
		buf = plan.Append(buf[:0], seed, o)
		done += r.object(pair, buf, fmt.Sprintf("%s, object %d", origin, seed), count-done, seed%8 == 0)
	}
}

// object runs one object from both sources, and sometimes what became of it once more: that is the canonical form.
// It returns the number of runs, limit at most.
func (r *runner) object(pair *Pair, object []byte, origin string, limit int, again bool) int {
	runs := 0
	for _, source := range []oracle.Source{oracle.Request, oracle.Storage} {
		in := object
		for range 2 {
			if runs == limit {
				return runs
			}
			runs++
			d, out := pair.Normalize(in, source)
			r.counts.Objects.Add(1)
			if out.Err != nil {
				r.counts.Refused.Add(1)
			}
			if d == nil && again {
				d = pair.Routes(in, source, out)
			}
			if d != nil {
				d.Object = append([]byte(nil), d.Object...) // the buffer is reused
				r.differ(d, origin)
				break
			}
			if !again || out.Err != nil {
				break
			}
			in = out.Bytes
		}
	}
	return runs
}
