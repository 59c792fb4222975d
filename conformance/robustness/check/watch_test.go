package check

import (
	"slices"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/conformance/robustness/history"
)

// drop removes an event of a session.
func drop(h *history.History, session, event int) {
	s := &h.Sessions[session]
	s.Events = slices.Delete(slices.Clone(s.Events), event, event+1)
}

// event returns the index of the event of a revision.
func event(h *history.History, session int, revision int64) int {
	return slices.IndexFunc(h.Sessions[session].Events, func(e history.Event) bool { return e.Revision == revision && e.Type != "BOOKMARK" })
}

func TestWatch(t *testing.T) {
	all := func(revision int64, change func(e *history.Event)) func(h *history.History) {
		return func(h *history.History) { change(&h.Sessions[watchAll].Events[event(h, watchAll, revision)]) }
	}
	spoil(t, []spoiling{
		{"ADDED is lost", func(h *history.History) { drop(h, watchAll, event(h, watchAll, 16)) }, "watch/lost"},
		{"MODIFIED is lost", func(h *history.History) { drop(h, watchAll, event(h, watchAll, 13)) }, "watch/lost"},
		{"DELETED is lost", func(h *history.History) { drop(h, watchAll, event(h, watchAll, 23)) }, "watch/lost"},
		{"the last event before a bookmark is lost", func(h *history.History) { drop(h, watchAll, event(h, watchAll, 28)) }, "watch/lost"},
		{"the first event after a resumption is lost", func(h *history.History) { drop(h, watchResumed, 0) }, "watch/lost"},
		{"a resumed watch begins too late", func(h *history.History) { h.Sessions[watchResumed].From = 16 }, "watch/lost"},
		{"an event comes twice", func(h *history.History) {
			s := &h.Sessions[watchAll]
			s.Events = slices.Insert(slices.Clone(s.Events), 4, s.Events[2])
			s.Events[4].At = s.Events[3].At
		}, "watch/unique"},
		{"two events change places", func(h *history.History) {
			s := &h.Sessions[watchAll]
			s.Events[5].Item, s.Events[6].Item = s.Events[6].Item, s.Events[5].Item
		}, "watch/lost watch/order"},
		{"an event comes after its bookmark", func(h *history.History) {
			s := &h.Sessions[watchAll]
			mark := slices.IndexFunc(s.Events, func(e history.Event) bool { return e.Type == "BOOKMARK" })
			s.Events[mark], s.Events[mark-1] = s.Events[mark-1], s.Events[mark]
			s.Events[mark].At, s.Events[mark-1].At = s.Events[mark-1].At, s.Events[mark].At
		}, "watch/bookmark watch/lost"},
		{"a bookmark is ahead of events that follow", func(h *history.History) {
			s := &h.Sessions[watchAll]
			mark := slices.IndexFunc(s.Events, func(e history.Event) bool { return e.Type == "BOOKMARK" })
			s.Events[mark].Revision = 20
			s.Events[mark].At = 41.1e6
		}, "watch/bookmark watch/lost"},
		{"a bookmark goes back", func(h *history.History) {
			s := &h.Sessions[watchAll]
			s.Events[len(s.Events)-1].Revision = 20
		}, "watch/bookmark"},
		{"ADDED for what was there", all(14, func(e *history.Event) { e.Type = "ADDED" }), "watch/type"},
		{"MODIFIED for what is new", all(16, func(e *history.Event) { e.Type = "MODIFIED" }), "watch/type"},
		{"MODIFIED for what leaves the selector", func(h *history.History) {
			h.Sessions[watchRed].Events[event(h, watchRed, 15)].Type = "MODIFIED"
		}, "watch/type"},
		{"DELETED on leaving the selector is lost", func(h *history.History) {
			drop(h, watchRed, event(h, watchRed, 15))
			s := &h.Sessions[watchRed]
			s.Events = append(s.Events, history.Event{Type: "BOOKMARK", At: 96e6, Item: history.Item{Revision: 28}})
		}, "watch/lost"},
		{"an event that the selector does not select", func(h *history.History) {
			s := &h.Sessions[watchRed]
			s.Events = append(slices.Clone(s.Events), h.Sessions[watchAll].Events[event(h, watchAll, 28)])
		}, "watch/filter"},
		{"an event of something that is not in etcd", all(16, func(e *history.Event) { e.Name = "ns/nobody" }), "watch/invented watch/lost"},
		{"DELETED carries the revision before the deletion", all(23, func(e *history.Event) { e.Revision = 14 }), "watch/deleted watch/lost"},
		{"DELETED carries a revision of nothing", func(h *history.History) {
			h.Sessions[watchAll].Events[event(h, watchAll, 22)].Revision = 26
			h.Sessions[watchAll].Events = h.Sessions[watchAll].Events[:13]
			h.Sessions[watchAll].Events[12].At = 97e6
		}, "watch/deleted"},
		{"an event shows another log", all(28, func(e *history.Event) { e.Log = e.Log[:2] }), "watch/bytes"},
		{"an event shows another UID", all(24, func(e *history.Event) { e.UID = "uid-ns-a-11" }), "watch/bytes"},
		{"DELETED shows an older state", all(23, func(e *history.Event) { e.Marks = nil }), "watch/bytes"},
		{"an event comes before it was written", all(24, func(e *history.Event) { e.At = 40e6 }), "watch/future watch/lost"},
		{"an initial event is missing", func(h *history.History) { drop(h, watchInitial, 1) }, "watch/initial"},
		{"an initial event is stale", func(h *history.History) {
			s := &h.Sessions[watchInitial]
			s.Events[1].Item = h.Operations[opCreateB].Got
		}, "watch/initial"},
		{"an initial event is of what was deleted", func(h *history.History) {
			s := &h.Sessions[watchInitial]
			s.Events = slices.Insert(slices.Clone(s.Events), 0, history.Event{Type: "ADDED", At: s.Events[0].At, Item: h.Operations[opCreateOwner].Got})
		}, "watch/initial"},
		{"initial events are older than asked for", func(h *history.History) { h.Sessions[watchInitial].From = 22 }, "watch/initial"},
		{"initial events end twice", func(h *history.History) {
			s := &h.Sessions[watchInitial]
			s.Events = append(slices.Clone(s.Events), history.Event{Type: "BOOKMARK", InitialEnd: true, At: 96e6, Item: history.Item{Revision: 28}})
		}, "watch/initial"},
		{"a bookmark before the end of initial events", func(h *history.History) {
			s := &h.Sessions[watchInitial]
			s.Events[3].InitialEnd = false
		}, "watch/initial"},
		{"a watch without revision does not begin with the state", func(h *history.History) { drop(h, watchName, 0) }, "watch/lost"},
		{"a watch goes silent", func(h *history.History) {
			s := &h.Sessions[watchAll]
			s.Events, s.End = s.Events[:12], s.End+int64(time.Minute)
		}, "watch/silent"},
	})
}

