package compare

import (
	"bytes"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/espalier-dev/espalier/conformance/coverage"
	"github.com/espalier-dev/espalier/conformance/expression"
	"github.com/espalier-dev/espalier/conformance/oracle"
)

// ExpressionCounts is what has been compared of composed rules.
type ExpressionCounts struct {
	ComposedSchemas, Composed, ComposedRefused, ComposedRuns atomic.Int64 // schemas, their rules, those refused when the schema is checked, and validations
	DistinctRules                                            atomic.Int64 // that were evaluated: no two have the same text and type of self
	Versioned                                                atomic.Int64 // schemas checked in another compatibility version
	Paths                                                    atomic.Int64 // checks of schemas and CRDs that name fields by paths, and validations
}

// String is a line of progress.
func (c *ExpressionCounts) String() string {
	return fmt.Sprintf("composed rules %d (refused %d, distinct ones evaluated %d), validations of them %d, checks in other versions %d, checks of paths %d",
		c.Composed.Load(), c.ComposedRefused.Load(), c.DistinctRules.Load(), c.ComposedRuns.Load(), c.Versioned.Load(), c.Paths.Load())
}

// The columns of the tables.
const (
	direct, looped, inMessage, inTransition = "direct", "in comprehension", "in messageExpression", "in transition rule"
	isTrue, isFalse, isFailed, isRefused    = "true", "false", "failed", "refused"
)

// A cover says what expressions were made of, and what became of rules.
type cover struct {
	uses, outcomes *coverage.Table
	distinct       sync.Map // hash of type and text
}

func newCover() *cover {
	var rows []string
	for _, site := range expression.Sites {
		for _, kind := range []string{expression.Plain, expression.Transition, expression.Optional, expression.NotOptional} {
			rows = append(rows, site+", "+kind)
		}
	}
	c := &cover{
		uses:     coverage.New("what CEL rules use", expression.Rows(), []string{direct, looped, inMessage, inTransition}),
		outcomes: coverage.New("where CEL rules are", rows, []string{isTrue, isFalse, isFailed, isRefused}),
	}
	for _, site := range expression.Sites {
		if expression.Correlated(site) {
			continue
		}
		for _, kind := range []string{expression.Transition, expression.Optional, expression.NotOptional} {
			for _, column := range []string{isTrue, isFalse, isFailed} {
				c.outcomes.Impossible(site+", "+kind, column, "items without an old value cannot have transition rules")
			}
		}
	}
	return c
}

// evaluated counts a rule that was evaluated on both sides, once for its type and text.
func (c *cover) evaluated(r *expression.Rule) (first bool) {
	h := fnv.New64a()
	h.Write([]byte(r.Type + "\x00" + r.Text))
	if _, known := c.distinct.LoadOrStore(h.Sum64(), struct{}{}); known {
		return false
	}
	for _, u := range r.Uses {
		switch {
		case u.Message:
			c.uses.Count(u.Row, inMessage)
			continue
		case u.Looped:
			c.uses.Count(u.Row, looped)
		default:
			c.uses.Count(u.Row, direct)
		}
		if r.Old {
			c.uses.Count(u.Row, inTransition)
		}
	}
	return true
}

// expressions compares schemas with composed rules, and validations of objects of them.
func (r *runner) expressions(round uint64) {
	r.each(r.cfg.Expressions, func(i int) {
		seed := r.cfg.Seed + round*uint64(r.cfg.Expressions) + uint64(i)
		r.paths(seed)
		r.expression(seed)
	})
}

// paths compares a schema and a CRD that name fields by paths, and where the rules report their errors.
func (r *runner) paths(seed uint64) {
	p := expression.NewPaths(seed)
	origin := fmt.Sprintf("paths %d", seed)
	r.counts.Paths.Add(2)
	if d, _ := CRD(p.CRD, oracle.CRDOptions{}); d != nil {
		r.differ(d, origin)
	}
	d, theirs := Schema(p.Schema, false)
	if d != nil {
		r.differ(d, origin)
	}
	if d != nil || !theirs.Accepted() {
		return
	}
	pair, d := Compile(p.Schema)
	if d != nil {
		r.differ(d, origin)
	}
	if pair == nil {
		return
	}
	r.counts.Paths.Add(1)
	d, _, row := pair.Validate([]byte(`{"spec":{}}`), oracle.ValidateOptions{})
	if row != "" {
		r.explain(row)
	}
	if d != nil {
		r.differ(d, origin)
	}
}

// oldest and newest are the minor versions that rules are checked in besides the reference's own choice.
const oldest, newest = 23, 38

func (r *runner) expression(seed uint64) {
	c := expression.New(seed)
	origin := fmt.Sprintf("expression %d", seed)
	d, theirs := Schema(c.Schema, false)
	r.counts.ComposedSchemas.Add(1)
	r.counts.Composed.Add(int64(len(c.Rules)))
	if theirs.Panic != nil {
		r.counts.Panics.Add(1)
		return
	}
	if d != nil {
		r.differ(d, origin)
		return
	}
	if !theirs.Accepted() {
		return
	}
	t := &tried{r: r, c: c, origin: origin, refused: map[*expression.Rule]bool{}}
	for _, rule := range c.Rules {
		if slices.ContainsFunc(theirs.CEL, rule.Concerns) {
			t.refused[rule] = true
			r.counts.ComposedRefused.Add(1)
			r.cover.outcomes.Count(rule.Site+", "+rule.Kind(), isRefused)
		}
	}
	r.compileRules(c.Schema, origin)
	if seed%4 == 0 {
		r.counts.Versioned.Add(1)
		if d := CostsAt(c.Schema, fmt.Sprintf("1.%d", oldest+seed/4%(newest-oldest+1))); d != nil {
			r.differ(d, origin)
		}
	}
	pair, d := Compile(c.Schema)
	if d != nil {
		r.differ(d, origin)
	}
	if pair == nil {
		return
	}
	t.pair = pair
	for i := range uint64(objectsPerCase) {
		t.objects(seed<<8 + i)
	}
	if seed%8 == 0 {
		r.twin(t, seed)
	}
}

