package robustness_test

import (
	"context"
	"os"
	"testing"

	"github.com/espalier-dev/espalier/conformance/launch"
	"github.com/espalier-dev/espalier/conformance/robustness"
)

// The directed cases that take seconds are regression tests. The others need a lease to end, or minutes: `robustness -directed all`.
func TestDirected(t *testing.T) {
	for _, members := range []int{1, 3} {
		var cases []robustness.Case
		for _, c := range robustness.Cases {
			if c.Quick && c.Members == members {
				cases = append(cases, c)
			}
		}
		direct(t, members, cases)
	}
}

func direct(t *testing.T, members int, cases []robustness.Case) {
	t.Helper()
	runner := newRunner(t, members)
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) {
			result, err := runner.Direct(t.Context(), c)
			if err != nil {
				t.Fatal(err)
			}
			if len(result.History.Operations) == 0 {
				t.Error("nothing was recorded")
			}
			for _, v := range result.Violations {
				t.Errorf("%s: %s", v.Checker, v.Message)
			}
			if t.Failed() {
				for _, note := range result.Notes {
					t.Log(note)
				}
			}
		})
	}
}

func newRunner(t *testing.T, members int) *robustness.Runner {
	t.Helper()
	binary, err := launch.Build(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	runner, err := robustness.New(context.WithoutCancel(t.Context()), robustness.Options{Members: members, Replicas: 3, Binary: binary, Log: os.Stderr})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(runner.Close)
	return runner
}

// A run on one member and its checks: one that has faults, and the same seed again, which has the same.
func TestRun(t *testing.T) {
	runner := newRunner(t, 1)
	var schedules []string
	for range 2 {
		result, err := runner.Run(t.Context(), 4711)
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range result.Violations {
			t.Errorf("%s: %s", v.Checker, v.Message)
		}
		h := result.History
		if h == nil || len(h.Operations) < 50 || len(h.Writes) < 10 || len(h.Sessions) < 9 || len(h.Caches) != 3 || len(h.Faults) == 0 {
			t.Fatal("the record is not complete")
		}
		text := ""
		for _, s := range result.Steps {
			text += s.String() + "; "
		}
		schedules = append(schedules, text)
	}
	if schedules[0] != schedules[1] {
		t.Errorf("one seed, two schedules:\n%s\n%s", schedules[0], schedules[1])
	}
}
