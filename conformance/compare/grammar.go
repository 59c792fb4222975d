package compare

import (
	"bytes"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"

	"github.com/espalier-dev/espalier/conformance/coverage"
	"github.com/espalier-dev/espalier/conformance/engine"
	"github.com/espalier-dev/espalier/conformance/grammar"
	"github.com/espalier-dev/espalier/conformance/oracle"
	"github.com/espalier-dev/espalier/conformance/tree"
)

// GrammarCounts is what has been compared of the schemas and values of package grammar.
type GrammarCounts struct {
	Schemas, Accepted, Normalized, Validated, Admitted, Odd, Formats, Patterns atomic.Int64
}

// Comparisons is their sum.
func (c *GrammarCounts) Comparisons() int64 {
	return c.Schemas.Load() + c.Normalized.Load() + c.Validated.Load() + c.Admitted.Load() + c.Formats.Load() + c.Patterns.Load()
}

// String is a line of progress.
func (c *GrammarCounts) String() string {
	return fmt.Sprintf("grammar: comparisons %d: schemas %d (accepted %d), normalized %d, validated %d, admitted %d (objects in odd JSON %d), formats %d, patterns %d",
		c.Comparisons(), c.Schemas.Load(), c.Accepted.Load(), c.Normalized.Load(), c.Validated.Load(), c.Admitted.Load(), c.Odd.Load(), c.Formats.Load(), c.Patterns.Load())
}

// grammarTables say which combinations of the grammar were compared.
type grammarTables struct {
	classes, positions, answers, formats, numbers, oddities *coverage.Table
}

// The columns of tables.
const (
	refusedSchema = "schema refused"
	validObject   = "object valid"
	invalidObject = "object invalid"
)

func newGrammarTables() *grammarTables {
	t := &grammarTables{
		classes:   coverage.New("keyword × class of value", grammar.Keywords, grammar.Classes),
		positions: coverage.New("keyword × position, objects compared", grammar.Keywords, grammar.Positions),
		answers:   coverage.New("keyword × answer", grammar.Keywords, []string{refusedSchema, validObject, invalidObject}),
		formats:   coverage.New("format × class of text", grammar.Formats, []string{"valid accepted", "near miss accepted", "near miss refused", "garbage refused"}),
		numbers:   coverage.New("number form × use", grammar.Forms, []string{"bound", "multipleOf", "enum", "default", grammar.UseValue, grammar.UseSet, grammar.UseKey}),
		oddities:  coverage.New("JSON oddity × entry", grammar.Oddities, []string{"schema", "normalize", "normalize stored", "validate", "update", "admit"}),
	}
	for _, column := range []string{"near miss refused", "garbage refused"} {
		t.formats.Impossible("password", column, "every text is a password")
	}
	return t
}

func (t *grammarTables) all() []*coverage.Table {
	return []*coverage.Table{t.classes, t.positions, t.answers, t.formats, t.numbers, t.oddities}
}

// valuesPerCase is how many objects every accepted schema of the grammar gets.
const valuesPerCase = 40

// textsPerCase is how many texts are compared for a format and for a pattern, apart from any schema, with each schema.
const textsPerCase = 300

// grammarCases compares schemas of the grammar, and their values.
func (r *runner) grammarCases(round uint64) {
	if r.grammar == nil {
		r.grammar = newGrammarTables()
		r.counts.Tables = append(r.counts.Tables, r.grammar.all()...)
	}
	r.each(r.cfg.Grammar, func(i int) {
		seed := r.cfg.Seed - 1 + round*uint64(r.cfg.Grammar) + uint64(i)
		r.grammarTexts(seed)
		g := &grammarCase{r: r, c: grammar.Make(seed)}
		g.origin = fmt.Sprintf("grammar %d (%s, %s, %s)", seed, g.c.Keyword, g.c.Class, g.c.Position)
		g.run()
		if seed%4 == 0 {
			g.oddSchema()
		}
	})
}

type grammarCase struct {
	r      *runner
	c      grammar.Case
	pair   *Pair
	origin string
	twin   bool // the schema is the twin of another
}

func (g *grammarCase) run() {
	r, t := g.r, g.r.grammar
	d, theirs := Schema(g.c.Schema, g.c.Status)
	counts := &r.counts.Grammar
	counts.Schemas.Add(1)
	if theirs.Panic != nil {
		r.counts.Panics.Add(1)
	}
	t.classes.Count(g.c.Keyword, g.c.Class)
	if d != nil {
		if g.c.Twice && agreeOnLast(g.c.Schema, g.c.Status) {
			r.explain("duplicate-schema-keys")
		} else {
			r.differ(d, g.origin)
		}
		return
	}
	if !theirs.Accepted() || g.c.Status {
		if !theirs.Accepted() {
			t.answers.Count(g.c.Keyword, refusedSchema)
		}
		g.countNumbers()
		return
	}
	pair, d := Compile(g.c.Schema)
	if d != nil {
		r.differ(d, g.origin)
	}
	if pair == nil {
		return
	}
	counts.Accepted.Add(1)
	g.countNumbers()
	g.pair = pair
	if g.c.Twice && grammar.Composite(g.c.Keyword) {
		return // the row duplicate-schema-keys: what the two sides read differs
	}
	limit := valuesPerCase
	switch {
	case g.twin:
		limit /= 2
	case g.c.Seed < grammar.Edges() && g.c.Class == "null":
		limit /= 5
	case g.c.Seed < grammar.Edges():
		limit *= 2
	}
	values := grammar.Values(g.c.Schema, g.c.Seed, limit)
	for i, v := range values {
		if r.ctx.Err() != nil {
			return
		}
		g.value(v, values[(i*7+3)%len(values)].Raw, i)
	}
	if twin := grammar.Twin(g.c.Schema, g.c.Seed); twin != nil && !g.twin {
		other := *g
		other.twin, other.c.Schema = true, twin
		other.origin += ", numbers in other forms"
		other.run()
		runtime.KeepAlive(pair)
	}
	if len(values) > 0 && g.c.Class != grammar.Absent {
		t.positions.Count(g.c.Keyword, g.c.Position)
	}
}

