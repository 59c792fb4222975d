package compare

import (
	"bytes"
	"fmt"
	"sync/atomic"

	"github.com/espalier-dev/espalier/conformance/corpus"
	"github.com/espalier-dev/espalier/conformance/coverage"
	"github.com/espalier-dev/espalier/conformance/forms"
	"github.com/espalier-dev/espalier/conformance/generate"
	"github.com/espalier-dev/espalier/conformance/mutate"
	"github.com/espalier-dev/espalier/conformance/oracle"
	"github.com/espalier-dev/espalier/conformance/tree"
)

// roundsPerResource is how many objects every resource gets. Each is created, updated, and gets a status.
const roundsPerResource = 16

// RequestCounts is what has been compared of whole requests.
type RequestCounts struct {
	Resources, Asked, Admissions             atomic.Int64
	Unread, Foreign, Unsound, Strict, Warned atomic.Int64 // answers of the reference, of all requests
	Forms                                    *coverage.Table
}

// String is a part of a line of progress.
func (c *RequestCounts) String() string {
	return fmt.Sprintf("resources %d, requests %d (not decoded %d, of other kinds %d, invalid %d, with strict errors %d, with warnings %d), admissions %d",
		c.Resources.Load(), c.Asked.Load(), c.Unread.Load(), c.Foreign.Load(), c.Unsound.Load(), c.Strict.Load(), c.Warned.Load(), c.Admissions.Load())
}

var (
	formRows = []string{
		"v1", "v1 preserving", "v1beta1 within", "v1beta1 within preserving", "v1beta1 shared", "v1beta1 shared preserving", "v1beta1 single", "v1beta1 single preserving",
	}
	formColumns = []string{"create", "create refused", "update", "update refused", "status", "status refused", "not decoded", "strict errors", "warnings"}
)

// newRequestCounts counts requests by the form of the CRD and by what came of them.
func newRequestCounts() *RequestCounts {
	return &RequestCounts{Forms: coverage.New("form of the CRD × request", formRows, formColumns)}
}

func formRow(f forms.Form) string {
	row := "v1"
	switch {
	case f.Single:
		row = "v1beta1 single"
	case f.Shared:
		row = "v1beta1 shared"
	case f.Beta:
		row = "v1beta1 within"
	}
	if f.Preserve {
		row += " preserving"
	}
	return row
}

// requests compares whole requests about objects of the schemas as they are, of varied and of enriched ones, in turn.
func (r *runner) requests(usable []corpus.Schema, pool *mutate.Pool, round uint64) {
	r.each(r.cfg.Requests, func(i int) {
		seed := r.cfg.Seed + round*uint64(r.cfg.Requests) + uint64(i)
		var schema []byte
		var origin string
		switch {
		case seed%3 == 0 && len(usable) > 0:
			s := usable[seed/3*7919%uint64(len(usable))]
			schema, origin = s.JSON, s.Name+" of "+s.Source
		case seed%3 == 1:
			m := pool.Enrich(seed)
			schema, origin = m.Schema, fmt.Sprintf("enriched %d of %s %v", seed, m.Base, m.Applied)
		default:
			m := pool.Vary(seed)
			schema, origin = m.Schema, fmt.Sprintf("variant %d of %s %v", seed, m.Base, m.Applied)
		}
		if form, ok := fitting(schema, seed); ok {
			r.resource(schema, form, fmt.Sprintf("%s, request seed %d", origin, seed), seed)
		}
	})
}

// fitting returns the form of a seed in which a schema can be, if both sides accept it in one. What Schema finds is
// reported where schemas are compared.
func fitting(schema []byte, seed uint64) (forms.Form, bool) {
	form := forms.Of(seed)
	d, theirs := Schema(schema, form.Status)
	if form.Status && !theirs.Accepted() { // the subresource forbids some keywords at the root
		form.Status = false
		d, theirs = Schema(schema, false)
	}
	return form, d == nil && theirs.Accepted()
}

// resource makes requests about objects of one schema.
func (r *runner) resource(schema []byte, form forms.Form, origin string, seed uint64) {
	pair, plan := r.prepare(schema, origin)
	if plan == nil {
		return
	}
	resources, d := NewResources(schema, form)
	if d != nil {
		r.differ(d, origin)
	}
	if resources == nil {
		return
	}
	r.counts.Resources.Add(1)
	q := requester{r: r, pair: pair, resources: resources, plan: plan, origin: origin}
	for i := range uint64(roundsPerResource) {
		if r.ctx.Err() != nil {
			return
		}
		q.round(seed<<8 + i)
	}
}

