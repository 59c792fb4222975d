package compare

import (
	"bytes"
	"fmt"
	"strings"
	"sync/atomic"

	"github.com/espalier-dev/espalier"
	"github.com/espalier-dev/espalier/conformance/corpus"
	"github.com/espalier-dev/espalier/conformance/coverage"
	"github.com/espalier-dev/espalier/conformance/engine"
	"github.com/espalier-dev/espalier/conformance/generate"
	"github.com/espalier-dev/espalier/conformance/modes"
	"github.com/espalier-dev/espalier/conformance/mutate"
	"github.com/espalier-dev/espalier/conformance/oracle"
)

// A mode is a way to use the engine, and what answers for it.
type mode struct {
	name    string
	compile func(schema []byte) (*Pair, error) // nil without an error if the mode is not for the schema
	check   func(schema []byte) oracle.Result  // nil if the mode does not change what is said about schemas
	valid   bool                               // compare whether objects are valid, and not why
	values  bool                               // objects are validated only
}

const (
	modeTyped, modeTypedBeta, modeInherit, modeStrict, modeValues = "typed v1", "typed v1beta1", "InheritPreserve", "Strict", "ValidationOnly"

	cellSchema, cellRequest, cellStorage, cellCreate, cellUpdate, cellRatchet, cellAdmit = "schema", "normalize request", "normalize storage", "validate create", "validate update", "validate ratchet", "admit"

	cellCreated, cellRefused, cellWarned, cellUpdated, cellUpdateRefused, cellUpdateWarned = "created", "create refused", "created with warnings", "updated", "update refused", "updated with warnings"
)

var modeTable = []mode{
	{name: modeTyped, compile: typedPair(false), check: func(s []byte) oracle.Result { return engine.CheckTyped(s, false) }},
	{name: modeTypedBeta, compile: typedPair(true), check: func(s []byte) oracle.Result { return engine.CheckTyped(s, true) }},
	{name: modeInherit, compile: inheritPair},
	{name: modeStrict, compile: strictPair, check: engine.CheckStrict, valid: true},
	{name: modeValues, compile: valuesPair, values: true},
}

// ModeCounts is what has been compared of modes.
type ModeCounts struct {
	Moded    atomic.Int64 // comparisons
	Cells    *coverage.Table
	Versions *coverage.Table
}

// newModeCounts counts comparisons by mode and by what was compared.
func newModeCounts() *ModeCounts {
	var rows []string
	for _, m := range modeTable {
		rows = append(rows, m.name)
	}
	t := coverage.New("mode × comparison", rows, []string{cellSchema, cellRequest, cellStorage, cellCreate, cellUpdate, cellRatchet, cellAdmit})
	t.Impossible(modeInherit, cellSchema, "the option is one of Compile")
	for _, c := range []string{cellSchema, cellRequest, cellStorage, cellAdmit} {
		t.Impossible(modeValues, c, "a schema that need not be structural is checked as a part of its CRD, and validates only")
	}
	for _, c := range []string{cellUpdate, cellRatchet} {
		t.Impossible(modeStrict, c, "the evaluator of the documented differences knows no old objects")
	}
	versions := coverage.New("compatibility version × CRD", modes.Versions(), []string{cellCreated, cellRefused, cellWarned, cellUpdated, cellUpdateRefused, cellUpdateWarned})
	return &ModeCounts{Cells: t, Versions: versions}
}

// String is a part of a line of progress.
func (c *ModeCounts) String() string { return fmt.Sprintf("comparisons of modes %d", c.Moded.Load()) }

func (c *ModeCounts) count(mode, cell string) {
	c.Moded.Add(1)
	c.Cells.Count(mode, cell)
}

func typedPair(beta bool) func([]byte) (*Pair, error) {
	return func(schema []byte) (*Pair, error) {
		ours, err := engine.CompileTyped(schema, beta)
		if err != nil {
			return nil, err
		}
		return newPair(schema, ours, oracle.Compile, schema)
	}
}

func inheritPair(schema []byte) (*Pair, error) {
	if corpus.HasRules(schema) {
		return nil, nil // what rules see of an object depends on the keyword too, and is not inherited
	}
	ours, err := engine.CompileWith(schema, espalier.CompileOptions{Stored: true, InheritPreserve: true})
	if err != nil {
		return nil, err
	}
	written, err := modes.Inherited(schema)
	if err != nil {
		return nil, err
	}
	return newPair(schema, ours, oracle.Compile, written)
}

func strictPair(schema []byte) (*Pair, error) {
	s, err := modes.NewStrict(schema)
	if err != nil {
		return nil, err
	}
	ours, err := engine.CompileWith(s.Schema, espalier.CompileOptions{Stored: true, Strict: true})
	if err != nil {
		return nil, err
	}
	p, err := newPair(s.Schema, ours, oracle.Compile, s.Reference)
	if p != nil {
		p.strict = s
	}
	return p, err
}

func valuesPair(schema []byte) (*Pair, error) {
	ours, err := engine.CompileWith(schema, espalier.CompileOptions{Stored: true, ValidationOnly: true})
	if err != nil {
		return nil, nil // the reference has no check of such a schema by itself
	}
	p, err := newPair(schema, ours, oracle.CompileValues, schema)
	if p != nil {
		p.mode = valuesPair
	}
	return p, err
}