// oddSchema compares the errors of a schema that is written in another way.
func (g *grammarCase) oddSchema() {
	k := int(g.c.Seed / 4 % uint64(len(grammar.Oddities)))
	name := grammar.Oddities[k]
	schema := []byte(grammar.NewDice(g.c.Seed, 5).Odd(k, string(g.c.Schema)))
	d, _ := Schema(schema, g.c.Status)
	g.r.counts.Grammar.Schemas.Add(1)
	switch {
	case d == nil:
	case agreeOnLast(schema, g.c.Status):
		g.r.explain("duplicate-schema-keys")
	default:
		g.r.differ(d, g.origin+", "+name)
		return
	}
	g.r.grammar.oddities.Count(name, "schema")
}

// value compares everything about one object.
func (g *grammarCase) value(v grammar.Value, other string, i int) {
	t := g.r.grammar
	object := []byte(v.Raw)
	want, same := g.normalize(object, oracle.Request, i%8 == 0)
	if i%2 == 0 {
		_, stored := g.normalize(object, oracle.Storage, i%8 == 0)
		same = same && stored
	}
	if !same {
		return
	}
	theirs, ok := g.validate(object, oracle.ValidateOptions{})
	if !ok {
		return
	}
	if theirs.Undecodable == nil {
		answer := invalidObject
		if theirs.Valid() {
			answer = validObject
		}
		t.answers.Count(g.c.Keyword, answer)
	}
	for _, form := range v.Forms {
		t.numbers.Count(form, v.Use)
	}
	g.admit(object, want, oracle.ValidateOptions{})
	old := []byte(other)
	if i%3 == 0 {
		old = object
	}
	g.validate(object, oracle.ValidateOptions{Old: old, Ratchet: true})
	if i%3 == 1 {
		g.validate(object, oracle.ValidateOptions{Old: old})
		g.admit(object, want, oracle.ValidateOptions{Old: old, Ratchet: true})
	}
	if i%3 == 2 {
		g.odd(v.Raw, old, i)
	}
}

// odd compares an object that is written in another way.
func (g *grammarCase) odd(raw string, old []byte, i int) {
	t := g.r.grammar
	dice := grammar.NewDice(g.c.Seed, 16+uint64(i))
	k := int((g.c.Seed*uint64(valuesPerCase/3) + uint64(i/3)) % uint64(len(grammar.Oddities)))
	name := grammar.Oddities[k]
	object := []byte(dice.Odd(k, raw))
	g.r.counts.Grammar.Odd.Add(1)
	want, same := g.normalize(object, oracle.Request, i%2 == 0)
	if !same {
		return
	}
	t.oddities.Count(name, "normalize")
	if _, same := g.normalize(object, oracle.Storage, false); same {
		t.oddities.Count(name, "normalize stored")
	}
	if _, same := g.validate(object, oracle.ValidateOptions{}); same {
		t.oddities.Count(name, "validate")
	}
	if _, same := g.validate(old, oracle.ValidateOptions{Old: object, Ratchet: true}); same {
		t.oddities.Count(name, "update")
	}
	if g.admit(object, want, oracle.ValidateOptions{}) {
		t.oddities.Count(name, "admit")
	}
}

// normalize compares what becomes of an object; the result is the reference's.
func (g *grammarCase) normalize(object []byte, source oracle.Source, routes bool) (oracle.Outcome, bool) {
	d, out := g.pair.Normalize(object, source)
	g.r.counts.Grammar.Normalized.Add(1)
	if d == nil && routes {
		d = g.pair.Routes(object, source, out)
	}
	return out, g.settled(d, "")
}

// validate compares what is said about an object; the result is the reference's.
func (g *grammarCase) validate(object []byte, o oracle.ValidateOptions) (oracle.Validation, bool) {
	d, theirs, row := g.pair.ValidateRaw(object, o)
	g.r.counts.Grammar.Validated.Add(1)
	if theirs.Panic != nil {
		g.r.counts.Panics.Add(1)
	}
	return theirs, g.settled(d, row)
}

