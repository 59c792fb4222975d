package check

import (
	"time"

	"github.com/espalier-dev/espalier/conformance/robustness/history"
)

// silence is how long a watch may bring nothing after an acknowledged write while no
// fault is on. Delivery takes milliseconds; the rest is for slow machines and for
// connections that recover from the fault before.
const silence = int64(30 * time.Second)

// checkWatch holds each watch against the log: events come in the order of revisions,
// once, without a gap, of the right type and with the bytes of the log; after a bookmark
// nothing older comes. A watch that resumes at a revision is complete from there on, so
// that sessions that resume each other are complete together.
func checkWatch(ix *index, r *report) {
	if len(ix.h.Writes) == 0 {
		return
	}
	for i := range ix.h.Sessions {
		w := &watcher{ix: ix, r: r, index: i, session: &ix.h.Sessions[i]}
		w.check()
	}
}

// A watcher checks one session.
type watcher struct {
	ix       *index
	r        *report
	index    int
	session  *history.Session
	changes  *changes
	cursor   int          // the next change that must come
	early    map[int]bool // changes behind cursor, of its revision, that came already
	last     int64        // revision of the last event or bookmark
	bookmark int64        // revision of the last bookmark
	ended    bool         // initial events have ended
	first    int          // number of events at the beginning that are state
	seen     map[seenEvent]int
}

// A seenEvent identifies an event within a session.
type seenEvent struct {
	name     string
	revision int64
}

func (w *watcher) add(rule string, event int, key, format string, args ...any) {
	v := Violation{Rule: rule, Key: key, Sessions: []int{w.index}}
	if event >= 0 {
		v.Events = []int{event}
	}
	w.r.add(v, format, args...)
}

func (w *watcher) check() {
	s := w.session
	w.changes = w.ix.changesOf(s.Resource, s.Selector)
	w.early = map[int]bool{}
	from := max(s.From, 0)
	if s.Initial || s.From <= 0 {
		var known bool
		if from, known = w.initial(); !known {
			return
		}
	}
	w.cursor, w.last = w.changes.after(from), from
	for i := range s.Events {
		e := &s.Events[i]
		if e.Revision > w.ix.last && e.Type != "BOOKMARK" || w.ix.earliestOf(e.Revision) > e.At {
			w.add("future", i, "", "%s of revision %d came before that revision can have existed", e.Type, e.Revision)
			continue
		}
		switch {
		case i < w.first:
			w.same(i, e, w.find(e)) // the initial state has been compared
		case e.Type == "BOOKMARK":
			w.mark(i, e)
		default:
			w.event(i, e)
		}
	}
	w.quiet()
}

// mark takes a bookmark: everything up to it must have come.
func (w *watcher) mark(i int, e *history.Event) {
	s := w.session
	if e.InitialEnd {
		if !s.Initial || w.ended {
			w.add("initial", i, "", "the bookmark that ends initial events came in a watch without them, or twice")
		}
		if e.Revision < s.From {
			w.add("initial", i, "", "initial events end at revision %d, older than %d that was asked for", e.Revision, s.From)
		}
		w.ended = true
	} else if s.Initial && !w.ended {
		w.add("initial", i, "", "a bookmark of revision %d came before the end of the initial events", e.Revision)
	}
	if e.Revision < w.last {
		w.add("bookmark", i, "", "a bookmark of revision %d came after revision %d", e.Revision, w.last)
		return
	}
	w.skip(i, w.changes.after(e.Revision))
	w.last, w.bookmark = e.Revision, e.Revision
}

