package trial

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/espalier-dev/espalier/crd"
	"github.com/espalier-dev/espalier/crd/conversion"
	"github.com/espalier-dev/espalier/crd/request"
	"github.com/espalier-dev/espalier/crd/sample"
	"github.com/espalier-dev/espalier/internal/crdtree"
	"github.com/espalier-dev/espalier/internal/jsondoc"
	"github.com/espalier-dev/espalier/internal/object"
	"github.com/espalier-dev/espalier/internal/syntax"
)

// Options bound a trial.
type Options struct {
	Objects int           // of each version
	Seed    uint64        // of the objects
	Limit   time.Duration // ends the trial early; 0 for none
	// Violations is how many are reported in detail. Objects after the last are not looked at.
	Violations int
}

// Contract names what a conversion must keep.
type Contract string

// The contracts.
const (
	Succeeds  Contract = "a conversion succeeds"
	Fits      Contract = "the other version prunes nothing"
	RoundTrip Contract = "converted and converted back, an object is the same"
	Edited    Contract = "an edit of the converted object is kept"
	Kept      Contract = "what an edit does not change is kept"
	Live      Contract = "an edit wins over what was preserved"
	Invented  Contract = "nothing comes from elsewhere"
)

// Violation is an object for which a contract does not hold.
type Violation struct {
	Contract Contract
	From, To string        // versions
	Object   []byte        // of From
	Edits    []sample.Edit // of the converted object
	Detail   string
	Steps    []Step // what became of the object
}

// Step is an object on its way.
type Step struct {
	Name   string
	Object []byte
}

// Result says what a trial has found.
type Result struct {
	Objects     int // of all versions
	Conversions int
	Edits       int // edited objects
	Violations  []Violation
	Skipped     []string // pairs of versions that were not tried, and why
}

// Trial tests the rules of one CRD.
type Trial struct {
	plan     *conversion.Plan
	versions []*version
	rules    *declared
	result   Result
}

// version is a version of the CRD.
type version struct {
	name   string
	tree   *syntax.Schema
	schema *request.Schema
	sample *sample.Generator
}

// New returns a trial of a CRD with the rules that the plan is compiled of.
func New(d *crd.CRD, plan *conversion.Plan) (*Trial, error) {
	rules, err := readDeclared(d.Annotations[conversion.Annotation])
	if err != nil {
		return nil, err
	}
	t := &Trial{plan: plan, rules: rules}
	for i := range d.Versions {
		v := &d.Versions[i]
		s, err := request.Compile(v, d.PreserveUnknownFields)
		if err != nil {
			return nil, fmt.Errorf("version %s: %w", v.Name, err)
		}
		g, err := sample.New(d, v, sample.Options{Annotations: rules.annotations, Labels: rules.labels})
		if err != nil {
			return nil, err
		}
		t.versions = append(t.versions, &version{name: v.Name, tree: crdtree.Parse(v).Tree, schema: s, sample: g})
	}
	return t, nil
}

// Run tests the rules with new objects.
func (t *Trial) Run(ctx context.Context, o Options) Result {
	t.result = Result{}
	end := time.Time{}
	if o.Limit > 0 {
		end = time.Now().Add(o.Limit)
	}
	skip := map[[2]string]bool{}
	for _, a := range t.versions {
		for _, b := range t.versions {
			if a.name < b.name && !t.rules.keepsBetween(a.name, b.name) {
				skip[[2]string{a.name, b.name}], skip[[2]string{b.name, a.name}] = true, true
				t.result.Skipped = append(t.result.Skipped, fmt.Sprintf("%s and %s: fields are declared lost on the way between them", a.name, b.name))
			}
		}
	}
	for i := range o.Objects {
		if i%64 == 0 && (ctx.Err() != nil || !end.IsZero() && time.Now().After(end)) {
			break
		}
		for n, from := range t.versions {
			r := rand.New(rand.NewPCG(o.Seed, uint64(i)<<8|uint64(n)))
			a := t.object(from, r)
			t.result.Objects++
			for _, to := range t.versions {
				if from == to || skip[[2]string{from.name, to.name}] {
					continue
				}
				if v := t.try(from, to, a, r); v != nil {
					t.result.Violations = append(t.result.Violations, *v)
					if len(t.result.Violations) >= o.Violations {
						return t.result
					}
				}
			}
		}
	}
	return t.result
}

// object returns an object without fields that are declared lost.
func (t *Trial) object(v *version, r *rand.Rand) any {
	o := v.sample.Object(r)
	if r.IntN(8) == 0 {
		ratcheted(v.tree, o, r)
	}
	return t.rules.without(v.name, o)
}

// try converts an object, edits the result, and converts it back. It returns the first violation, made small.
func (t *Trial) try(from, to *version, a any, r *rand.Rand) *Violation {
	c := attempt{Trial: t, from: from, to: to, a: a}
	if v := c.run(); v != nil {
		return t.minimize(c, v)
	}
	edits := to.sample.Edits(r, decode(c.b).(map[string]any))
	if len(edits) == 0 {
		return nil
	}
	t.result.Edits++
	c.edits = edits
	if v := c.run(); v != nil {
		return t.minimize(c, v)
	}
	return nil
}

