package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/espalier-dev/espalier/crd/conversion/trial"
	"github.com/espalier-dev/espalier/crd/sample"
	"github.com/espalier-dev/espalier/internal/jsondoc"
)

// maxViolations is how many violations are shown of a CRD.
const maxViolations = 3

// fuzzRules tests the rules of CRDs with random objects.
func (a *App) fuzzRules(ctx context.Context, files []string, o convertOptions) error {
	if o.objects < 1 {
		return errors.New("--objects must be at least 1")
	}
	s, err := a.settings()
	if err != nil {
		return err
	}
	all, err := a.resources(ctx, append(slices.Clone(o.crds), files...), nil, s)
	if err != nil {
		return err
	}
	var ruled []*resource
	for _, r := range all {
		if hasRules(r.crd) {
			ruled = append(ruled, r)
		}
	}
	if len(ruled) == 0 {
		return fmt.Errorf("no CRD has conversion rules: write them into the annotation %s; '%s convert --infer' proposes some", annotationRules, a.Name)
	}
	slices.SortFunc(ruled, func(x, y *resource) int { return strings.Compare(x.crd.Name, y.crd.Name) })
	failed := false
	for _, r := range ruled {
		bad, err := a.fuzzCRD(ctx, r, o, len(ruled))
		if err != nil {
			return err
		}
		failed = failed || bad
	}
	if failed {
		return errFindings
	}
	return nil
}

// fuzzCRD tests the rules of one CRD and prints what it finds. It reports whether that is anything.
func (a *App) fuzzCRD(ctx context.Context, r *resource, o convertOptions, share int) (bool, error) {
	c := newConverter(r)
	if c.err != nil {
		fmt.Fprintf(a.Out, "%s: %v\n", r.crd.Name, c.err)
		var fault *rulesError
		if errors.As(c.err, &fault) {
			for _, n := range fault.notes {
				fmt.Fprintf(a.Out, "  %s\n", n.Message)
			}
		}
		return true, nil
	}
	t, err := trial.New(r.crd, c.plan)
	r.crd.Release()
	if err != nil {
		return false, fmt.Errorf("%s: %w", r.crd.Name, err)
	}
	limit := time.Duration(o.minutes * float64(time.Minute) / float64(share))
	found := t.Run(ctx, trial.Options{Objects: o.objects, Seed: o.seed, Limit: limit, Violations: maxViolations})
	if err := ctx.Err(); err != nil {
		return false, err
	}
	for _, skipped := range found.Skipped {
		fmt.Fprintf(a.Out, "%s: not tested between %s\n", r.crd.Name, skipped)
	}
	for i := range found.Violations {
		a.printViolation(r, &found.Violations[i])
	}
	more := ""
	if len(found.Violations) == maxViolations {
		more = " or more"
	}
	fmt.Fprintf(a.Out, "%s: %d objects, %d conversions, %d edited objects: %d%s violations\n", r.crd.Name, found.Objects, found.Conversions, found.Edits, len(found.Violations), more)
	return len(found.Violations) > 0, nil
}

func (a *App) printViolation(r *resource, v *trial.Violation) {
	fmt.Fprintf(a.Out, "%s: violated from %s to %s: %s\n", r.crd.Name, v.From, v.To, v.Contract)
	fmt.Fprintf(a.Out, "  why: %s\n", visible(v.Detail))
	fmt.Fprintf(a.Out, "  object: %s\n", visible(string(v.Object)))
	for _, e := range v.Edits {
		fmt.Fprintf(a.Out, "  edit: %s\n", visible(editText(e)))
	}
	for _, s := range v.Steps {
		fmt.Fprintf(a.Out, "  %s: %s\n", s.Name, visible(string(s.Object)))
	}
}

// editText describes an edit.
func editText(e sample.Edit) string {
	var b strings.Builder
	for _, step := range e.Path {
		fmt.Fprintf(&b, "/%v", step)
	}
	text := fmt.Sprintf("%s %s", e.Op, b.String())
	if e.Op == sample.Set || e.Op == sample.Insert {
		if value, err := jsondoc.AppendAny(nil, e.Value); err == nil {
			text += " " + string(value)
		}
	}
	return text
}
