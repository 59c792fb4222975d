package conversion_test

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/crd"
	"github.com/espalier-dev/espalier/crd/conversion"
	"github.com/espalier-dev/espalier/crd/conversion/infer"
	"github.com/espalier-dev/espalier/crd/conversion/trial"
	"github.com/espalier-dev/espalier/crd/sample"
)

// ruleSet is a CRD with rules, and what is needed to try them.
type ruleSet struct {
	crd     *crd.CRD
	plan    *conversion.Plan
	trial   *trial.Trial
	samples map[string]*sample.Generator
}

// ruleSets are rules that are written, and those that are inferred from the same versions.
func ruleSets(t testing.TB) []ruleSet {
	t.Helper()
	all, err := os.ReadFile("trial/testdata/widgets.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var sets []ruleSet
	add := func(d *crd.CRD) {
		plan, found, err := conversion.Compile(d)
		if err != nil || plan == nil {
			t.Fatal(found, err)
		}
		s := ruleSet{crd: d, plan: plan, samples: map[string]*sample.Generator{}}
		if s.trial, err = trial.New(d, plan); err != nil {
			t.Fatal(err)
		}
		for i := range d.Versions {
			if s.samples[d.Versions[i].Name], err = sample.New(d, &d.Versions[i], sample.Options{}); err != nil {
				t.Fatal(err)
			}
		}
		sets = append(sets, s)
	}
	for _, text := range []string{string(all), widgets, keyedItemsRules()} {
		d := parse(t, text)
		add(d)
		bare := *d
		bare.Annotations = nil
		p, err := infer.Propose(nil, &bare)
		if err != nil {
			t.Fatal(err)
		}
		add(p.CRD)
	}
	return sets
}

// Conversion keeps its contract for objects of each rule set, and what a user writes into the annotation changes nothing
// of that: a conversion of such an object fails, or its result is valid, bounded, and comes back from the other version
// as it is.
func FuzzContract(f *testing.F) {
	sets := ruleSets(f)
	for i := range sets {
		for _, payload := range []string{
			``, `{}`, `[]`, `{"v1":{"spec":{}},"v1alpha1":{"spec":{}},"v2":{"l":[]}}`,
			`{"v1":{"~":{"spec.mode":{"image":[[]],"values":[["x"]]}},"l":[{"name":"a","old":"1"},{"name":"a","old":"2"}]}}`,
			`{"v1alpha1":{"spec":{"ports":[{"name":"a","legacy":"x"}],"rules":{"digest":"","value":[]},"env":[{"name":"b"},{"name":"a"}],"capacity":[null]}}}`,
			`{"v1":{"spec":[null],"metadata":{"annotations":{"a":1},"labels":[]}},"v1alpha1":{"spec":{"capacity":{"old":{"~":1}},"limits":{"cpu":{"~":{}}}}}}`,
		} {
			f.Add(uint8(i), uint64(i), payload)
		}
	}
	f.Fuzz(func(t *testing.T, n uint8, seed uint64, payload string) {
		s := &sets[int(n)%len(sets)]
		for _, v := range s.trial.Run(t.Context(), trial.Options{Objects: 1, Seed: seed, Violations: 1}).Violations {
			t.Errorf("%s: from %s to %s: %s\n%s\nedits: %v\nsteps: %s", v.Contract, v.From, v.To, v.Detail, v.Object, v.Edits, v.Steps)
		}
		for from, g := range s.samples {
			o := g.Object(rand.New(rand.NewPCG(seed, uint64(n))))
			o = sample.Apply(o, sample.Edit{Op: sample.Set, Path: []any{"metadata", "annotations"}, Value: map[string]any{conversion.Preserved: payload}}).(map[string]any)
			in, err := json.Marshal(o)
			if err != nil {
				t.Skip()
			}
			for _, to := range s.plan.Versions() {
				if to != from {
					s.stable(t, in, from, to)
				}
			}
		}
	})
}

// spare bounds what a conversion of the rule sets adds to an object: values of constants, and what is saved.
const spare = 64 << 10

// stable checks the conversion of an object with any annotation.
func (s *ruleSet) stable(t *testing.T, in []byte, from, to string) {
	t.Helper()
	steps := [][]byte{in}
	for _, version := range []string{to, from, to} {
		last := steps[len(steps)-1]
		out, err := s.plan.Convert(nil, last, version)
		if err != nil {
			if len(steps) > 1 && !strings.Contains(err.Error(), "annotations would have") {
				t.Fatalf("%v\n%s", err, bytes.Join(steps, []byte("\n")))
			}
			return
		}
		if !json.Valid(out) || len(out) > 8*len(in)+spare {
			t.Fatalf("%d bytes became %d: %s\n%s", len(last), len(out), last, out)
		}
		steps = append(steps, out)
	}
	if !bytes.Equal(steps[1], steps[3]) {
		t.Fatalf("%s\nbecame in %s\n%s\nin %s\n%s\nand then\n%s", in, to, steps[1], from, steps[2], steps[3])
	}
}