// objectsPerCase is how many objects, each with a change, a schema with composed rules gets.
const objectsPerCase = 6

// tried is a case being compared.
type tried struct {
	r       *runner
	c       *expression.Case
	origin  string
	pair    *Pair
	refused map[*expression.Rule]bool
	twin    bool
}

// twin compares a schema that differs from another one, which is in use, only in what rules say.
func (r *runner) twin(t *tried, seed uint64) {
	held := t.pair
	schema := t.c.Twin()
	if d, theirs := Schema(schema, false); d != nil || !theirs.Accepted() {
		if d != nil {
			r.differ(d, t.origin+", twin")
		}
		return
	}
	pair, d := Compile(schema)
	if d != nil {
		r.differ(d, t.origin+", twin")
	}
	if pair == nil {
		return
	}
	t.pair, t.twin = pair, true
	for i := range uint64(objectsPerCase) {
		t.objects(seed<<8 + i)
	}
	t.pair = held
}

// objects validates an object as new, as an update of itself, and as an update with and without ratcheting.
func (t *tried) objects(seed uint64) {
	object := t.canonical(t.c.Object(seed))
	if object == nil {
		return
	}
	t.run(object, oracle.ValidateOptions{}, seed)
	changed := t.canonical(t.c.Change(object, seed))
	if changed == nil {
		return
	}
	t.run(object, oracle.ValidateOptions{Old: object, Ratchet: seed%5 == 0}, seed)
	t.run(changed, oracle.ValidateOptions{Old: object}, seed)
	t.run(changed, oracle.ValidateOptions{Old: object, Ratchet: true}, seed)
}

func (t *tried) canonical(object []byte) []byte {
	out := t.pair.theirs.Normalize(object, oracle.Request)
	if out.Err != nil {
		return nil
	}
	return out.Bytes
}

func (t *tried) run(object []byte, o oracle.ValidateOptions, seed uint64) {
	c := &t.r.counts
	d, theirs, row := t.pair.validate(object, o, seed%16 == 0)
	c.ComposedRuns.Add(1)
	if theirs.Panic != nil {
		c.Panics.Add(1)
		return
	}
	if row != "" {
		t.r.explain(row)
	}
	if d != nil {
		d.Object, d.How.Old = bytes.Clone(d.Object), bytes.Clone(d.How.Old)
		t.r.differ(d, fmt.Sprintf("%s, object %d", t.origin, seed))
		return
	}
	if theirs.Blocked || t.twin {
		return
	}
	reached := map[string]bool{}
	t.pair.theirs.Sites(object, func(path string, rules int) {
		c.RuleRuns.Add(int64(rules))
		reached[path] = true
	})
	c.RulesFalse.Add(int64(theirs.False))
	c.RulesFailed.Add(int64(theirs.Failed))
	for _, rule := range t.c.Rules {
		if !reached[rule.Path] || rule.Old && o.Old == nil && rule.Kind() != expression.Optional || failsToCompile(rule, &theirs) {
			continue
		}
		// Rules that are too expensive, or use a function of a newer version, are evaluated where they are stored.
		if t.r.cover.evaluated(rule) && !t.refused[rule] {
			c.DistinctRules.Add(1)
		}
		if t.refused[rule] {
			continue
		}
		// An object that is not changed has an old value everywhere, so that no transition rule is skipped.
		if outcome := outcomeOf(rule, &theirs, !rule.Old || bytes.Equal(o.Old, object)); outcome != "" {
			t.r.cover.outcomes.Count(rule.Site+", "+rule.Kind(), outcome)
		}
	}
}

// failsToCompile reports whether a rule may be one that cannot be evaluated: the errors that say so do not name it.
func failsToCompile(r *expression.Rule, v *oracle.Validation) bool {
	return slices.ContainsFunc(v.Errors, func(e string) bool {
		field, _, _ := strings.Cut(strings.TrimPrefix(e, "FieldValueInvalid|"), "|")
		return strings.Contains(e, "|rule compile error: ") && pathOf(field) == pathOf(r.Path)
	})
}

// pathOf brings field paths of objects, and those of schemas, into one form.
func pathOf(field string) string {
	field = strings.ReplaceAll(inBrackets.ReplaceAllString(field, "[]"), "{}", "[]")
	return strings.TrimPrefix(strings.TrimPrefix(field, "<nil>"), ".")
}

// outcomeOf tells what became of a rule, "" if that is unknown: the rule of an error is known by its text, and some
// errors have none.
func outcomeOf(r *expression.Rule, v *oracle.Validation, every bool) string {
	tag := r.Tag()
	known := r.MessageExpression == "" && r.Reason != "FieldValueDuplicate"
	for _, e := range v.Errors {
		switch {
		case strings.Contains(e, "evaluating rule: "+tag) || strings.Contains(e, "signature for rule: "+tag):
			return isFailed
		case known && (strings.Contains(e, "|failed rule: "+tag+"|") || strings.Contains(e, "|"+tag+"|")):
			return isFalse
		}
	}
	if every && len(v.Warnings) == 0 && (known || len(v.Errors) == 0) {
		return isTrue
	}
	return ""
}
