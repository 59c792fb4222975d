package check

import (
	"slices"

	"github.com/espalier-dev/espalier/conformance/robustness/history"
)

// truncate removes the end of the log. Whether an owner goes later decides whether the
// garbage collector was wrong, and how a CRD goes is decided by what follows: there the
// end stays.
func (m *minimiser) truncate() {
	h := m.best
	if m.checker == Garbage || len(h.Writes) == 0 || slices.ContainsFunc(h.Acks, func(a history.Ack) bool { return a.Deleted }) {
		return
	}
	ix := newIndex(h)
	low, high := 0, len(ix.log)-1
	for low < high && !m.late() {
		middle := (low + high) / 2
		if m.try(until(ix, h.Writes[ix.log[middle]].Revision)) {
			high = middle
		} else {
			low = middle + 1
		}
	}
}

// until is a history as it would be if no client had been told anything of what came behind
// a revision.
func until(ix *index, revision int64) *history.History {
	h := ix.h
	out := *h
	out.Caches = nil
	out.Writes = filter(h.Writes, func(w *history.Write) bool { return w.Revision <= revision })
	out.Operations = nil
	for i := range h.Operations {
		o := h.Operations[i]
		w, written := ix.writeOf(&o)
		_, to := ix.window(&o)
		later := o.Got.Revision > revision || o.ListRevision > revision || slices.Max(append(slices.Clip(o.PageRevisions), 0)) > revision
		switch {
		case o.Verb == history.Delete || o.Verb == history.DeleteCollection:
			later = later || to > revision
		case o.Write() && o.Outcome == history.Done:
			later = later || written && h.Writes[w].Revision > revision || !written && to > revision
		case o.Outcome == history.Refused:
			later = later || to > revision
		}
		if later && (!o.Write() || o.Outcome == history.Refused) {
			continue
		}
		if later && o.Outcome == history.Done {
			o.Outcome, o.Got, o.Code = history.Unknown, history.Item{}, 0
		}
		out.Operations = append(out.Operations, o)
	}
	out.Sessions = slices.Clone(h.Sessions)
	for i := range out.Sessions {
		s := &out.Sessions[i]
		if end := slices.IndexFunc(s.Events, func(e history.Event) bool { return e.Revision > revision }); end >= 0 {
			s.Events = s.Events[:end]
		}
	}
	return &out
}
