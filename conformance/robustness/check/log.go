package check

import (
	"maps"
	"slices"

	"github.com/espalier-dev/espalier/conformance/robustness/history"
)

// checkLog compares what clients were told with etcd's own log: everything acknowledged
// is in it exactly once, nothing refused is in it, nothing deleted returns.
func checkLog(ix *index, r *report) {
	checkChains(ix, r)
	checkUIDs(ix, r)
	checkIDs(ix, r)
	if len(ix.h.Writes) == 0 {
		return // the log was not read: nothing can be missing in it
	}
	for i := range ix.h.Operations {
		o := &ix.h.Operations[i]
		switch {
		case !o.Write():
			if o.Verb == history.Get && o.Outcome == history.Done {
				checkShown(ix, r, i, &o.Got)
			}
		case o.Outcome == history.Refused:
			checkRefused(ix, r, i)
		case o.Outcome == history.Done && o.Verb == history.Delete:
			checkDeleted(ix, r, i)
		case o.Outcome == history.Done && o.Verb == history.DeleteCollection:
			checkCollected(ix, r, i)
		case o.Outcome == history.Done:
			checkAcknowledged(ix, r, i)
		}
	}
	checkReasons(ix, r)
}

// checkChains walks each key: a write names its predecessor, a create has none, and a
// deletion ends it.
func checkChains(ix *index, r *report) {
	for _, objects := range ix.resources {
		for _, o := range objects {
			for i := range o.versions {
				checkLink(ix, r, o, i)
			}
		}
	}
}

func checkLink(ix *index, r *report, o *object, i int) {
	v := &o.versions[i]
	w := &ix.h.Writes[v.write]
	var before *version
	previous := int64(0)
	if i > 0 {
		before = &o.versions[i-1]
		if !before.deleted {
			previous = before.revision
		}
	} else if o.open {
		return
	}
	violation := Violation{Rule: "chain", Key: o.key, Writes: []int{v.write}}
	alive := previous != 0
	switch {
	case w.Created && alive:
		r.add(violation, "revision %d creates a key that is there since revision %d", v.revision, previous)
		return
	case !w.Created && !alive && !w.Deleted:
		r.add(violation, "revision %d changes a key that does not exist", v.revision)
		return
	case w.Deleted && !alive:
		r.add(violation, "revision %d deletes a key that does not exist", v.revision)
		return
	case w.Previous != previous:
		r.add(violation, "revision %d follows revision %d by etcd, but the log has %d before it", v.revision, w.Previous, previous)
		return
	}
	if alive && before.item.UID != w.UID && w.UID != "" {
		violation.Rule = "uid"
		r.add(violation, "revision %d replaces UID %s by %s without a deletion", v.revision, before.item.UID, w.UID)
	}
	if w.Deleted && len(before.item.Finalizers) > 0 && !before.item.Deleting {
		// Removing the last finalizer deletes an object only if it is marked.
		violation.Rule = "finalizers"
		r.add(violation, "revision %d deletes an object that has the finalizers %v and was not marked", v.revision, before.item.Finalizers)
	}
	if !w.Deleted {
		var item *history.Item
		if alive {
			item = before.item
		}
		checkEffect(ix, r, o, v, item, previous)
	}
}

// checkEffect compares a write with what its operation asked for.
func checkEffect(ix *index, r *report, o *object, v *version, before *history.Item, previous int64) {
	violation := Violation{Rule: "effect", Key: o.key, Writes: []int{v.write}}
	var empty history.Item
	base := before
	if base == nil {
		base = &empty
	}
	if len(v.ids) == 0 {
		if before != nil && (!slices.Equal(before.Log, v.item.Log) || !equalMaps(before.Marks, v.item.Marks)) {
			r.add(violation, "revision %d changes the log from %s to %s and no operation asked for it", v.revision, tail(before.Log), tail(v.item.Log))
		}
		return
	}
	id := v.ids[len(v.ids)-1]
	op, known := ix.byID[id]
	if !known {
		return // checkIDs says so
	}
	operation := &ix.h.Operations[op]
	violation.Operations = []int{op}
	if keyOf(operation.Resource, operation.Key) != o.key {
		r.add(violation, "revision %d has the operation %s of another key", v.revision, describe(operation))
		return
	}
	if operation.Revision != 0 && operation.Verb != history.Create && before != nil && operation.Revision != previous {
		r.add(violation, "revision %d is %s with precondition revision %d, but replaced revision %d", v.revision, describe(operation), operation.Revision, previous)
	}
	if operation.Verb == history.Create && before != nil {
		r.add(violation, "revision %d is %s and overwrote revision %d", v.revision, describe(operation), previous)
		return
	}
	if (operation.Verb == history.Patch || operation.Verb == history.Update) && before == nil && !o.open {
		r.add(violation, "revision %d is %s, which must not create", v.revision, describe(operation))
		return
	}
	log, marks, known := asked(operation, base)
	if known && (!slices.Equal(log, v.item.Log) || !equalMaps(marks, v.item.Marks)) {
		r.add(violation, "revision %d is %s: log %s and marks %v were asked for, stored are %s and %v",
			v.revision, describe(operation), tail(log), marks, tail(v.item.Log), v.item.Marks)
	}
}

