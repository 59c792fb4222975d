package compare

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/espalier-dev/espalier/conformance/engine"
	"github.com/espalier-dev/espalier/conformance/oracle"
)

// calm is how often the reference is asked again when its errors differ from ours. It walks Go maps: which of several
// equal texts it keeps, which error of a rule that iterates over a map comes first, and which rule exhausts a budget
// varies from run to run.
const calm = 25

// validatePrefix marks the differences that Validate finds.
const validatePrefix = "validate-"

// Validate compares what is said about an object. The result is the reference's. row names the line of DIVERGENCES.md
// that explains a difference, if one does.
func (p *Pair) Validate(object []byte, o oracle.ValidateOptions) (d *Difference, theirs oracle.Validation, row string) {
	ours, theirs := p.ours.Validate(object, o), p.theirs.Validate(object, o)
	if theirs.Panic != nil { // no row describes a crash here
		return &Difference{What: validatePrefix + kindOf(o), Schema: p.schema, Object: object, How: o, Ours: ours.String(), Theirs: theirs.String()}, theirs, ""
	}
	for try := 0; !equalValidations(&ours, &theirs); try++ {
		if row := p.explained(object, o, &ours, &theirs); row != "" {
			return nil, theirs, row
		}
		if try == calm || ours.Panic != nil {
			d = &Difference{What: validatePrefix + kindOf(o), Schema: p.schema, Object: object, How: o}
			d.Ours, d.Theirs = onlyDifferentErrors(&ours, &theirs)
			return d, theirs, ""
		}
		theirs = p.theirs.Validate(object, o)
	}
	if order := p.order(object, o, ours.Ordered, theirs.Ordered); order != nil {
		return &Difference{What: validatePrefix + kindOf(o), Schema: p.schema, Object: object, How: o, Ours: "in this order: " + strings.Join(ours.Ordered, "\n         "), Theirs: strings.Join(order, "\n         ")}, theirs, ""
	}
	return nil, theirs, ""
}

// stable is how often the reference must give its errors in the same order to be taken at its word: two members of an
// object that stand side by side in a Go map change places in one run of eight.
const stable = 250

// order returns the order of the reference's errors if it differs from ours in every run and never varies. The errors of
// several members of an object come in random order.
func (p *Pair) order(object []byte, o oracle.ValidateOptions, ours, theirs []string) []string {
	if slices.Equal(ours, theirs) {
		return nil
	}
	for range stable {
		again := p.theirs.Validate(object, o)
		if !slices.Equal(again.Ordered, theirs) {
			return nil
		}
	}
	return theirs
}

// Admit compares the engine's way to do everything in one call with its steps, on a new object of any form: the step of
// normalizing gave normalized.
func (p *Pair) Admit(object, normalized []byte, o oracle.ValidateOptions) *Difference {
	want := p.ours.Validate(normalized, o)
	out, got := p.ours.Admit(object, o)
	if bytes.Equal(out, normalized) && equalValidations(&got, &want) {
		return nil
	}
	return &Difference{What: admitted, Schema: p.schema, Object: object, How: o, Ours: string(out) + "\n" + got.String(), Theirs: string(normalized) + "\n" + want.String()}
}

// admitted marks the differences that Admit finds.
const admitted = "admit"

func kindOf(o oracle.ValidateOptions) string {
	switch {
	case o.Old == nil:
		return "create"
	case o.Ratchet:
		return "ratchet"
	}
	return "update"
}

func equalValidations(a, b *oracle.Validation) bool {
	return (a.Undecodable != nil) == (b.Undecodable != nil) && a.Panic == nil && slices.Equal(a.Errors, b.Errors) && slices.Equal(a.Warnings, b.Warnings)
}

// onlyDifferentErrors renders two validations without what they share.
func onlyDifferentErrors(ours, theirs *oracle.Validation) (string, string) {
	if ours.Undecodable != nil || theirs.Undecodable != nil || ours.Panic != nil {
		return ours.String(), theirs.String()
	}
	all := func(v *oracle.Validation) []string {
		list := slices.Clone(v.Errors)
		for _, w := range v.Warnings {
			list = append(list, "warning: "+w)
		}
		return list
	}
	return minus(all(ours), all(theirs)), minus(all(theirs), all(ours))
}

// Costs compares what the rules of a schema may cost. The number is that of its rules.
func Costs(schema []byte) (*Difference, int) {
	theirs, rules, err := oracle.Costs(schema)
	if err != nil {
		if errors.Is(err, oracle.ErrCrashed) && !describedCrash(err.Error()) {
			return &Difference{What: "rules-costs", Schema: schema, Ours: "does not crash", Theirs: err.Error()}, 0
		}
		return nil, 0 // no schema at all, which other comparisons look at
	}
	ours, err := engine.Costs(schema)
	if err != nil {
		return &Difference{What: "rules-costs", Schema: schema, Ours: err.Error(), Theirs: fmt.Sprintf("%d expressions", len(theirs))}, rules
	}
	if slices.Equal(ours, theirs) {
		return nil, rules
	}
	a, b := texts(ours), texts(theirs)
	return &Difference{What: "rules-costs", Schema: schema, Ours: minus(a, b), Theirs: minus(b, a)}, rules
}

func texts(costs []oracle.Cost) []string {
	list := make([]string, len(costs))
	for i, c := range costs {
		list[i] = c.String()
	}
	return list
}