// newPair compiles the reference's side. Where it cannot be compiled there is nothing to compare with.
func newPair(schema []byte, ours *engine.Schema, compile func([]byte) (*oracle.Schema, error), reference []byte) (*Pair, error) {
	theirs, err := compile(reference)
	if err != nil {
		return nil, nil
	}
	return &Pair{schema: schema, ours: ours, theirs: theirs, embedded: bytes.Contains(schema, []byte(`"x-kubernetes-embedded-resource":true`)), ruled: hasRules(schema)}, nil
}

// objectsPerMode is how many objects every schema gets in a mode.
const objectsPerMode = 12

// modes compares the engine's modes over generated schemas, one mode for each, and then the compatibility versions.
func (r *runner) modes(pool *mutate.Pool, round uint64) {
	r.each(r.cfg.Modes, func(i int) {
		seed := r.cfg.Seed + round*uint64(r.cfg.Modes) + uint64(i)
		m := &modeTable[seed%uint64(len(modeTable))]
		made := pool.Enrich(seed)
		switch {
		case m.values && seed%2 == 0:
			made = pool.Make(seed)
		case m.name == modeInherit || seed%3 == 0:
			made = pool.Vary(seed)
		}
		r.mode(m, made.Schema, fmt.Sprintf("%s, schema %d of %s %v", m.name, seed, made.Base, made.Applied), seed)
	})
	for i, v := range modes.Versions() {
		r.version(v, round*1000+uint64(i))
	}
}

// mode compares one mode with one schema.
func (r *runner) mode(m *mode, schema []byte, origin string, seed uint64) {
	theirs := oracle.Check(schema, false)
	if theirs.Panic != nil || !m.values && !theirs.Accepted() {
		return
	}
	if m.check != nil {
		ours := m.check(schema)
		if !equalResults(&ours, &theirs) && !sameContributors(schema, &ours, &theirs) && len(theirs.Defaults)+len(theirs.CEL) == 0 {
			a, b := onlyDifferent(ours, theirs)
			r.differ(&Difference{What: modePrefix + "schema", Mode: m.name, Schema: schema, Ours: a, Theirs: b}, origin)
			return
		}
		r.counts.count(m.name, cellSchema)
	}
	pair, err := m.compile(schema)
	if err != nil && (len(theirs.Defaults) == 0 && !outOfRange(err)) {
		r.differ(&Difference{What: modePrefix + "compile", Mode: m.name, Schema: schema, Ours: err.Error(), Theirs: "compiles"}, origin)
	}
	if pair == nil {
		return
	}
	plan, err := generate.Compile(schema)
	if err != nil {
		return
	}
	for i := range uint64(objectsPerMode) {
		if r.ctx.Err() != nil {
			return
		}
		q := moded{r: r, mode: m, pair: pair, origin: fmt.Sprintf("%s, object %d", origin, seed<<8+i)}
		q.object(plan, seed<<8+i)
	}
}

// moded is the work on one object in a mode.
type moded struct {
	r      *runner
	mode   *mode
	pair   *Pair
	origin string
}

func (q *moded) object(plan *generate.Plan, seed uint64) {
	how := [...]generate.Mode{generate.Breach, generate.Valid, generate.Hostile, generate.Breach, generate.Near}[seed%5]
	object := plan.Append(nil, seed, generate.Options{Mode: how, Size: 150 + int(seed%7)*100})
	canonical := reread(object)
	if !q.mode.values {
		out := q.normalize(object, oracle.Request, cellRequest)
		q.normalize(object, oracle.Storage, cellStorage)
		canonical = out.Bytes
	} else if err := q.pair.ours.ErrValidationOnly(object); err != nil {
		q.found(&Difference{What: modePrefix + "normalize", Schema: q.pair.schema, Object: object, Ours: err.Error(), Theirs: "refused"})
	}
	if canonical == nil {
		return
	}
	if q.mode.valid {
		q.strict(object, canonical)
		return
	}
	q.validate(canonical, oracle.ValidateOptions{NoRules: q.mode.values}, cellCreate)
	changed := reread(generate.Edit(canonical, canonical, seed))
	if changed == nil {
		return
	}
	q.validate(changed, oracle.ValidateOptions{Old: canonical, NoRules: q.mode.values}, cellUpdate)
	if q.pair.theirs.Structural() { // without it the reference crashes when it ratchets
		q.validate(changed, oracle.ValidateOptions{Old: canonical, Ratchet: true, NoRules: q.mode.values}, cellRatchet)
	}
	if !q.mode.values {
		d, theirs, row := q.pair.Whole(object, oracle.Request, oracle.ValidateOptions{})
		q.done(d, row, theirs.Panic, cellAdmit)
	}
}

func (q *moded) normalize(object []byte, source oracle.Source, cell string) oracle.Outcome {
	d, out := q.pair.Normalize(object, source)
	q.done(d, "", nil, cell)
	return out
}

