package check

import (
	"strings"

	"github.com/espalier-dev/espalier/conformance/robustness/history"
)

// checkCorruption finds what damages the store itself: a value below another object's
// key, and revisions that jump back, as after a restore without revision bump.
func checkCorruption(ix *index, r *report) {
	h := ix.h
	perKey := map[string]int64{}
	highest := int64(0)
	for i := range h.Writes {
		w := &h.Writes[i]
		if w.Revision < highest {
			r.add(Violation{Rule: "revision", Key: keyOf(w.Resource, w.Name), Writes: []int{i}},
				"etcd's log goes back from revision %d to %d", highest, w.Revision)
		} else if before, known := perKey[w.Key]; known && before == w.Revision {
			r.add(Violation{Rule: "revision", Key: keyOf(w.Resource, w.Name), Writes: []int{i}},
				"etcd's log has revision %d of key %s twice", w.Revision, w.Key)
		}
		highest = max(highest, w.Revision)
		perKey[w.Key] = w.Revision
		// Keys of other programs have values that are not items.
		if w.Name == "" && w.UID == "" {
			continue
		}
		if w.Key != w.Name && !strings.HasSuffix(w.Key, "/"+w.Name) {
			r.add(Violation{Rule: "key", Key: keyOf(w.Resource, w.Name), Writes: []int{i}},
				"the key %s holds the object %q", w.Key, w.Name)
		}
	}
	checkBack(ix, r)
}

// checkBack finds writes at a revision that is not behind one that was acknowledged
// before their call. What is acknowledged counts as it was said, whether the log has it
// or not: after a restore the log has something else there.
func checkBack(ix *index, r *report) {
	h := ix.h
	logged := len(h.Writes) > 0
	var said []observation
	for i := range h.Operations {
		if o := &h.Operations[i]; o.Outcome == history.Done && o.Write() && (o.Got.Revision <= ix.last || !logged) {
			said = append(said, observation{o.Return, o.Got.Revision})
		}
	}
	acknowledged := newBounds(said)
	for i := range h.Operations {
		o := &h.Operations[i]
		if !o.Write() || o.Outcome == history.Refused {
			continue
		}
		violation := Violation{Rule: "back", Key: keyOf(o.Resource, o.Key), Operations: []int{i}}
		revision := int64(0)
		if w, known := ix.writeOf(o); known {
			revision, violation.Writes = h.Writes[w].Revision, []int{w}
		} else if !logged && (o.Verb == history.Create || o.Verb == history.Patch) && !o.Got.Deleting {
			revision = o.Got.Revision // such an answer carries the revision of the write
		}
		if before := max(acknowledged.before(o.Call), ix.seen.before(o.Call)); revision != 0 && revision <= before {
			r.add(violation, "%s was written at revision %d, but revision %d was shown before its call", describe(o), revision, before)
		}
	}
	if !logged {
		checkListsBack(ix, r)
	}
}

// checkListsBack finds consistent lists of a revision before an acknowledged write of
// their resource, where there is no log to say what they miss.
func checkListsBack(ix *index, r *report) {
	said := map[string][]observation{}
	for i := range ix.h.Operations {
		if o := &ix.h.Operations[i]; o.Outcome == history.Done && o.Write() {
			said[plural(o.Resource)] = append(said[plural(o.Resource)], observation{o.Return, o.Got.Revision})
		}
	}
	acknowledged := map[string]bounds{}
	for resource, all := range said {
		acknowledged[resource] = newBounds(all)
	}
	for i := range ix.h.Operations {
		o := &ix.h.Operations[i]
		if o.Verb != history.List || o.Outcome != history.Done || parseMode(o.Mode).kind != "" {
			continue
		}
		if before := acknowledged[plural(o.Resource)].before(o.Call); o.ListRevision < before {
			r.add(Violation{Rule: "back", Operations: []int{i}}, "%s is of revision %d, but revision %d was acknowledged before its call", describe(o), o.ListRevision, before)
		}
	}
}
