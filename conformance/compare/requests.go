package compare

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/espalier-dev/espalier/conformance/engine"
	"github.com/espalier-dev/espalier/conformance/forms"
	"github.com/espalier-dev/espalier/conformance/oracle"
)

// requestPrefix marks the differences that Request finds.
const requestPrefix = "request-"

// Resources is a resource that a CRD defines, built by both sides.
type Resources struct {
	schema []byte
	form   forms.Form
	ours   *engine.Resource
	theirs *oracle.Resource
	// without are the same resources with schemas that lack some features; see Pair.without.
	without map[int]*Resources
}

// NewResources builds the resource of a schema in a form. Both sides may refuse the schema.
func NewResources(schema []byte, form forms.Form) (*Resources, *Difference) {
	doc, err := form.Wrap(schema)
	if err != nil {
		return nil, nil
	}
	theirs, theirErr := oracle.NewResource(doc, forms.Version)
	ours, ourErr := engine.NewResource(doc, forms.Version)
	switch {
	case theirErr == nil && ourErr == nil:
		return &Resources{schema: schema, form: form, ours: ours, theirs: theirs}, nil
	case (theirErr == nil) == (ourErr == nil), outOfRange(ourErr),
		ourErr == nil && strings.Contains(theirErr.Error(), "object root default value must be of object type"): // unreachable-root-default
		return nil, nil
	}
	return nil, &Difference{What: requestPrefix + "compile", Schema: schema, Form: &form, Ours: fmt.Sprint(ourErr), Theirs: fmt.Sprint(theirErr)}
}

// Request compares a request. The result is the reference's. row names the line of DIVERGENCES.md that explains a
// difference, if one does.
func (p *Resources) Request(q oracle.Operation) (d *Difference, theirs oracle.Answer, row string) {
	ours, theirs := p.ours.Do(q), p.theirs.Do(q)
	defer func() {
		if row == "" && d == nil && nullDeletion(&ours, &theirs) {
			row = "null-deletion-timestamp"
		}
	}()
	if theirs.BadOld() {
		return nil, theirs, ""
	}
	if theirs.Panic != nil { // no row describes a crash here
		d = &Difference{What: requestPrefix + q.Verb.String(), Schema: p.schema, Form: &p.form, Object: q.Body, Ours: ours.String(), Theirs: theirs.String()}
		d.How.Old = q.Old
		return d, theirs, ""
	}
	tries := calm
	if ours.Refused != "" && theirs.Refused != "" {
		tries = patience
	}
	for try := 0; !equalAnswers(&ours, &theirs); try++ {
		if row := p.explained(q, &ours, &theirs); row != "" {
			return nil, theirs, row
		}
		if try == tries || ours.Panic != nil || (ours.Refused == "") != (theirs.Refused == "") {
			d = &Difference{What: requestPrefix + q.Verb.String(), Schema: p.schema, Form: &p.form, Object: q.Body, Ours: ours.String(), Theirs: theirs.String()}
			d.How.Old = q.Old
			if bytes.Equal(ours.Stored, theirs.Stored) && slices.Equal(ours.Strict, theirs.Strict) && ours.Foreign == theirs.Foreign && ours.Refused == theirs.Refused {
				d.Ours, d.Theirs = onlyDifferentErrors(&ours.Validation, &theirs.Validation)
			}
			return d, theirs, ""
		}
		theirs = p.theirs.Do(q)
	}
	return nil, theirs, ""
}

func equalAnswers(ours, theirs *oracle.Answer) bool {
	if nullDeletion(ours, theirs) {
		ours, theirs = withoutNullDeletion(ours), withoutNullDeletion(theirs)
	}
	return ours.Panic == nil && ours.Refused == theirs.Refused && ours.Foreign == theirs.Foreign && bytes.Equal(ours.Stored, theirs.Stored) &&
		(slices.Equal(ours.Strict, theirs.Strict) || capped(ours.Strict, theirs.Strict)) && equalValidations(&ours.Validation, &theirs.Validation)
}

// A deletionTimestamp of the year 1 is a null that the first read from storage drops (DIVERGENCES.md,
// null-deletion-timestamp).
const nullDeletionText = `"deletionTimestamp":null,`

// nullDeletion reports whether answers differ in such a null, at least.
func nullDeletion(ours, theirs *oracle.Answer) bool {
	return bytes.Count(theirs.Stored, []byte(nullDeletionText)) == 1+bytes.Count(ours.Stored, []byte(nullDeletionText))
}

// withoutNullDeletion is an answer without such nulls, in what is stored and in errors that show the object.
func withoutNullDeletion(a *oracle.Answer) *oracle.Answer {
	b := *a
	b.Stored = bytes.ReplaceAll(a.Stored, []byte(nullDeletionText), nil)
	b.Errors = slices.Clone(a.Errors)
	for i, e := range b.Errors {
		b.Errors[i] = strings.ReplaceAll(e, nullDeletionText, "")
	}
	return &b
}

