package compare

import (
	"bytes"
	"fmt"
	"strings"
	"sync/atomic"

	"github.com/espalier-dev/espalier/conformance/corpus"
	"github.com/espalier-dev/espalier/conformance/generate"
	"github.com/espalier-dev/espalier/conformance/mutate"
	"github.com/espalier-dev/espalier/conformance/oracle"
)

// ValidationCounts is what has been compared of validation.
type ValidationCounts struct {
	Creates, Updates, Ratcheted, Invalid, Blocked atomic.Int64 // runs, by kind; those that found errors; those whose rules were not evaluated
	RuleSchemas, RulesCompiled                    atomic.Int64 // schemas with rules, and their rules
	RuleRuns, RulesFalse, RulesFailed             atomic.Int64 // evaluations of a rule on a value, by result
}

// Runs is the number of validations.
func (c *ValidationCounts) Runs() int64 {
	return c.Creates.Load() + c.Updates.Load() + c.Ratcheted.Load()
}

// String is a line of progress.
func (c *ValidationCounts) String() string {
	return fmt.Sprintf("validations %d: create %d, update %d, ratcheted %d (invalid %d); rules compiled %d of %d schemas, evaluations of rules %d (false %d, failed %d, blocked objects %d)",
		c.Runs(), c.Creates.Load(), c.Updates.Load(), c.Ratcheted.Load(), c.Invalid.Load(), c.RulesCompiled.Load(), c.RuleSchemas.Load(),
		c.RuleRuns.Load(), c.RulesFalse.Load(), c.RulesFailed.Load(), c.Blocked.Load())
}

// validationsPerEnriched is how many validations every enriched schema gets.
const validationsPerEnriched = 36

// rules compares what the rules of the schemas as they are may cost.
func (r *runner) rules(schemas []corpus.Schema) {
	r.each(len(schemas), func(i int) {
		if s := schemas[i]; corpus.HasRules(s.JSON) {
			r.compileRules(s.JSON, s.Name+" of "+s.Source)
		}
	})
}

func (r *runner) compileRules(schema []byte, origin string) {
	d, rules := Costs(schema)
	r.counts.RuleSchemas.Add(1)
	r.counts.RulesCompiled.Add(int64(rules))
	if d != nil {
		r.differ(d, origin)
	}
}

// enriched compares schemas that restrict values in every way, and validations of objects of them.
func (r *runner) enriched(pool *mutate.Pool, round uint64) {
	r.each(r.cfg.Enriched, func(i int) {
		seed := r.cfg.Seed + round*uint64(r.cfg.Enriched) + uint64(i)
		m := pool.Enrich(seed)
		origin := fmt.Sprintf("enriched %d of %s %v", seed, m.Base, m.Applied)
		d, theirs := Schema(m.Schema, false)
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
		r.counts.Accepted.Add(1)
		if corpus.HasRules(m.Schema) && len(theirs.Defaults) == 0 {
			r.compileRules(m.Schema, origin)
		}
		r.validations(m.Schema, origin, seed<<8, validationsPerEnriched)
	})
}

// ruleWeight is how many validations a schema with rules gets for each that another gets: rules take more tries to be
// reached.
const ruleWeight = 4

// validationsOf spreads validations over the schemas.
func (r *runner) validationsOf(usable []corpus.Schema, round uint64) {
	ends := make([]int, len(usable)+1) // sums of weights
	for i, s := range usable {
		ends[i+1] = ends[i] + 1
		if corpus.HasRules(s.JSON) {
			ends[i+1] += ruleWeight - 1
		}
	}
	total := ends[len(usable)]
	r.each(len(usable), func(i int) {
		count := r.cfg.Validations*ends[i+1]/total - r.cfg.Validations*ends[i]/total
		r.validations(usable[i].JSON, usable[i].Name+" of "+usable[i].Source, r.cfg.Seed+round<<40+uint64(i)<<20, count)
	})
}

// validations makes validations with one schema.
func (r *runner) validations(schema []byte, origin string, seed uint64, count int) {
	if count == 0 {
		return
	}
	pair, plan := r.prepare(schema, origin)
	if plan == nil {
		return
	}
	v := validation{r: r, pair: pair, plan: plan, origin: origin, left: count}
	defer v.remember()
	for tries := 0; v.left > 0 && tries < 3*count && r.ctx.Err() == nil; tries++ {
		v.round(seed + uint64(tries))
	}
}

// A validation is the work on one schema.
type validation struct {
	r        *runner
	pair     *Pair
	plan     *generate.Plan
	origin   string
	left     int
	previous []byte
	buf      []byte
	reached  map[string]bool // rules that were evaluated
	refuted  map[string]bool // fields, as the schema has them, for which a rule gave false or failed
}