// asked is the log and the marks that an operation makes of a state, if that is known.
func asked(o *history.Operation, before *history.Item) (log []string, marks map[string]string, known bool) {
	switch o.Verb {
	case history.Create, history.Update:
		return o.Sent.Log, o.Sent.Marks, len(o.Sent.Log) > 0 || len(o.Sent.Marks) > 0
	case history.Patch:
		if len(o.Sent.Log) > 0 { // a merge patch replaces the list
			return o.Sent.Log, before.Marks, true
		}
		return append(slices.Clip(before.Log), o.ID), before.Marks, true
	case history.Apply:
		marks = maps.Clone(before.Marks)
		if marks == nil {
			marks = map[string]string{}
		}
		marks[o.Mode] = o.ID
		return before.Log, marks, true
	}
	return nil, nil, false
}

// checkUIDs finds objects that return: a UID is created once, lives below one key, and
// is not written after its deletion.
func checkUIDs(ix *index, r *report) {
	for uid, places := range ix.uids {
		slices.SortStableFunc(places, func(a, b uidVersion) int {
			return int(min(1, max(-1, a.object.versions[a.version].revision-b.object.versions[b.version].revision)))
		})
		deleted := int64(0)
		for _, p := range places {
			v := &p.object.versions[p.version]
			violation := Violation{Rule: "resurrected", Key: p.object.key, Writes: []int{v.write}}
			switch {
			case p.object != places[0].object:
				r.add(violation, "UID %s of %s is also below %s at revision %d", uid, places[0].object.key, p.object.key, v.revision)
			case deleted != 0:
				r.add(violation, "UID %s was deleted at revision %d and is written again at revision %d", uid, deleted, v.revision)
			}
			if v.deleted {
				deleted = v.revision
			}
		}
	}
}

// checkIDs finds operations that were done twice, and writes without an operation.
func checkIDs(ix *index, r *report) {
	for id, writes := range ix.wrote {
		op, known := ix.byID[id]
		if !known {
			if len(ix.h.Operations) > 0 {
				r.add(Violation{Rule: "invented", Key: ix.objectOf[writes[0]].key, Writes: writes},
					"revision %d has the operation %s, which no client sent", ix.h.Writes[writes[0]].Revision, id)
			}
			continue
		}
		if len(writes) == 1 || overwrites(ix, writes[1:]) {
			continue
		}
		r.add(Violation{Rule: "twice", Key: ix.objectOf[writes[0]].key, Operations: []int{op}, Writes: writes},
			"%s was done at revision %d and again at revision %d", describe(&ix.h.Operations[op]), ix.h.Writes[writes[0]].Revision, ix.h.Writes[writes[1]].Revision)
	}
}

// overwrites reports whether all writes are of updates without precondition, which may
// bring back what their client read earlier.
func overwrites(ix *index, writes []int) bool {
	for _, w := range writes {
		var own *history.Operation
		for _, id := range ix.objectOf[w].versions[ix.versionOf[w]].ids {
			if op, known := ix.byID[id]; known && slices.Contains(ix.h.Operations[op].Sent.Log, id) && ix.wrote[id][0] == w {
				own = &ix.h.Operations[op]
			}
		}
		if own == nil || own.Revision != 0 || own.Verb == history.Create {
			return false
		}
	}
	return true
}

// traceable reports whether an operation leaves its ID in what it writes.
func traceable(o *history.Operation) bool {
	switch o.Verb {
	case history.Patch, history.Apply:
		return o.ID != ""
	case history.Create, history.Update:
		return o.ID != "" && slices.Contains(o.Sent.Log, o.ID)
	}
	return false
}