// A requester is the work on one resource.
type requester struct {
	r         *runner
	pair      *Pair
	resources *Resources
	plan      *generate.Plan
	origin    string
	buf       []byte
	previous  []byte
}

// round creates an object, and updates it and its status.
func (q *requester) round(seed uint64) {
	o := generate.Options{Mode: [...]generate.Mode{generate.Breach, generate.Hostile, generate.Valid, generate.Near, generate.Breach, generate.Valid}[seed%6], Size: 150 + int(seed%7)*150}
	o.Resolve = o.Mode == generate.Valid
	q.buf = q.plan.Append(q.buf[:0], seed, o)
	scope := [...]oracle.Scope{oracle.Unscoped, oracle.Namespaced, oracle.Unscoped, oracle.Cluster}[seed%4]
	source := oracle.Request
	if seed%8 == 7 {
		source = oracle.Storage
	}
	created := q.request(oracle.Operation{Body: q.buf}, seed)
	q.admit(q.buf, source, oracle.ValidateOptions{Scope: scope}, seed)
	if created.Stored == nil {
		return
	}
	old := stored(created.Stored)
	other := q.previous
	if other == nil {
		other = old
	}
	q.previous = old
	body := generate.Edit(old, other, seed)
	if seed%3 == 1 { // a body of any form
		body = withVersion(q.plan.Append(nil, seed^1, o))
	}
	if seed%7 == 0 {
		body = generate.Reformat(body, seed)
	}
	q.request(oracle.Operation{Verb: oracle.Update, Body: body, Old: old}, seed)
	if q.resources.theirs.HasStatus() {
		q.request(oracle.Operation{Verb: oracle.UpdateStatus, Body: body, Old: old}, seed)
	}
	q.admit(body, source, oracle.ValidateOptions{Old: old, Scope: scope, Ratchet: true}, seed)
	if seed%3 == 0 {
		q.admit(body, source, oracle.ValidateOptions{Old: old, Scope: scope}, seed)
	}
}

// stored gives a new object the resourceVersion that storage gives it.
func stored(object []byte) []byte {
	root, err := tree.Parse(object)
	if err != nil {
		return object
	}
	meta := root.Have("metadata", tree.Object)
	meta.Set("resourceVersion", tree.Lit(`"7"`))
	return reread(root.Bytes())
}

// withVersion gives a body the resourceVersion of the stored object, without which there is no update.
func withVersion(body []byte) []byte {
	root, err := tree.Parse(body)
	if err != nil {
		return body
	}
	if meta := root.Get("metadata"); meta != nil && meta.Kind == tree.Object {
		meta.Set("resourceVersion", tree.Lit(`"7"`))
	}
	return root.Bytes()
}

func (q *requester) request(op oracle.Operation, seed uint64) oracle.Answer {
	d, theirs, row := q.resources.Request(op)
	c := q.r.counts.RequestCounts
	c.Asked.Add(1)
	if row != "" {
		q.r.explain(row)
	}
	if d != nil {
		d.Object, d.How.Old = bytes.Clone(d.Object), bytes.Clone(d.How.Old)
		q.r.differ(d, fmt.Sprintf("%s, object %d", q.origin, seed))
		return theirs
	}
	at, verb := formRow(q.resources.form), op.Verb.String()
	switch {
	case theirs.Panic != nil:
		q.r.counts.Panics.Add(1)
		return theirs
	case theirs.Refused != "":
		c.Unread.Add(1)
		c.Forms.Count(at, "not decoded")
		return theirs
	case theirs.Foreign != "":
		c.Foreign.Add(1)
		return theirs
	case len(theirs.Errors) > 0:
		c.Unsound.Add(1)
		verb += " refused"
	}
	c.Forms.Count(at, verb)
	if len(theirs.Strict) > 0 {
		c.Strict.Add(1)
		c.Forms.Count(at, "strict errors")
	}
	if len(theirs.Warnings) > 0 {
		c.Warned.Add(1)
		c.Forms.Count(at, "warnings")
	}
	return theirs
}

func (q *requester) admit(object []byte, source oracle.Source, o oracle.ValidateOptions, seed uint64) {
	d, theirs, row := q.pair.Whole(object, source, o)
	q.r.counts.Admissions.Add(1)
	if theirs.Panic != nil {
		q.r.counts.Panics.Add(1)
	}
	if row != "" {
		q.r.explain(row)
	}
	if d != nil {
		d.Object, d.How.Old = bytes.Clone(d.Object), bytes.Clone(d.How.Old)
		q.r.differ(d, fmt.Sprintf("%s, object %d", q.origin, seed))
	}
}
