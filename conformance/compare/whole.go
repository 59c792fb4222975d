package compare

import (
	"bytes"

	"github.com/espalier-dev/espalier/conformance/oracle"
)

// wholePrefix marks the differences that Whole finds.
const wholePrefix = "admit-"

// numberForm is the row of DIVERGENCES.md about numbers whose type changes when they are stored.
const numberForm = "number-form"

// Whole compares everything that happens to an object between the bytes of a request and the bytes for storage. The
// result is the reference's. row names the line of DIVERGENCES.md that explains a difference, if one does.
func (p *Pair) Whole(object []byte, source oracle.Source, o oracle.ValidateOptions) (d *Difference, theirs oracle.Admission, row string) {
	ours := p.ours.Whole(object, source, o)
	theirs = p.theirs.Whole(object, source, o)
	if theirs.Panic != nil { // no row describes a crash here
		return &Difference{What: wholePrefix + kindOf(o), Schema: p.schema, Object: object, Source: source, How: o, Ours: ours.String(), Theirs: theirs.String()}, theirs, ""
	}
	tries := calm
	if ours.Err != nil && theirs.Err != nil {
		tries = patience
	}
	for try := 0; ; try++ {
		same := p.equal(ours.Outcome, theirs.Outcome)
		if same && (theirs.Err != nil || equalValidations(&ours.Validation, &theirs.Validation)) {
			return nil, theirs, ""
		}
		if same {
			if row := p.wholeRow(o, &ours, &theirs); row != "" {
				return nil, theirs, row
			}
		}
		if try == tries || ours.Panic != nil || !same && (ours.Err == nil || theirs.Err == nil) {
			break
		}
		theirs = p.theirs.Whole(object, source, o)
	}
	d = &Difference{What: wholePrefix + kindOf(o), Schema: p.schema, Object: object, Source: source, How: o, Ours: ours.String(), Theirs: theirs.String()}
	if p.equal(ours.Outcome, theirs.Outcome) {
		d.Ours, d.Theirs = onlyDifferentErrors(&ours.Validation, &theirs.Validation)
	}
	return d, theirs, ""
}

// wholeRow explains a difference between validations of objects that are equal.
func (p *Pair) wholeRow(o oracle.ValidateOptions, ours, theirs *oracle.Admission) string {
	if row := p.explained(theirs.Bytes, o, &ours.Validation, &theirs.Validation); row != "" {
		return row
	}
	if !theirs.Rewritten {
		return ""
	}
	stored := p.theirs.Validate(theirs.Bytes, o)
	if equalValidations(&ours.Validation, &stored) || p.explained(theirs.Bytes, o, &ours.Validation, &stored) != "" {
		return numberForm
	}
	return ""
}

// retryWhole compares again, for the shrinker.
func (s *shrinker) retryWhole(schema, object, old []byte) *Difference {
	if !s.compile(schema) {
		return nil
	}
	how := s.best.How
	how.Old = old
	d, _, _ := s.pair.Whole(object, s.best.Source, how)
	return s.keep(d)
}

// keep returns a difference that is like the one that is shrunk, with bytes of its own.
func (s *shrinker) keep(d *Difference) *Difference {
	if d == nil || signature(d) != signature(s.best) {
		return nil
	}
	d.Origin = s.best.Origin
	d.Schema, d.Object, d.How.Old = bytes.Clone(d.Schema), bytes.Clone(d.Object), bytes.Clone(d.How.Old)
	return d
}
