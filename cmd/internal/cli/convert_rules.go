package cli

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/espalier-dev/espalier/cmd/internal/report"
	"github.com/espalier-dev/espalier/crd/conversion"
	"github.com/espalier-dev/espalier/finding"
	"github.com/espalier-dev/espalier/internal/object"
)

// annotationRules is the annotation of CRDs with rules.
const annotationRules = conversion.Annotation

// converter converts objects between the versions of a CRD.
type converter struct {
	group string
	plan  *conversion.Plan // nil for the strategy None
	err   error            // why objects cannot be converted
}

// rulesError says why a CRD gives no way to convert its objects.
type rulesError struct {
	message string
	fix     string
	notes   []report.Note
}

func (e *rulesError) Error() string { return e.message }

// newConverter compiles the rules of a CRD.
func newConverter(r *resource) *converter {
	plan, found, err := conversion.Compile(r.crd)
	r.crd.Release()
	c := &converter{group: r.crd.Group, plan: plan}
	switch {
	case err != nil:
		c.err = err
	case len(found) > 0:
		c.err = &rulesError{message: fmt.Sprintf("the conversion rules of %s are wrong", r.crd.Name), fix: "correct the rules; 'espalier check' lists all that is wrong", notes: ruleNotes(r, found)}
	case plan == nil && r.crd.Conversion.Strategy == "Webhook":
		c.err = &rulesError{
			message: fmt.Sprintf("%s is converted by a webhook, and has no rules in the annotation %s", r.crd.Name, conversion.Annotation),
			fix:     "write rules that do what the webhook does: 'espalier convert --infer' proposes some",
		}
	}
	return c
}

// ruleNotes shows the first things that are wrong with rules.
func ruleNotes(r *resource, found []finding.Finding) []report.Note {
	var notes []report.Note
	for _, f := range found[:min(len(found), 5)] {
		text := f.Detail
		if f.Fix != "" {
			text += ": add " + f.Fix
		}
		notes = append(notes, report.Note{Message: text, Place: report.At(r.document.File, r.document.Of(f.Offset))})
	}
	return notes
}

// version returns an object in another version, as conversion makes it.
func (c *converter) version(data []byte, version string) ([]byte, error) {
	if c.plan != nil {
		return c.plan.Convert(nil, data, version)
	}
	o, err := object.FromJSON(data)
	if err != nil {
		return nil, err
	}
	o.SetGroupVersionKind(schema.GroupVersionKind{Group: c.group, Version: version, Kind: o.Kind()})
	return o.JSON(), nil
}
