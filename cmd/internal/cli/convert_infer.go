package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/espalier-dev/espalier/crd"
	"github.com/espalier-dev/espalier/crd/conversion/infer"
)

// inferRules proposes rules for a CRD, or for an old and a new one.
func (a *App) inferRules(ctx context.Context, files []string, o convertOptions) error {
	files = append(slices.Clone(o.crds), files...)
	if len(files) != 1 && len(files) != 2 {
		return errors.New("--infer needs a CRD with several versions, or an old and a new CRD")
	}
	s, err := a.settings()
	if err != nil {
		return err
	}
	now, err := a.oneCRD(ctx, files[len(files)-1], s)
	if err != nil {
		return err
	}
	var old *crd.CRD
	if len(files) == 2 {
		if old, err = a.oneCRD(ctx, files[0], s); err != nil {
			return err
		}
	}
	p, err := infer.Propose(old, now)
	if err != nil {
		return err
	}
	unsure, preserved := 0, 0
	for i := range p.Pairs {
		for _, r := range p.Pairs[i].Rules {
			if !r.Sure {
				unsure++
			}
		}
		for _, list := range p.Pairs[i].Preserved {
			preserved += len(list)
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "metadata:\n  annotations:\n    %s: |\n", annotationRules)
	rules := 0
	for line := range strings.Lines(p.Text()) {
		b.WriteString("      " + line)
		if strings.HasPrefix(line, "  - ") {
			rules++
		}
	}
	if _, err := fmt.Fprint(a.Out, b.String()); err != nil {
		return err
	}
	fmt.Fprintf(a.Err, "%s, %d unsure; %s preserved\n", count(rules, "rule"), unsure, count(preserved, "field"))
	return nil
}

// oneCRD reads the CRD in a file.
func (a *App) oneCRD(ctx context.Context, file string, s *settings) (*crd.CRD, error) {
	all, err := a.resources(ctx, []string{file}, nil, s)
	if err != nil {
		return nil, err
	}
	if len(all) > 1 {
		return nil, fmt.Errorf("%s has %d CRDs: give a file with one", file, len(all))
	}
	for _, r := range all {
		if fault := r.refusal(); fault != nil {
			return nil, fmt.Errorf("%s: the CRD is invalid: %s", file, fault.Message)
		}
		return r.crd, nil
	}
	return nil, fmt.Errorf("no CRD in %s", file)
}
