package specs_test

import (
	"testing"

	"github.com/espalier-dev/espalier/conformance/specs"
)

const report = `[{"SpecReports":[
{"LeafNodeType":"BeforeSuite","State":"passed"},
{"ContainerHierarchyTexts":["cache","list"],"LeafNodeType":"It","LeafNodeText":"works","State":"failed","RunTime":1000000,"Failure":{"Message":"\nexpected 1\n  to equal 2"}},
{"ContainerHierarchyTexts":["cache"],"LeafNodeType":"It","LeafNodeText":"waits","State":"pending"},
{"LeafNodeType":"It","LeafNodeText":"hangs","State":"timedout","Failure":{"Message":"A suite timeout occurred",
"ProgressReport":{"CurrentStepText":"watching"},"AdditionalFailure":{"State":"failed","Failure":{"Message":"no\nevent"}}}}]}]`

func TestParse(t *testing.T) {
	got, err := specs.Parse([]byte(report))
	if err != nil || len(got) != 3 {
		t.Fatalf("%v %v", got, err)
	}
	if s := got[0]; s.Name != "cache list works" || s.Passed() || !s.Ran() || s.Reason != "expected 1 to equal 2" || s.Took.Milliseconds() != 1 {
		t.Errorf("%+v", s)
	}
	if got[1].Ran() {
		t.Errorf("%+v", got[1])
	}
	if s := got[2]; s.State != "timedout" || s.Reason != "A suite timeout occurred: at the step: watching: no event" {
		t.Errorf("%+v", s)
	}
	if _, err := specs.Parse([]byte("{")); err == nil {
		t.Error("half a report is read")
	}
}

func TestCompare(t *testing.T) {
	of := func(states ...string) []specs.Spec {
		var list []specs.Spec
		for i := 0; i < len(states); i += 2 {
			list = append(list, specs.Spec{Name: states[i], State: states[i+1]})
		}
		return list
	}
	got := specs.Compare(
		of("a", "passed", "a", "passed", "b", "failed", "c", "passed", "d", "pending"),
		of("a", "passed", "a", "failed", "b", "passed", "d", "pending", "e", "failed"))
	if got.Total != 5 || got.There != 3 || got.Here != 2 {
		t.Errorf("%+v", got)
	}
	if len(got.Lost) != 2 || got.Lost[0].Name != "a" || got.Lost[1].Name != "c" || got.Lost[1].Reason == "" {
		t.Errorf("%+v", got.Lost)
	}
	// No report at all, because the set-up of the suite has failed.
	if got := specs.Compare(of("a", "passed"), nil); got.Total != 1 || got.There != 1 || got.Here != 0 || len(got.Lost) != 1 {
		t.Errorf("%+v", got)
	}
}
