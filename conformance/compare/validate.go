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
// varies from run to run. A walk over a map of two begins with the second in one of eight runs: where there are rules,
// the reference is asked eight times as often.
const calm = 25

// validatePrefix marks the differences that Validate finds.
const validatePrefix = "validate-"

// Validate compares what is said about an object. The result is the reference's. row names the line of DIVERGENCES.md
// that explains a difference, if one does.
func (p *Pair) Validate(object []byte, o oracle.ValidateOptions) (d *Difference, theirs oracle.Validation, row string) {
	return p.validate(object, o, true)
}

// validate is Validate, with a look at the order of errors or without: to tell whether the reference's order is random
// takes several runs.
func (p *Pair) validate(object []byte, o oracle.ValidateOptions, ordered bool) (d *Difference, theirs oracle.Validation, row string) {
	ours := p.ours.Validate(object, o)
	return p.settle(validatePrefix+kindOf(o), object, object, o, o, &ours, ordered)
}

// settle asks the reference about an object, in the form in which it stores it, until it agrees with ours or has been
// asked often enough.
func (p *Pair) settle(what string, object, stored []byte, o, how oracle.ValidateOptions, ours *oracle.Validation, ordered bool) (*Difference, oracle.Validation, string) {
	difference := func(ours, theirs string) *Difference {
		return &Difference{What: what, Schema: p.schema, Object: bytes.Clone(object), How: o, Ours: ours, Theirs: theirs}
	}
	theirs := p.theirs.Validate(stored, how)
	var tries scatter
	for try := 0; ; try++ {
		if theirs.Panic != nil { // no row describes a crash here
			return difference(ours.String(), theirs.String()), theirs, ""
		}
		if equalValidations(ours, &theirs) {
			break
		}
		tries.add(&theirs)
		if row := p.explained(stored, how, ours, &theirs); row != "" {
			return nil, theirs, row
		}
		last := try == calm && !p.ruled || try == 8*calm
		if last && tries.allow(ours) {
			return nil, theirs, ""
		}
		if last || ours.Panic != nil {
			return difference(onlyDifferentErrors(ours, &theirs)), theirs, ""
		}
		theirs = p.theirs.Validate(stored, how)
	}
	if ordered {
		if order := p.order(stored, how, ours.Ordered, theirs.Ordered); order != nil {
			return difference("in this order: "+strings.Join(ours.Ordered, "\n         "), strings.Join(order, "\n         ")), theirs, ""
		}
	}
	if e := p.owed(stored, ours); e != "" {
		return difference(e, "(the same, but a row of DIVERGENCES.md says that Espalier accepts the value)"), theirs, ""
	}
	return nil, theirs, ""
}

// scatter is what the reference has said about one input in several tries. Where rules iterate over maps at many places,
// the reference does not give the same errors twice, and none of its answers may be ours as a whole.
type scatter struct {
	tries int
	seen  map[string]int // errors, and warnings, to the number of tries that had them
}

func (s *scatter) add(v *oracle.Validation) {
	if s.seen == nil {
		s.seen = map[string]int{}
	}
	s.tries++
	for e := range lines(v) {
		s.seen[e]++
	}
}

// allow reports whether an answer has nothing that the reference never says, and lacks nothing that it always says.
// A reference that always says the same allows nothing else.
func (s *scatter) allow(v *oracle.Validation) bool {
	if v.Undecodable != nil || v.Panic != nil {
		return false
	}
	ours, unstable := lines(v), false
	for e := range ours {
		if s.seen[e] == 0 {
			return false
		}
	}
	for e, n := range s.seen {
		unstable = unstable || n < s.tries
		if n == s.tries && !ours[e] {
			return false
		}
	}
	return unstable
}

// lines are the errors and warnings of a validation.
func lines(v *oracle.Validation) map[string]bool {
	set := make(map[string]bool, len(v.Errors)+len(v.Warnings))
	for _, e := range v.Errors {
		set[e] = true
	}
	for _, w := range v.Warnings {
		set["warning: "+w] = true
	}
	return set
}

// stable is how often the reference must give its errors in the same order to be taken at its word. A walk over a Go map
// begins at random: two neighbours among a hundred properties change places in one run of a hundred.
const stable = 5000

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

// versioned marks the differences that CostsAt finds.
const versioned = "rules-version"

// CostsAt compares what rules may cost, and which do not compile, in another compatibility version.
func CostsAt(schema []byte, compatibility string) *Difference {
	theirs, theirErrors, err := oracle.CostsAt(schema, compatibility)
	if err != nil {
		if errors.Is(err, oracle.ErrCrashed) && !describedCrash(err.Error()) {
			return &Difference{What: versioned, Schema: schema, At: compatibility, Ours: "does not crash", Theirs: err.Error()}
		}
		return nil // no schema at all
	}
	d := &Difference{What: versioned, Schema: schema, At: compatibility}
	ours, ourErrors, err := engine.CostsAt(schema, compatibility)
	switch {
	case err != nil:
		d.Ours, d.Theirs = err.Error(), fmt.Sprintf("%d expressions", len(theirs))
	case slices.Equal(ours, theirs) && slices.Equal(ourErrors, theirErrors):
		return nil
	default:
		a, b := slices.Concat(texts(ours), ourErrors), slices.Concat(texts(theirs), theirErrors)
		d.Ours, d.Theirs = minus(a, b), minus(b, a)
	}
	return d
}

func texts(costs []oracle.Cost) []string {
	list := make([]string, len(costs))
	for i, c := range costs {
		list[i] = c.String()
	}
	return list
}
