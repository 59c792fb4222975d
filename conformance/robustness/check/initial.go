package check

import "fmt"

// states is the number of events at the beginning that are state, not changes.
func (w *watcher) states() int {
	s := w.session
	seen := map[string]bool{}
	for i := range s.Events {
		e := &s.Events[i]
		if e.Type != "ADDED" || seen[e.Name] {
			return i
		}
		seen[e.Name] = true
	}
	return len(s.Events)
}

// initial compares the state that a watch begins with with the log. The state is that
// of one revision, which only watch-lists tell, and a change that follows can look like
// a part of it: an ADDED of an object that was not in the state. The state and such
// changes are together the state of the last of them, so the longest beginning of ADDED
// of different objects must be the state at a revision between its highest and the next
// event. The latest such revision asks least of what follows.
//
// It returns the revision, and whether there is one.
func (w *watcher) initial() (revision int64, known bool) {
	s := w.session
	w.first = w.states()
	first := w.first
	shown := make(map[string]int64, first)
	highest, next := int64(0), forever
	for i := range s.Events[:first] {
		shown[s.Events[i].Name] = s.Events[i].Revision
		highest = max(highest, s.Events[i].Revision)
	}
	if first < len(s.Events) {
		if next = s.Events[first].Revision; s.Events[first].Type == "BOOKMARK" {
			next = min(next, forever-1) + 1
		}
	}
	if first == len(s.Events) {
		// It may have ended in the middle of the state: then nothing is missing.
		return w.partial(shown), true
	}
	if w.changes.loose {
		return highest, true
	}
	// different counts the objects whose state at a revision is not the one shown.
	different := 0
	wrong := func(name string, revision int64) bool { return shown[name] != revision }
	example := ""
	for _, o := range w.ix.resources[plural(s.Resource)] {
		state := w.stateAt(o, highest)
		if o.unknown(highest) {
			state = shown[o.name]
		}
		if wrong(o.name, state) {
			different++
			example = fmt.Sprintf("%s is shown at revision %d and is at revision %d, where 0 is absent", o.name, shown[o.name], state)
		}
	}
	for name := range shown {
		if w.ix.objects[keyOf(s.Resource, name)] == nil {
			different++
			example = fmt.Sprintf("%s is shown and was never written", name)
		}
	}
	revision = -1
	if different == 0 {
		revision = highest
	}
	for i := w.changes.after(highest); i < len(w.changes.list) && w.changes.list[i].revision < next; i++ {
		c := &w.changes.list[i]
		before := w.stateAt(c.object, c.revision-1)
		now := w.stateAt(c.object, c.revision)
		if wrong(c.object.name, before) {
			different--
		}
		if wrong(c.object.name, now) {
			different++
		}
		last := i+1 == len(w.changes.list) || w.changes.list[i+1].revision != c.revision
		if different == 0 && last {
			revision = c.revision
		}
	}
	if revision < 0 {
		w.add("initial", max(0, first-1), "", "the first %d events are not the state at any revision from %d to %d: %s", first, highest, next-1, example)
		return 0, false
	}
	if revision < s.From && next <= s.From {
		w.add("initial", max(0, first-1), "", "initial events are of revision %d, older than %d that was asked for", revision, s.From)
	}
	return revision, true
}

// partial is the state of a watch that brought nothing but state: what came must have
// been there, and what follows is not known.
func (w *watcher) partial(shown map[string]int64) int64 {
	for i := range w.session.Events {
		e := &w.session.Events[i]
		if w.find(e) < 0 {
			key := keyOf(w.session.Resource, e.Name)
			if o := w.ix.objects[key]; o == nil || !o.unknown(e.Revision) {
				w.invented(i, e, key)
			}
		}
	}
	if len(shown) == 0 {
		return forever
	}
	return w.ix.last
}

// stateAt is the revision of the object that a watch would show at a revision, or 0.
func (w *watcher) stateAt(o *object, revision int64) int64 {
	v := o.live(revision)
	if v == nil || !w.changes.selector.selects(v.item) {
		return 0
	}
	return v.revision
}