// attempt is one object and its edits.
type attempt struct {
	*Trial
	from, to *version
	a        any
	edits    []sample.Edit

	b     []byte // the converted object
	steps []Step
}

// convert converts an object and notes the step.
func (c *attempt) convert(name string, data []byte, to *version) ([]byte, *Violation) {
	c.result.Conversions++
	out, err := c.plan.Convert(nil, data, to.name)
	if err != nil {
		return nil, c.violation(Succeeds, name+": "+err.Error())
	}
	c.steps = append(c.steps, Step{name, out})
	return out, nil
}

func (c *attempt) violation(contract Contract, detail string) *Violation {
	return &Violation{Contract: contract, From: c.from.name, To: c.to.name, Object: encode(c.a), Edits: c.edits, Detail: detail, Steps: c.steps}
}

// run checks the contracts: without edits those of round trips, with edits the others.
func (c *attempt) run() *Violation {
	c.steps = nil
	a := encode(c.a)
	b, v := c.convert("in "+c.to.name, a, c.to)
	if v != nil {
		return v
	}
	c.b = b
	if len(c.edits) > 0 {
		return c.edited(b)
	}
	if fits, err := c.fits(c.from, a); err == nil && fits {
		switch fits, err := c.fits(c.to, b); {
		case err != nil:
			return c.violation(Fits, err.Error())
		case !fits:
			return c.violation(Fits, "the schema of "+c.to.name+" prunes fields of the result")
		}
	}
	back, v := c.convert("back in "+c.from.name, b, c.from)
	if v != nil {
		return v
	}
	if !bytes.Equal(a, back) {
		return c.violation(RoundTrip, difference(a, back))
	}
	return nil
}

// fits reports whether the version's schema keeps all of an object, as servers do after a conversion.
func (c *attempt) fits(v *version, data []byte) (bool, error) {
	o, err := object.FromJSON(data)
	if err != nil {
		return false, err
	}
	if o, err = v.schema.DecodeConverted(o); err != nil {
		return false, err
	}
	c.steps = c.steps[:len(c.steps):len(c.steps)]
	if out := o.JSON(); !bytes.Equal(out, data) {
		c.steps = append(c.steps, Step{"pruned", out})
		return false, nil
	}
	return true, nil
}

// edited checks what becomes of an edit of the converted object b.
func (c *attempt) edited(b []byte) *Violation {
	now := decode(b)
	for _, e := range c.edits {
		now = sample.Apply(now, e)
	}
	now = c.rules.without(c.to.name, now)
	after := encode(now)
	if bytes.Equal(b, after) {
		return nil
	}
	c.steps = append(c.steps, Step{"edited", after})
	back, v := c.convert("back in "+c.from.name, after, c.from)
	if v != nil {
		return v
	}
	again, v := c.convert("again in "+c.to.name, back, c.to)
	if v != nil {
		return v
	}
	if want, got := encode(bare(now)), encode(bare(decode(again))); !bytes.Equal(want, got) {
		return c.violation(Edited, difference(want, got))
	}
	unedited, v := c.convert("without what was preserved, in "+c.from.name, encode(bare(decode(b))), c.from)
	if v != nil {
		return v
	}
	fresh, v := c.convert("edited without what was preserved, in "+c.from.name, encode(bare(now)), c.from)
	if v != nil {
		return v
	}
	x := &comparison{rules: c.rules, version: c.from.name, tree: c.from.tree, other: c.to.tree}
	x.removed = removals(&comparison{rules: c.rules, version: c.to.name, tree: c.to.tree, other: c.from.tree}, decode(b), now)
	contract, detail := x.compare(c.a, decode(unedited), decode(fresh), decode(back))
	if detail == "" {
		return nil
	}
	return c.violation(contract, detail)
}

func encode(v any) []byte {
	out, err := jsondoc.AppendAny(nil, v)
	if err != nil {
		panic(err) // there are no infinities in JSON
	}
	return out
}

func decode(data []byte) any {
	doc, err := jsondoc.Parse(data, jsondoc.Limits{})
	if err != nil {
		panic(fmt.Sprintf("conversion made what is not JSON: %v: %s", err, data))
	}
	defer doc.Release()
	return doc.Any(jsondoc.Root)
}

// bare returns an object without what was preserved.
func bare(o any) any {
	o = sample.Apply(o, sample.Edit{Op: sample.Delete, Path: []any{"metadata", "annotations", conversion.Preserved}})
	meta, _ := o.(map[string]any)["metadata"].(map[string]any)
	if notes, ok := meta["annotations"].(map[string]any); ok && len(notes) == 0 {
		o = sample.Apply(o, sample.Edit{Op: sample.Delete, Path: []any{"metadata", "annotations"}})
	}
	return o
}
