package trial_test

import (
	"flag"
	"os"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/espalier-dev/espalier/crd"
	"github.com/espalier-dev/espalier/crd/conversion"
	"github.com/espalier-dev/espalier/crd/conversion/trial"
)

var objects = flag.Int("objects", 500, "objects of each version")

func widgets(t *testing.T) *crd.CRD {
	t.Helper()
	text, err := os.ReadFile("testdata/widgets.yaml")
	if err != nil {
		t.Fatal(err)
	}
	data, err := yaml.YAMLToJSON(text)
	if err != nil {
		t.Fatal(err)
	}
	d, err := crd.Parse(data)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestAllKindsOfRulesKeepTheContract(t *testing.T) {
	d := widgets(t)
	plan, found, err := conversion.Compile(d)
	if err != nil || plan == nil {
		t.Fatal(found, err)
	}
	x, err := trial.New(d, plan)
	if err != nil {
		t.Fatal(err)
	}
	r := x.Run(t.Context(), trial.Options{Objects: *objects, Seed: 1, Violations: 5})
	for _, v := range r.Violations {
		t.Errorf("%s: from %s to %s: %s\n%s\nedits: %v", v.Contract, v.From, v.To, v.Detail, v.Object, v.Edits)
		for _, s := range v.Steps {
			t.Logf("%s:\n%s", s.Name, s.Object)
		}
	}
	if r.Objects != 2**objects || r.Edits < r.Objects/2 || r.Conversions < 5*r.Objects {
		t.Errorf("%d objects, %d edited, %d conversions", r.Objects, r.Edits, r.Conversions)
	}
}