func (q *moded) validate(object []byte, o oracle.ValidateOptions, cell string) {
	d, theirs, row := q.pair.Validate(object, o)
	q.done(d, row, theirs.Panic, cell)
}

// strict compares whether an object is valid.
func (q *moded) strict(object, canonical []byte) {
	ours, theirs := q.pair.ours.Validate(canonical, oracle.ValidateOptions{}), q.pair.theirs.Validate(canonical, oracle.ValidateOptions{})
	admission := q.pair.ours.Whole(object, oracle.Request, oracle.ValidateOptions{})
	if theirs.Panic != nil {
		return
	}
	want := theirs.Valid() && q.pair.strict.Valid(canonical)
	for _, got := range []struct {
		v    *oracle.Validation
		cell string
	}{{&ours, cellCreate}, {&admission.Validation, cellAdmit}} {
		var d *Difference
		if got.v.Valid() != want {
			d = &Difference{What: modePrefix + "strict", Schema: q.pair.schema, Object: canonical, Ours: got.v.String(), Theirs: fmt.Sprintf("valid: %t; without enums and bounds %s", want, theirs.String())}
		}
		q.done(d, "", nil, got.cell)
	}
}

// done counts a comparison or reports its difference.
func (q *moded) done(d *Difference, row string, crashed any, cell string) {
	if row != "" {
		q.r.explain(row)
	}
	switch {
	case d != nil:
		q.found(d)
	case crashed != nil:
		q.r.counts.Panics.Add(1)
	default:
		q.r.counts.count(q.mode.name, cell)
	}
}

func (q *moded) found(d *Difference) {
	if !strings.HasPrefix(d.What, modePrefix) {
		d.What = modePrefix + d.What
	}
	d.Mode = q.mode.name
	d.Object, d.How.Old = bytes.Clone(d.Object), bytes.Clone(d.How.Old)
	q.r.differ(d, q.origin)
}

// modePrefix marks the differences of modes.
const modePrefix = "mode-"

// crdsPerVersion is how many CRDs every compatibility version gets in a round.
const crdsPerVersion = 40

// version compares CRDs, created and updated, with a compatibility version. The version of the reference is that of the
// process, so that all workers have the same.
func (r *runner) version(v string, round uint64) {
	restore, err := oracle.SetCompatibility(v)
	if err != nil {
		r.differ(&Difference{What: modePrefix + "version", Mode: v, Theirs: err.Error()}, v)
		return
	}
	defer restore()
	r.each(min(crdsPerVersion, r.cfg.Modes), func(i int) {
		seed := r.cfg.Seed + round*crdsPerVersion + uint64(i)
		doc, rules := modes.Versioned(seed)
		before, _ := modes.Versioned(seed + 1)
		if seed%2 == 0 {
			before = doc
		}
		origin := fmt.Sprintf("CRD %d %q", seed, rules)
		for _, o := range []oracle.CRDOptions{{Compatibility: v}, {Compatibility: v, Old: before}} {
			d, theirs := CRD(doc, o)
			if d != nil {
				r.differ(d, origin)
			} else if theirs.Panic == nil {
				r.counts.Moded.Add(1)
				r.counts.Versions.Count(v, versionCell(o.Old != nil, &theirs))
			}
		}
	})
}

func versionCell(update bool, theirs *oracle.CRDResult) string {
	cells := [...]string{cellCreated, cellRefused, cellWarned}
	if update {
		cells = [...]string{cellUpdated, cellUpdateRefused, cellUpdateWarned}
	}
	switch {
	case len(theirs.Errors) > 0:
		return cells[1]
	case len(theirs.Warnings) > 0:
		return cells[2]
	}
	return cells[0]
}

// retryMode compares again, for the shrinker. The schema stays: rewriting another one could change what is compared.
func (s *shrinker) retryMode(schema, object, old []byte) *Difference {
	if !bytes.Equal(schema, s.best.Schema) && s.best.What == modePrefix+"strict" {
		return nil
	}
	var m *mode
	for i := range modeTable {
		if modeTable[i].name == s.best.Mode {
			m = &modeTable[i]
		}
	}
	if m == nil || object == nil {
		return nil
	}
	if !bytes.Equal(schema, s.compiled) {
		s.compiled, s.pair = bytes.Clone(schema), nil
		if v := oracle.Check(schema, false); v.Panic == nil && (m.values || v.Accepted()) {
			s.pair, _ = m.compile(schema)
		}
	}
	if s.pair == nil {
		return nil
	}
	var d *Difference
	how := s.best.How
	how.Old = old
	switch what := strings.TrimPrefix(s.best.What, modePrefix); {
	case strings.HasPrefix(what, validatePrefix):
		d, _, _ = s.pair.Validate(object, how)
	case strings.HasPrefix(what, wholePrefix):
		d, _, _ = s.pair.Whole(object, s.best.Source, how)
	case strings.HasPrefix(what, "normalize-"):
		d, _ = s.pair.Normalize(object, s.best.Source)
	}
	if d == nil {
		return nil
	}
	d.What, d.Mode = modePrefix+d.What, s.best.Mode
	return s.keep(d)
}
