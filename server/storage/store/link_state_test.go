package store

import (
	"testing"
	"time"
)

// Which links are held is decided by what is known of all of them.
func TestHold(t *testing.T) {
	t.Parallel()
	const ms = time.Millisecond
	good := state{answered: true, took: ms, inARow: 9, led: time.Hour}
	waits := func(d time.Duration) state { s := good; s.waiting = d; return s }
	slow := func(took, waiting time.Duration) state { s := good; s.took, s.waiting = took, waiting; return s }
	adrift := func(d time.Duration) state { s := good; s.adrift, s.led = d, 0; return s }
	fresh := func(led time.Duration) state { s := good; s.led = led; return s }
	held := func(s state, inARow int) state { s.held, s.inARow = true, inARow; return s }
	for name, c := range map[string]struct {
		links []state
		held  []bool
	}{
		"all answer":                       {[]state{good, good, good}, []bool{false, false, false}},
		"one is silent for a moment":       {[]state{waits(1900 * ms), good, good}, []bool{false, false, false}},
		"one is silent":                    {[]state{waits(2 * time.Second), good, good}, []bool{true, false, false}},
		"two are silent":                   {[]state{waits(2 * time.Second), waits(9 * time.Second), good}, []bool{true, true, false}},
		"the only one is silent":           {[]state{waits(time.Hour)}, []bool{false}},
		"all are silent":                   {[]state{waits(2 * time.Second), waits(3 * time.Second), waits(4 * time.Second)}, []bool{false, false, false}},
		"a cut of all, noticed in turn":    {[]state{waits(2 * time.Second), waits(1001 * ms), waits(1500 * ms)}, []bool{false, false, false}},
		"all are slow, one more so":        {[]state{slow(3*time.Second, 3*time.Second), slow(time.Second, 0), slow(900*ms, 500*ms)}, []bool{false, false, false}},
		"slow as always":                   {[]state{slow(3*time.Second, 5*time.Second), good, good}, []bool{false, false, false}},
		"one is slow, much more so":        {[]state{slow(3*time.Second, 6*time.Second), slow(time.Second, 0), slow(900*ms, 500*ms)}, []bool{true, false, false}},
		"the other has never answered":     {[]state{waits(5 * time.Second), {}}, []bool{false, false}},
		"one has never answered":           {[]state{{waiting: 5 * time.Second}, good}, []bool{true, false}},
		"one has no leader for a moment":   {[]state{adrift(ms), good, good}, []bool{false, false, false}},
		"one has no leader":                {[]state{adrift(2 * time.Second), good, good}, []bool{true, false, false}},
		"two know of the new leader":       {[]state{adrift(9 * time.Second), fresh(ms), fresh(time.Second)}, []bool{false, false, false}},
		"none has a leader":                {[]state{adrift(9 * time.Second), adrift(9 * time.Second), adrift(9 * time.Second)}, []bool{false, false, false}},
		"one has none, others are silent":  {[]state{adrift(9 * time.Second), waits(9 * time.Second), waits(9 * time.Second)}, []bool{false, true, true}},
		"held, and still silent":           {[]state{held(waits(time.Minute), 0), good, good}, []bool{true, false, false}},
		"held, and has answered":           {[]state{held(good, 1), good, good}, []bool{true, false, false}},
		"held, and has answered again":     {[]state{held(good, 2), good, good}, []bool{false, false, false}},
		"held, answers without leader":     {[]state{held(adrift(time.Second), 2), good, good}, []bool{true, false, false}},
		"held, and no other answers":       {[]state{held(waits(time.Minute), 0), waits(2 * time.Second), waits(3 * time.Second)}, []bool{false, false, false}},
		"held, and the others are slow":    {[]state{held(waits(time.Minute), 0), slow(time.Second, 1900*ms), slow(time.Second, 0)}, []bool{true, false, false}},
		"both held, and one answers again": {[]state{held(waits(time.Minute), 0), held(good, 2), waits(time.Minute)}, []bool{true, false, true}},
	} {
		all := make([]*state, len(c.links))
		for i := range c.links {
			all[i] = &c.links[i]
		}
		// Twice: what is decided about one may decide about another.
		review(all)
		review(all)
		for i, s := range all {
			if s.held != c.held[i] {
				t.Errorf("%s: link %d is held: %v", name, i, s.held)
			}
		}
	}
}

// Time in which this process did not run is not silence of etcd.
func TestAsleep(t *testing.T) {
	t.Parallel()
	for elapsed, want := range map[time.Duration]time.Duration{
		probeTick:               probeTick,
		probeTick + probeTick/2: probeTick + probeTick/2,
		time.Hour:               2 * probeTick,
	} {
		if got := ran(elapsed, probeTick); got != want {
			t.Errorf("of %v it ran %v, not %v", elapsed, got, want)
		}
	}
}