// round makes an object and a change of it, and validates the one as new and the other as an update, with and without
// ratcheting.
func (v *validation) round(seed uint64) {
	object := v.object(seed)
	if object == nil {
		return
	}
	scope := [...]oracle.Scope{oracle.Unscoped, oracle.Unscoped, oracle.Unscoped, oracle.Namespaced, oracle.Unscoped, oracle.Cluster}[seed%6]
	v.run(object, oracle.ValidateOptions{Scope: scope}, seed)
	if seed%4 == 1 { // canonical has normalized it
		if d := v.pair.Admit(v.buf, object, oracle.ValidateOptions{Scope: scope}); d != nil {
			d.Object = bytes.Clone(d.Object)
			v.r.differ(d, fmt.Sprintf("%s, object %d", v.origin, seed))
		}
	}
	other := v.previous
	if other == nil {
		other = object
	}
	v.previous = object
	changed := v.canonical(generate.Edit(object, other, seed), seed)
	if changed == nil {
		return
	}
	old := object
	if seed%5 == 0 {
		old, changed = changed, old
	}
	if seed%3 == 0 {
		v.run(changed, oracle.ValidateOptions{Old: old, Scope: scope}, seed)
	}
	v.run(changed, oracle.ValidateOptions{Old: old, Scope: scope, Ratchet: true}, seed)
}

// object makes an object in canonical form, or nil.
func (v *validation) object(seed uint64) []byte {
	o := generate.Options{Mode: generate.Breach, Compact: true, Size: 150 + int(seed%7)*100}
	switch {
	case seed%11 == 0:
		o.Mode = generate.Near
	case seed%13 == 0:
		o.Mode = generate.Hostile
	case seed%401 == 0:
		o.Size = 30000
	case seed%3 == 0 && v.pair.theirs.HasRules():
		// Rules are reached in objects that nothing else is wrong with, and that have the parts they are about.
		o.Mode, o.Resolve, o.Size = generate.Valid, true, 800+int(seed%5)*2400
	}
	v.buf = v.plan.Append(v.buf[:0], seed, o)
	return v.canonical(v.buf, seed)
}

// canonical brings an object into the form in which it is validated: usually normalized, sometimes only encoded again,
// so that values are seen that normalization does not let through. The result is nil for objects that are refused.
func (v *validation) canonical(object []byte, seed uint64) []byte {
	if seed%4 == 0 {
		obj, err := oracle.Decode(object)
		if err != nil {
			return nil
		}
		return oracle.Marshal(obj)
	}
	out := v.pair.theirs.Normalize(object, oracle.Request)
	if out.Err != nil {
		return nil
	}
	return out.Bytes
}

// run validates once.
func (v *validation) run(object []byte, o oracle.ValidateOptions, seed uint64) {
	if v.left == 0 {
		return
	}
	v.left--
	c := &v.r.counts
	d, theirs, row := v.pair.Validate(object, o)
	switch kindOf(o) {
	case "create":
		c.Creates.Add(1)
	case "update":
		c.Updates.Add(1)
	default:
		c.Ratcheted.Add(1)
	}
	if theirs.Panic != nil {
		c.Panics.Add(1)
		return
	}
	if !theirs.Valid() {
		c.Invalid.Add(1)
	}
	if row != "" {
		v.r.explain(row)
	}
	if d != nil {
		d.Object, d.How.Old = bytes.Clone(d.Object), bytes.Clone(d.How.Old)
		v.r.differ(d, fmt.Sprintf("%s, object %d", v.origin, seed))
		return
	}
	v.countRules(object, &theirs)
}

// countRules counts what rules were evaluated on an object.
func (v *validation) countRules(object []byte, theirs *oracle.Validation) {
	c := &v.r.counts
	if theirs.Blocked {
		c.Blocked.Add(1)
		return
	}
	if !v.pair.theirs.HasRules() {
		return
	}
	if v.reached == nil {
		v.reached, v.refuted = map[string]bool{}, map[string]bool{}
	}
	v.pair.theirs.Sites(object, func(path string, rules int) {
		c.RuleRuns.Add(int64(rules))
		if !v.reached[path] {
			for i := range rules {
				v.reached[fmt.Sprintf("%s#%d", path, i)] = true
			}
			v.reached[path] = true
		}
	})
	c.RulesFalse.Add(int64(theirs.False))
	c.RulesFailed.Add(int64(theirs.Failed))
	for _, field := range theirs.Refuted {
		v.refuted[inBrackets.ReplaceAllString(field, "[]")] = true
	}
}

// remember adds the rules of a schema that were evaluated to those of the run. Seeds of one schema come in one call
// per round, so that schemas are told apart by their origin.
func (v *validation) remember() {
	if len(v.reached) == 0 {
		return
	}
	r := v.r
	r.mu.Lock()
	defer r.mu.Unlock()
	for key := range v.reached {
		if strings.Contains(key, "#") {
			r.reached[v.origin+key] = true
		}
	}
	for key := range v.refuted {
		r.refuted[v.origin+key] = true
	}
}

// explain counts a difference that is intended.
func (r *runner) explain(row string) {
	r.counts.Explained.Add(1)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.rows[row]++
}