// sameStored compares what is stored.
func sameStored(ours, theirs *oracle.Answer) bool {
	if nullDeletion(ours, theirs) {
		ours, theirs = withoutNullDeletion(ours), withoutNullDeletion(theirs)
	}
	return bytes.Equal(ours.Stored, theirs.Stored)
}

// explained names the row of DIVERGENCES.md that a difference between answers is an instance of, or "".
func (p *Resources) explained(q oracle.Operation, ours, theirs *oracle.Answer) string {
	if ours.Panic != nil || ours.Refused != "" || theirs.Refused != "" {
		return ""
	}
	if !sameStored(ours, theirs) { // a number in another form is a change to the reference, and a new generation
		return p.restated(q, ours, theirs)
	}
	if !slices.Equal(ours.Strict, theirs.Strict) && slices.Equal(slices.Compact(slices.Clone(ours.Strict)), slices.Compact(slices.Clone(theirs.Strict))) &&
		equalValidations(&ours.Validation, &theirs.Validation) && bytes.Contains(p.schema, []byte(`"x-kubernetes-embedded-resource":true`)) {
		return "embedded-root-twice"
	}
	if row := p.feature(q, ours, theirs); row != "" {
		return row
	}
	return p.restated(q, ours, theirs)
}

// restated reports whether answers are equal if the body has its numbers in the form in which they are stored.
func (p *Resources) restated(q oracle.Operation, ours, theirs *oracle.Answer) string {
	body, rewritten := p.theirs.Restate(q.Body)
	if !rewritten {
		return ""
	}
	if shown := withoutNegativeZeros(theirs); sameStored(ours, theirs) && equalAnswers(ours, shown) {
		return numberForm
	}
	q.Body = body
	stored := p.theirs.Do(q)
	stored.Strict = theirs.Strict
	if sameStored(ours, theirs) { // -0.0 is stored as -0, a change of 0 and a new generation, and read as 0
		was, is := generation.FindString(string(stored.Stored)), generation.FindString(string(ours.Stored))
		for i, e := range stored.Errors {
			if was != "" { // nothing is stored of what is refused
				stored.Errors[i] = strings.ReplaceAll(e, was, is)
			}
		}
		stored.Stored = ours.Stored
	}
	if equalAnswers(ours, &stored) || p.feature(q, ours, &stored) != "" {
		return numberForm
	}
	return ""
}

var (
	generation   = regexp.MustCompile(`"generation":\d+,`)
	negativeZero = regexp.MustCompile(`([:\[,|])-0([,}\]|])`)
)

// withoutNegativeZeros is an answer whose errors show 0 for -0: the reference shows numbers as they are sent.
func withoutNegativeZeros(a *oracle.Answer) *oracle.Answer {
	b := *a
	b.Errors = slices.Clone(a.Errors)
	for i, e := range b.Errors {
		b.Errors[i] = negativeZero.ReplaceAllString(e, "${1}0${2}")
	}
	slices.Sort(b.Errors)
	return &b
}

// feature is Pair.explained for a request.
func (p *Resources) feature(q oracle.Operation, ours, theirs *oracle.Answer) string {
	if limited(&ours.Validation, &theirs.Validation) {
		return "error-limit"
	}
	if crashedOnKeys(&ours.Validation, &theirs.Validation) {
		return "list-map-key-crash"
	}
	wanted, row := suspects(&ours.Validation, &theirs.Validation)
	if wanted == 0 {
		return ""
	}
	plain, known := p.without[wanted]
	if !known {
		if schema := withoutFeatures(p.schema, wanted); schema != nil {
			plain, _ = NewResources(schema, p.form)
		}
		if p.without == nil {
			p.without = map[int]*Resources{}
		}
		p.without[wanted] = plain
	}
	if plain == nil {
		return ""
	}
	a, b := plain.ours.Do(q), plain.theirs.Do(q)
	if !equalAnswers(&a, &b) {
		return ""
	}
	return row
}

// retryRequest compares a request again, for the shrinker.
func (s *shrinker) retryRequest(schema, object, old []byte) *Difference {
	if !s.compile(schema) {
		return nil
	}
	if s.resources == nil || !bytes.Equal(s.resources.schema, schema) {
		s.resources, _ = NewResources(bytes.Clone(schema), *s.best.Form)
	}
	if s.resources == nil {
		return nil
	}
	q := oracle.Operation{Body: object, Old: old}
	for _, v := range []oracle.Verb{oracle.Create, oracle.Update, oracle.UpdateStatus} {
		if s.best.What == requestPrefix+v.String() {
			q.Verb = v
		}
	}
	d, _, _ := s.resources.Request(q)
	return s.keep(d)
}
