package compare

import (
	"fmt"
	"sync/atomic"

	"github.com/espalier-dev/espalier/conformance/coverage"
	"github.com/espalier-dev/espalier/conformance/history"
	"github.com/espalier-dev/espalier/conformance/oracle"
)

// HistoryCounts is what has been compared of histories of CRDs.
type HistoryCounts struct {
	Histories, Steps, Passed, Halted atomic.Int64 // steps that the reference accepts and refuses
	Outcomes                         *coverage.Table
}

const (
	accepted = "accepted"
	warned   = "accepted with warnings"
	refused  = "refused"
)

// newHistoryCounts counts steps with one change by the change and by what came of it.
func newHistoryCounts() *HistoryCounts {
	t := coverage.New("change of a CRD × outcome", history.Changes(), []string{accepted, warned, refused})
	for _, c := range history.Changes() {
		if !history.Warns(c) {
			t.Impossible(c, warned, "the change brings neither a format nor a list that servers warn of")
		}
	}
	return &HistoryCounts{Outcomes: t}
}

// String is a part of a line of progress.
func (c *HistoryCounts) String() string {
	return fmt.Sprintf("histories of CRDs %d, steps %d (accepted %d, refused %d)", c.Histories.Load(), c.Steps.Load(), c.Passed.Load(), c.Halted.Load())
}

// histories compares CRDs over their lives.
func (r *runner) histories(m *history.Maker, round uint64) {
	r.each(r.cfg.Histories, func(i int) {
		seed := r.cfg.Seed + round*uint64(r.cfg.Histories) + uint64(i)
		r.history(m, seed)
		r.counts.Histories.Add(1)
	})
}

// history compares one life: every step is an update of the state that the reference has stored last.
func (r *runner) history(m *history.Maker, seed uint64) {
	begin := m.Begin(seed)
	origin := fmt.Sprintf("history %d of %s", seed, begin.Base)
	state := begin.CRD
	if !begin.Stored {
		if state, _ = r.step(begin.CRD, nil, origin); state == nil {
			return
		}
	}
	for step := 0; step < begin.Steps && r.ctx.Err() == nil; step++ {
		doc, changes := m.Step(seed, step, state)
		origin := fmt.Sprintf("%s, step %d %v", origin, step, changes)
		if len(changes) == 1 && changes[0] == "stored versions" {
			// Only a write of the status changes them, which validates the status alone; a CRD with the new ones is the
			// next state. Verbatim it is compared as an update.
			if d, theirs := CRD(doc, oracle.CRDOptions{Old: state, Verbatim: true}); d != nil {
				r.differ(d, origin)
			} else if r.outcome(changes, theirs) {
				state = doc
			}
			continue
		}
		next, theirs := r.step(doc, state, origin)
		if theirs == nil {
			continue
		}
		if r.outcome(changes, *theirs) && next != nil {
			state = next
			if step == 1 || step == 4 {
				state = history.Establish(state)
			}
		}
	}
}

// outcome counts what became of a step, and reports whether it was accepted.
func (r *runner) outcome(changes []string, theirs oracle.CRDResult) bool {
	c := r.counts.HistoryCounts
	c.Steps.Add(1)
	as := accepted
	switch {
	case theirs.Panic != nil || theirs.Undecodable != nil:
		return false
	case len(theirs.Errors) > 0:
		as = refused
		c.Halted.Add(1)
	case len(theirs.Warnings) > 0:
		as = warned
		fallthrough
	default:
		c.Passed.Add(1)
	}
	if len(changes) == 1 {
		c.Outcomes.Count(changes[0], as)
	}
	return as != refused
}

// step compares a CRD that takes the place of another, as a request and verbatim. It returns what is stored if the
// reference accepts it, and what the reference says about it as a request.
func (r *runner) step(doc, old []byte, origin string) ([]byte, *oracle.CRDResult) {
	d, _ := CRD(doc, oracle.CRDOptions{Old: old, Verbatim: true})
	if d != nil {
		r.differ(d, origin)
	}
	d, theirs := CRD(doc, oracle.CRDOptions{Old: old})
	if d != nil {
		r.differ(d, origin)
		return nil, nil
	}
	if theirs.Panic != nil || theirs.Undecodable != nil || len(theirs.Errors) > 0 {
		return nil, &theirs
	}
	next, err := oracle.StoreCRD(doc, old)
	if err != nil {
		return nil, &theirs
	}
	if d, _ := CRD(next, oracle.CRDOptions{Old: next, Verbatim: true}); d != nil {
		r.differ(d, origin+", stored")
	}
	return next, &theirs
}