func (g *grammarCase) admit(object []byte, want oracle.Outcome, o oracle.ValidateOptions) bool {
	d, _, row := g.pair.AdmitBoth(object, want, o)
	g.r.counts.Grammar.Admitted.Add(1)
	return g.settled(d, row)
}

// settled counts a difference, if there is one, and says whether there is none.
func (g *grammarCase) settled(d *Difference, row string) bool {
	if row != "" {
		g.r.explain(row)
	}
	if d != nil {
		d.Object, d.How.Old = bytes.Clone(d.Object), bytes.Clone(d.How.Old)
		g.r.differ(d, g.origin)
	}
	return d == nil
}

// countNumbers counts the forms of the numbers that the schema has in bounds, enums and defaults.
func (g *grammarCase) countNumbers() {
	root, err := tree.Parse(g.c.Schema)
	if err != nil {
		return
	}
	t := g.r.grammar.numbers
	var walk func(n *tree.Node, use string)
	walk = func(n *tree.Node, use string) {
		if n.Kind == tree.Scalar {
			if use != "" && n.Raw != "" && strings.IndexByte("-0123456789", n.Raw[0]) >= 0 {
				t.Count(grammar.Form(n.Raw), use)
			}
			return
		}
		for i, k := range n.Kids {
			inner := use
			if n.Kind == tree.Object && use == "" {
				switch tree.Unquote(n.Keys[i]) {
				case "minimum", "maximum":
					inner = "bound"
				case "multipleOf", "enum", "default":
					inner = tree.Unquote(n.Keys[i])
				}
			}
			walk(k, inner)
		}
	}
	walk(root, "")
}

// agreeOnLast reports whether a schema has repeated members, and both sides agree on it without those that a later one
// replaces.
func agreeOnLast(schema []byte, status bool) bool {
	last := WithoutTwins(schema)
	if bytes.Equal(last, schema) {
		return false
	}
	d, _ := Schema(last, status)
	return d == nil
}

// WithoutTwins is a schema or CRD with the last one of members with one name.
func WithoutTwins(schema []byte) []byte {
	root, err := tree.Parse(schema)
	if err != nil {
		return schema
	}
	var walk func(n *tree.Node)
	walk = func(n *tree.Node) {
		for i := len(n.Kids) - 1; i >= 0; i-- {
			if n.Kind == tree.Object && n.Find(tree.Unquote(n.Keys[i])) != i {
				n.Cut(i)
			}
		}
		for _, k := range n.Kids {
			walk(k)
		}
	}
	walk(root)
	return root.Bytes()
}

// grammarTexts compares texts with one format and one pattern, without a schema around them.
func (r *runner) grammarTexts(seed uint64) {
	dice := grammar.NewDice(seed, 3)
	t := r.grammar.formats
	name := grammar.Formats[seed%uint64(len(grammar.Formats))]
	for range textsPerCase {
		text, class := dice.Format(name)
		want := oracle.Format(name, text)
		if got := engine.Format(name, text); got != want {
			r.differ(textDifference("format", name, text, got, want), fmt.Sprintf("grammar %d (text of a format)", seed))
			continue
		}
		switch {
		case class == grammar.Valid && want:
			t.Count(name, "valid accepted")
		case class == grammar.NearMiss && want:
			t.Count(name, "near miss accepted")
		case class == grammar.NearMiss:
			t.Count(name, "near miss refused")
		case class == grammar.Garbage && !want:
			t.Count(name, "garbage refused")
		}
	}
	r.counts.Grammar.Formats.Add(textsPerCase)
	r.grammarPattern(dice, seed)
}

// patternsPerCase is how many patterns are compared with each schema.
const patternsPerCase = 3

func (r *runner) grammarPattern(dice *grammar.Dice, seed uint64) {
	origin := fmt.Sprintf("grammar %d (text of a pattern)", seed)
	for range patternsPerCase {
		expr := dice.Expression()
		theirs, theirErr := oracle.Pattern(expr)
		ours, ourErr := engine.Pattern(expr)
		r.counts.Grammar.Patterns.Add(1)
		if fmt.Sprint(theirErr) != fmt.Sprint(ourErr) {
			r.differ(&Difference{What: "pattern", Schema: []byte(tree.Quote(expr)), Ours: fmt.Sprint(ourErr), Theirs: fmt.Sprint(theirErr)}, origin)
			continue
		}
		if theirErr != nil {
			continue
		}
		for _, text := range dice.Matches(expr) {
			r.counts.Grammar.Patterns.Add(1)
			if got, want := ours(text), theirs(text); got != want {
				r.differ(textDifference("pattern", expr, text, got, want), origin)
			}
		}
	}
}

// textDifference shows a difference about a text as one of the smallest schema that has the format or pattern.
func textDifference(keyword, operand, text string, ours, theirs bool) *Difference {
	return &Difference{
		What:   keyword,
		Schema: []byte(`{"type":"object","properties":{"f":{"type":"string","` + keyword + `":` + tree.Quote(operand) + `}}}`),
		Object: []byte(fmt.Sprintf("%q", text)), Ours: fmt.Sprintf("matches: %v", ours), Theirs: fmt.Sprintf("matches: %v", theirs),
	}
}
