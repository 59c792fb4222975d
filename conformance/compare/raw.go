package compare

import (
	"bytes"
	"errors"

	"github.com/espalier-dev/espalier/conformance/oracle"
)

// rawPrefix marks the differences that ValidateRaw finds, and bothPrefix those of AdmitBoth.
const (
	rawPrefix  = validatePrefix + "raw-"
	bothPrefix = "admit-both-"
)

// ValidateRaw compares what is said about an object of any form, and an old one of any form, with what the reference says
// about them as it stores them (DIVERGENCES.md, number-form). The result is the reference's.
func (p *Pair) ValidateRaw(object []byte, o oracle.ValidateOptions) (d *Difference, theirs oracle.Validation, row string) {
	ours := p.ours.Validate(object, o)
	stored, how, err := asStored(object, o)
	if err != nil {
		theirs = oracle.Validation{Undecodable: err}
		if ours.Undecodable == nil {
			d = p.rawDifference(rawPrefix+kindOf(o), object, o, &ours, &theirs)
		}
		return d, theirs, ""
	}
	return p.settle(rawPrefix+kindOf(o), object, stored, o, how, &ours, false)
}

func (p *Pair) rawDifference(what string, object []byte, o oracle.ValidateOptions, ours, theirs *oracle.Validation) *Difference {
	d := &Difference{What: what, Schema: p.schema, Object: bytes.Clone(object), How: o}
	d.Ours, d.Theirs = onlyDifferentErrors(ours, theirs)
	return d
}

// asStored is an object, and an old one, in the form in which the reference stores them.
func asStored(object []byte, o oracle.ValidateOptions) ([]byte, oracle.ValidateOptions, error) {
	if object = reread(object); object == nil {
		return nil, o, errors.New("the object is no JSON object")
	}
	if o.Old != nil {
		if o.Old = reread(o.Old); o.Old == nil {
			return nil, o, errors.New("the old object is no JSON object")
		}
	}
	return object, o, nil
}

// AdmitBoth compares the engine's way to do everything in one call with the reference's steps. want is what became of the
// object when the reference normalized it. The result is the reference's.
func (p *Pair) AdmitBoth(object []byte, want oracle.Outcome, o oracle.ValidateOptions) (*Difference, oracle.Validation, string) {
	what := bothPrefix + kindOf(o)
	out, ours := p.ours.Admit(object, o)
	_, how, err := asStored(object, o)
	if want.Err != nil || err != nil {
		if want.Err != nil {
			err = want.Err
		}
		theirs := oracle.Validation{Undecodable: err}
		if ours.Undecodable == nil {
			return p.rawDifference(what, object, o, &ours, &theirs), theirs, ""
		}
		return nil, theirs, ""
	}
	if ours.Undecodable != nil || !bytes.Equal(out, want.Bytes) {
		d := p.rawDifference(what, object, o, &ours, &oracle.Validation{})
		d.Ours, d.Theirs = string(out)+"\n"+ours.String(), string(want.Bytes)
		return d, oracle.Validation{}, ""
	}
	return p.settle(what, object, want.Bytes, o, how, &ours, false)
}
