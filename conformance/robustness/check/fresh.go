package check

import (
	"slices"

	"github.com/espalier-dev/espalier/conformance/robustness/history"
)

// checkFresh asks of each consistent read whether it is as new as every write that was
// acknowledged before its call, by any client on any replica, and of each read with a
// minimum whether it is as new as that. A consistent watch-list is such a read.
func checkFresh(ix *index, r *report) {
	if len(ix.h.Writes) == 0 {
		return
	}
	for i := range ix.h.Operations {
		o := &ix.h.Operations[i]
		if o.Verb != history.Get && o.Verb != history.List {
			continue
		}
		switch m := parseMode(o.Mode); m.kind {
		case "":
			stale(ix, r, i, ix.acked.before(o.Call), "was acknowledged before its call")
		case "min":
			if o.Verb == history.Get {
				stale(ix, r, i, m.revision, "was asked for")
			}
		}
	}
	for i := range ix.h.Sessions {
		if s := &ix.h.Sessions[i]; s.Initial && s.Consistent {
			staleInitial(ix, r, i)
		}
	}
}

// staleInitial reports a consistent watch-list whose initial events end before a write
// that was acknowledged before it was called.
func staleInitial(ix *index, r *report, i int) {
	s := &ix.h.Sessions[i]
	end := slices.IndexFunc(s.Events, func(e history.Event) bool { return e.InitialEnd })
	if end < 0 {
		return
	}
	bound := ix.acked.before(s.Call)
	changes := ix.changesOf(s.Resource, s.Selector)
	next := changes.after(s.Events[end].Revision)
	if next < len(changes.list) && changes.list[next].revision <= bound && !changes.list[next].loose {
		c := &changes.list[next]
		r.add(Violation{Rule: "initial", Key: c.object.key, Sessions: []int{i}, Events: []int{end}, Writes: []int{c.write}},
			"initial events end at revision %d and miss revision %d; revision %d was acknowledged before the watch", s.Events[end].Revision, c.revision, bound)
	}
}

// checkMonotonic asks of each consistent read whether it is as new as everything that the
// same client was shown before, by reads, writes and watches.
func checkMonotonic(ix *index, r *report) {
	if len(ix.h.Writes) == 0 {
		return
	}
	shown := map[int][]observation{}
	see := func(client int, time, revision int64) {
		if revision > 0 && revision <= ix.last && ix.earliestOf(revision) <= time {
			shown[client] = append(shown[client], observation{time, revision})
		}
	}
	for i := range ix.h.Operations {
		if o := &ix.h.Operations[i]; o.Outcome == history.Done && !o.Write() {
			see(o.Client, o.Return, max(o.Got.Revision, o.ListRevision))
		}
	}
	clients := map[int]bounds{}
	for client, all := range shown {
		clients[client] = newBounds(all)
	}
	for i := range ix.h.Operations {
		o := &ix.h.Operations[i]
		if (o.Verb == history.Get || o.Verb == history.List) && parseMode(o.Mode).kind == "" {
			stale(ix, r, i, clients[o.Client].before(o.Call), "was shown to this client before its call")
		}
	}
}

// stale reports a read that cannot be of a revision at or behind a bound.
func stale(ix *index, r *report, i int, bound int64, why string) {
	o := &ix.h.Operations[i]
	violation := Violation{Rule: "stale", Operations: []int{i}}
	switch {
	case o.Verb == history.List && o.Outcome == history.Done:
		changes := ix.changesOf(o.Resource, "")
		// A list may carry the revision of the last change of its resource.
		if next := changes.after(o.ListRevision); next < len(changes.list) && changes.list[next].revision <= bound {
			violation.Key, violation.Writes = changes.list[next].object.key, []int{changes.list[next].write}
			r.add(violation, "%s is of revision %d and misses revision %d; revision %d %s", describe(o), o.ListRevision, changes.list[next].revision, bound, why)
		}
	case o.Verb == history.Get && o.Outcome == history.Done:
		target := ix.object(o)
		violation.Key = target.key
		at := target.at(o.Got.Revision)
		if at < 0 || target.versions[at].revision != o.Got.Revision {
			return // checkLog says so
		}
		if end := target.end(at); end < bound {
			violation.Writes = []int{target.versions[at+1].write}
			r.add(violation, "%s shows revision %d, which was the state until revision %d; revision %d %s", describe(o), o.Got.Revision, end, bound, why)
		}
	case o.Verb == history.Get && ix.saysAbsent(o):
		target := ix.object(o)
		violation.Key = target.key
		to := ix.highest(o.Return)
		if !target.ever(bound, to, func(v *version) bool { return v == nil }) {
			r.add(violation, "%s finds nothing, and the object is there from revision %d, which %s, to %d", describe(o), bound, why, to)
		}
	}
}
