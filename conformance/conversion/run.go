package conversion

import (
	"context"
	"fmt"
	"strings"

	"github.com/espalier-dev/espalier/crd/conversion"
	"github.com/espalier-dev/espalier/crd/conversion/trial"
	"github.com/espalier-dev/espalier/internal/jsondoc"
)

// Try tests a rule set with random objects of each version.
func Try(ctx context.Context, s Set, o trial.Options) (trial.Result, error) {
	plan, found, err := conversion.Compile(s.CRD)
	if err != nil {
		return trial.Result{}, err
	}
	if len(found) > 0 {
		return trial.Result{}, fmt.Errorf("%s: the rules do not compile: %s\n%s", s.Name, found[0].Error(), s.CRD.Annotations[conversion.Annotation])
	}
	t, err := trial.New(s.CRD, plan)
	if err != nil {
		return trial.Result{}, fmt.Errorf("%s: %w", s.Name, err)
	}
	return t.Run(ctx, o), nil
}

// Explain describes a violation.
func Explain(s Set, v *trial.Violation) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: violated from %s to %s: %s: %s\n  object: %s\n", s.Name, v.From, v.To, v.Contract, v.Detail, v.Object)
	for _, e := range v.Edits {
		value, _ := jsondoc.AppendAny(nil, e.Value)
		fmt.Fprintf(&b, "  edit: %s %v %s\n", e.Op, e.Path, value)
	}
	for _, step := range v.Steps {
		fmt.Fprintf(&b, "  %s: %s\n", step.Name, step.Object)
	}
	return b.String()
}