// event takes a change.
func (w *watcher) event(i int, e *history.Event) {
	key := keyOf(w.session.Resource, e.Name)
	place := w.find(e)
	switch {
	case place < 0:
		w.invented(i, e, key)
		return
	case e.Type == "DELETED" && place < w.cursor && w.changes.list[place].kind != "DELETED" && !w.changes.list[place].loose:
		w.add("deleted", i, key, "DELETED carries revision %d, which is not the revision of a deletion", e.Revision)
		return
	case e.Revision <= w.bookmark:
		w.add("bookmark", i, key, "%s of revision %d came after the bookmark of revision %d", e.Type, e.Revision, w.bookmark)
		return
	case place < w.cursor || w.early[place]:
		rule, text := "order", "after a later one"
		if w.came(i, e) {
			rule, text = "unique", "twice"
		}
		w.add(rule, i, key, "%s of revision %d came %s", e.Type, e.Revision, text)
		return
	}
	// Changes of one transaction have one revision, and no order among themselves.
	w.skip(i, w.changes.after(e.Revision-1))
	w.early[place] = true
	for w.early[w.cursor] {
		delete(w.early, w.cursor)
		w.cursor++
	}
	w.last = e.Revision
	w.same(i, e, place)
}

// skip moves the cursor: what it passes was lost.
func (w *watcher) skip(event, to int) {
	for ; w.cursor < to; w.cursor++ {
		c := &w.changes.list[w.cursor]
		if w.early[w.cursor] {
			delete(w.early, w.cursor)
			continue
		}
		if !c.loose {
			w.add("lost", event, c.object.key, "%s of revision %d did not come, but revision %d did", c.kind, c.revision, w.session.Events[event].Revision)
		}
	}
}

// find is the change that an event is, or -1.
func (w *watcher) find(e *history.Event) int {
	for i := w.changes.after(e.Revision - 1); i < len(w.changes.list) && w.changes.list[i].revision == e.Revision; i++ {
		if w.changes.list[i].object.name == e.Name {
			return i
		}
	}
	return -1
}

// came reports whether an event came before in the session.
func (w *watcher) came(event int, e *history.Event) bool {
	if w.seen == nil {
		w.seen = map[seenEvent]int{}
		for i := range w.session.Events {
			before := &w.session.Events[i]
			at := seenEvent{before.Name, before.Revision}
			if _, twice := w.seen[at]; !twice && before.Type != "BOOKMARK" {
				w.seen[at] = i
			}
		}
	}
	first, found := w.seen[seenEvent{e.Name, e.Revision}]
	return found && first < event
}

// invented says what is wrong with an event that the log does not explain.
func (w *watcher) invented(i int, e *history.Event, key string) {
	o := w.ix.objects[key]
	if o != nil {
		if at := o.at(e.Revision); at >= 0 && o.versions[at].revision == e.Revision {
			w.add("filter", i, key, "%s of revision %d came, which the selector %q does not select", e.Type, e.Revision, w.session.Selector)
			return
		}
		if e.Type == "DELETED" {
			w.add("deleted", i, key, "DELETED carries revision %d, which is not the revision of a deletion", e.Revision)
			return
		}
	}
	w.add("invented", i, key, "%s of revision %d came, at which etcd has nothing for this key", e.Type, e.Revision)
}

// same compares type and bytes of an event with its change.
func (w *watcher) same(i int, e *history.Event, place int) {
	if place < 0 || w.changes.list[place].loose {
		return
	}
	c := &w.changes.list[place]
	if i >= w.first && e.Type != c.kind {
		w.add("type", i, c.object.key, "revision %d came as %s and is %s by the log", e.Revision, e.Type, c.kind)
		return
	}
	if text := difference(&e.Item, c.item); text != "" {
		w.add("bytes", i, c.object.key, "%s of revision %d differs from the log: %s", e.Type, e.Revision, text)
	}
}

// quiet finds watches that have gone silent: long after an acknowledged write that they
// must show, with no fault since, the write has not come.
func (w *watcher) quiet() {
	s := w.session
	if w.cursor >= len(w.changes.list) || s.End <= 0 {
		return
	}
	c := &w.changes.list[w.cursor]
	since := w.ix.latestOf(c.revision)
	if c.loose || since == forever {
		return
	}
	since = max(since, s.Call)
	for _, f := range w.ix.h.Faults {
		if f.Begin < s.End {
			since = max(since, min(f.End, s.End))
			if f.End < f.Begin { // it did not end
				since = s.End
			}
		}
	}
	if s.End-since > silence {
		w.add("silent", -1, c.object.key, "%s of revision %d was shown elsewhere and did not come for %s until the watch ended",
			c.kind, c.revision, time.Duration(s.End-since))
	}
}
