package conversion

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"github.com/espalier-dev/espalier/conformance/corpus"
	"github.com/espalier-dev/espalier/crd"
	"github.com/espalier-dev/espalier/crd/conversion/infer"
)

// Set is a CRD with rules.
type Set struct {
	Name  string
	CRD   *crd.CRD
	Real  bool
	Rules int
}

// Real returns rule sets for the CRDs of the corpus that have versions with different schemas: one for each name, that
// with the most versions. Those around the schemas of this repository are there, too, but not real. Skipped says which have none, and why.
func Real(ctx context.Context) (sets []Set, skipped []string, err error) {
	all, err := corpus.Load(ctx, corpus.Options{NoModules: true, Seeds: true})
	if err != nil {
		return nil, nil, err
	}
	best, ours := map[string]*crd.CRD{}, map[string]bool{}
	for _, c := range all.CRDs {
		d, err := crd.Parse(c.JSON)
		if err != nil || !differ(d) {
			continue
		}
		if before := best[d.Name]; before == nil || len(before.Versions) < len(d.Versions) {
			best[d.Name], ours[d.Name] = d, c.Source == corpus.SeedSource
		}
	}
	names := make([]string, 0, len(best))
	for name := range best {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		p, err := infer.Propose(nil, best[name])
		if err != nil {
			skipped = append(skipped, fmt.Sprintf("%s: %v", name, err))
			continue
		}
		n := 0
		for i := range p.Pairs {
			n += len(p.Pairs[i].Rules)
		}
		sets = append(sets, Set{Name: name, CRD: p.CRD, Real: !ours[name], Rules: n})
	}
	return sets, skipped, nil
}

// differ reports whether a CRD has versions with different schemas.
func differ(d *crd.CRD) bool {
	for i := range d.Versions {
		if len(d.Versions[i].Schema) == 0 {
			return false
		}
	}
	return len(d.Versions) > 1 && slices.ContainsFunc(d.Versions[1:], func(v crd.Version) bool { return !bytes.Equal(v.Schema, d.Versions[0].Schema) })
}

// Made returns a rule set that is made from a seed.
func Made(seed uint64) (Set, error) {
	m := newMaker(seed)
	text := m.crd()
	d, err := crd.Parse([]byte(text))
	if err != nil {
		return Set{}, fmt.Errorf("seed %d: %w\n%s", seed, err, text)
	}
	return Set{Name: fmt.Sprintf("made-%d", seed), CRD: d, Rules: len(m.rules)}, nil
}
