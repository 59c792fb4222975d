package load

import (
	"fmt"
	"sync"
	"time"

	"github.com/espalier-dev/espalier/conformance/robustness/history"
)

// A Finding is something that must not be, seen by the load itself.
type Finding struct{ Checker, Message string }

// record collects what happens in a run.
type record struct {
	begin    time.Time
	mu       sync.Mutex
	h        *history.History
	sessions []*history.Session
	findings []Finding
}

func newRecord(seed uint64) *record {
	return &record{begin: time.Now(), h: &history.History{Seed: seed}}
}

// now is the time of the run.
func (r *record) now() int64 { return int64(time.Since(r.begin)) }

func (r *record) add(o *history.Operation) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.h.Operations = append(r.h.Operations, *o)
}

// with changes the record.
func (r *record) with(f func(*history.History)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f(r.h)
}

// session begins the record of a watch.
func (r *record) session(s *history.Session) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s.Call = r.now()
	r.sessions = append(r.sessions, s)
}

func (r *record) find(checker, format string, a ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.findings = append(r.findings, Finding{checker, fmt.Sprintf(format, a...)})
}