// checkAcknowledged looks for an acknowledged create, update, patch or apply in the log.
func checkAcknowledged(ix *index, r *report, i int) {
	o := &ix.h.Operations[i]
	violation := Violation{Rule: "lost", Key: keyOf(o.Resource, o.Key), Operations: []int{i}}
	if !traceable(o) {
		return
	}
	w, known := ix.writeOf(o)
	if !known {
		if removed(ix, o) {
			return
		}
		r.add(violation, "%s was acknowledged at revision %d and is not in etcd's log", describe(o), o.Got.Revision)
		return
	}
	violation.Writes = []int{w}
	write := &ix.h.Writes[w]
	if o.Outcome == history.Done && ix.earliestOf(write.Revision) > o.Return {
		violation.Rule = "order"
		r.add(violation, "%s returned before an operation was called that etcd wrote at or before its revision %d", describe(o), write.Revision)
		return
	}
	if o.Got.Revision == 0 {
		return
	}
	if o.Got.Revision == write.Revision {
		checkShown(ix, r, i, &o.Got)
		return
	}
	// A server that tries again finds its own apply done and answers with what is there.
	if o.Verb == history.Apply && o.Got.Revision > write.Revision && o.Got.Marks[o.Mode] == o.ID {
		checkShown(ix, r, i, &o.Got)
		return
	}
	violation.Rule = "revision"
	r.add(violation, "%s was acknowledged at revision %d and written at revision %d", describe(o), o.Got.Revision, write.Revision)
}

// removed reports whether an update can have caused a deletion by removing the last finalizer:
// the object goes and the update's ID is written nowhere. Several updates can have caused the same
// one: an update that finds the object gone has nothing left to do, and API servers answer it with 200.
func removed(ix *index, o *history.Operation) bool {
	target := ix.object(o)
	from, to := ix.window(o)
	for i := max(0, target.at(from)); i < len(target.versions); i++ {
		v := &target.versions[i]
		if v.revision > to {
			break
		}
		if v.deleted && v.revision > from && v.item.Deleting && len(v.item.Finalizers) > 0 && releases(o, target, i) {
			return true
		}
	}
	return false
}

// releases reports whether an operation can have removed the last finalizer before a
// deletion. An update says so; the answer to a patch carries the deletion's revision, or
// shows what was there before.
func releases(o *history.Operation, target *object, deletion int) bool {
	if o.Verb == history.Update && o.Sent.Name != "" {
		return len(o.Sent.Finalizers) == 0
	}
	v := &target.versions[deletion]
	if o.Got.Revision == 0 || o.Got.Revision == v.revision {
		return true
	}
	return deletion > 0 && o.Got.Revision == target.versions[deletion-1].revision && difference(&o.Got, v.item) == ""
}

// checkShown compares an item of an answer with the log at the item's revision.
func checkShown(ix *index, r *report, i int, item *history.Item) {
	o := &ix.h.Operations[i]
	target := ix.object(o)
	violation := Violation{Rule: "answer", Key: target.key, Operations: []int{i}}
	if item.Revision > ix.last || ix.earliestOf(item.Revision) > o.Return {
		violation.Rule = "future"
		r.add(violation, "%s shows revision %d, which did not exist yet", describe(o), item.Revision)
		return
	}
	v := target.live(item.Revision)
	if v == nil || v.revision != item.Revision {
		if !target.unknown(item.Revision) {
			r.add(violation, "%s shows revision %d, at which nothing was written", describe(o), item.Revision)
		}
		return
	}
	violation.Writes = []int{v.write}
	if text := difference(item, v.item); text != "" {
		r.add(violation, "%s shows revision %d in another way: %s", describe(o), item.Revision, text)
	}
}

// checkRefused looks for writes of an operation that was said not to be done.
func checkRefused(ix *index, r *report, i int) {
	o := &ix.h.Operations[i]
	if w, known := ix.writeOf(o); known {
		r.add(Violation{Rule: "refused", Key: keyOf(o.Resource, o.Key), Operations: []int{i}, Writes: []int{w}},
			"%s was refused (%d %s) and written at revision %d", describe(o), o.Code, o.Reason, ix.h.Writes[w].Revision)
	}
}