// TestWatchAllows has histories that look wrong and are not.
func TestWatchAllows(t *testing.T) {
	spoil(t, []spoiling{
		{"a watch ends early", func(h *history.History) {
			for i := range h.Sessions {
				h.Sessions[i].Events = h.Sessions[i].Events[:len(h.Sessions[i].Events)/2]
			}
		}, ""},
		{"a watch is silent because of a fault", func(h *history.History) {
			s := &h.Sessions[watchAll]
			s.Events, s.End = s.Events[:12], s.End+int64(time.Minute)
			h.Faults = []history.Fault{{Name: "cut", Begin: 50e6, End: s.End - int64(time.Second)}}
		}, ""},
		{"a selector that cannot be evaluated", func(h *history.History) {
			h.Sessions[watchRed].Selector = "spec.color in red"
			h.Sessions[watchRed].Events = h.Sessions[watchRed].Events[:1]
		}, ""},
		{"initial events end behind the state, with changes before", func(h *history.History) {
			s := &h.Sessions[watchInitial]
			end := s.Events[3]
			s.Events = slices.Delete(slices.Clone(s.Events), 3, 4)
			s.Events = slices.Insert(s.Events, 5, end)
			s.Events[5].Revision, s.Events[5].At = 23, s.Events[4].At
		}, ""},
		{"changes of one transaction come in any order", func(h *history.History) {
			sparse(h)
			for _, revision := range []int64{18, 19} {
				h.Writes[at(h, revision)].Revision = 18
			}
			h.Sessions = base().Sessions[:1]
			s := &h.Sessions[0]
			s.Events[8].Revision = 18
			s.Events[7], s.Events[8] = s.Events[8], s.Events[7]
		}, ""},
	})
}
