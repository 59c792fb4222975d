package fault

import (
	"reflect"
	"testing"

	"github.com/espalier-dev/espalier/conformance/robustness/environment"
)

// A seed decides the schedule, another seed decides otherwise, and by chance every fault has its turn.
func TestSchedule(t *testing.T) {
	w := &environment.Environment{Options: environment.Options{Disk: 1}, Members: make([]*environment.Member, 3), Replicas: make([]*environment.Replica, 3)}
	s := &Scene{Environment: w, Other: "other", Skewed: "skewed"}
	seen := map[string]int{}
	different := 0
	for seed := range uint64(3000) {
		a, b := Schedule(seed, s, nil), Schedule(seed, s, nil)
		if !reflect.DeepEqual(a, b) {
			t.Fatalf("seed %d: %v and %v", seed, a, b)
		}
		if !reflect.DeepEqual(a, Schedule(seed+1, s, nil)) {
			different++
		}
		for _, step := range a {
			seen[step.Fault]++
			if find(step.Fault).alone && len(a) > 1 {
				t.Errorf("seed %d: %v", seed, a)
			}
		}
	}
	if different < 2900 {
		t.Errorf("only %d of 3000 schedules differ from the next", different)
	}
	for _, name := range Names(s) {
		if seen[name] == 0 {
			t.Errorf("the fault %s never comes", name)
		}
	}
	if len(Names(s)) != len(kinds) {
		t.Errorf("an environment with everything has %d of %d faults", len(Names(s)), len(kinds))
	}
}

// Kine has none of the faults that need etcd itself, whatever else an environment has, and all others come by chance.
func TestKine(t *testing.T) {
	w := &environment.Environment{Options: environment.Options{Disk: 1, Engine: environment.SQLite}, Members: make([]*environment.Member, 1), Replicas: make([]*environment.Replica, 3)}
	s := &Scene{Environment: w, Other: "other", Skewed: "skewed"}
	seen := map[string]int{}
	for seed := range uint64(3000) {
		for _, step := range Schedule(seed, s, nil) {
			seen[step.Fault]++
		}
	}
	for _, name := range []string{"defragment", "full", "disk", "move-leader", "replace-member", "kill-leader", "isolate", "cut-one"} {
		if seen[name] > 0 {
			t.Errorf("kine has the fault %s", name)
		}
	}
	for _, name := range []string{"kill-etcd", "stop-etcd", "cut", "lose-answers", "compact", "kill-replica", "webhook-broken", "upgrade"} {
		if seen[name] == 0 {
			t.Errorf("kine never has the fault %s", name)
		}
	}
}

// Names restrict a schedule; unknown ones are refused.
func TestNames(t *testing.T) {
	w := &environment.Environment{Members: make([]*environment.Member, 1), Replicas: make([]*environment.Replica, 3)}
	s := &Scene{Environment: w}
	for _, name := range Names(s) {
		if k := find(name); k.needs != nil && !k.needs(s) {
			t.Errorf("an environment of one member has %s", name)
		}
	}
	for seed := range uint64(50) {
		for _, step := range Schedule(seed, s, []string{"cut"}) {
			if step.Fault != "cut" {
				t.Errorf("seed %d has %s", seed, step.Fault)
			}
		}
	}
	if err := Known([]string{"cut", "flood"}); err == nil {
		t.Error("there is no fault flood")
	}
}
