package check

import (
	"strings"

	"github.com/espalier-dev/espalier/conformance/robustness/history"
)

// matches reports whether a delete's preconditions admit a version.
func matches(o *history.Operation, v *version) bool {
	return (o.UID == "" || o.UID == v.item.UID) && (o.Got.UID == "" || o.Got.UID == v.item.UID)
}

// checkDeleted looks for an acknowledged delete in the log: the key is gone, or with
// finalizers the object is marked.
func checkDeleted(ix *index, r *report, i int) {
	o := &ix.h.Operations[i]
	target := ix.object(o)
	from, to := ix.window(o)
	if target.unknown(from) {
		return
	}
	violation := Violation{Rule: "lost", Key: target.key, Operations: []int{i}}
	for j := max(0, target.at(from)); j < len(target.versions); j++ {
		v := &target.versions[j]
		if v.revision > to {
			break
		}
		switch {
		case !v.deleted && v.item.Deleting && matches(o, v):
			return // marked, before or by this
		case v.deleted && v.revision > from && matches(o, v):
			if o.Revision != 0 && j > 0 && target.versions[j-1].revision != o.Revision {
				violation.Writes = append(violation.Writes, v.write)
				continue // it may not have been this one
			}
			return
		}
	}
	if len(violation.Writes) > 0 {
		violation.Rule = "effect"
		r.add(violation, "%s with precondition revision %d deleted another revision", describe(o), o.Revision)
		return
	}
	r.add(violation, "%s was acknowledged and etcd's log has no deletion of it between revisions %d and %d", describe(o), from, to)
}

// checkCollected looks for objects that an acknowledged deletecollection left alone: they
// were there before its call, and after its return nothing had happened to them.
func checkCollected(ix *index, r *report, i int) {
	o := &ix.h.Operations[i]
	selects := parseSelector(o.Mode)
	if selects.unknown || selects.labels && !ix.labelled {
		return // what it selects is not recorded
	}
	from, to := ix.window(o)
	namespace := strings.TrimSuffix(o.Key, "/")
	for _, target := range ix.resources[plural(o.Resource)] {
		if namespace != "" && namespaceOf(target.name) != namespace {
			continue
		}
		if !target.ever(from, to, func(v *version) bool { return v == nil || v.item.Deleting || !selects.selects(v.item) }) {
			r.add(Violation{Rule: "lost", Key: target.key, Operations: []int{i}},
				"%s was acknowledged and left %s alone between revisions %d and %d", describe(o), target.key, from, to)
		}
	}
}

// saysAbsent reports whether an answer says that the object does not exist: not its CRD,
// and not the namespace of an object that is to be made.
func (ix *index) saysAbsent(o *history.Operation) bool {
	if o.Outcome != history.Refused || o.Reason != "NotFound" || o.Verb == history.Create || o.Verb == history.Apply {
		return false
	}
	served, changes := ix.served[plural(o.Resource)]
	return !strings.Contains(o.Message, "could not find the requested resource") &&
		!ix.deletedCRD[plural(o.Resource)] && (!changes || served < o.Call)
}

// checkReasons asks whether what a refusal says was true at any time between call and
// return.
func checkReasons(ix *index, r *report) {
	for i := range ix.h.Operations {
		o := &ix.h.Operations[i]
		if o.Outcome != history.Refused || o.Key == "" {
			continue
		}
		target := ix.object(o)
		from, to := ix.window(o)
		if o.Verb == history.Get {
			continue // checkFresh, because of the modes
		}
		violation := Violation{Rule: "reason", Key: target.key, Operations: []int{i}}
		switch {
		case o.Verb == history.Create && o.Reason == "AlreadyExists":
			if !target.ever(from, to, func(v *version) bool { return v != nil }) {
				r.add(violation, "%s was refused because the object exists, and it did not between revisions %d and %d", describe(o), from, to)
			}
		case ix.saysAbsent(o):
			if !target.ever(from, to, func(v *version) bool { return v == nil }) {
				r.add(violation, "%s was refused because the object does not exist, and it did from revision %d to %d", describe(o), from, to)
			}
		case (o.Verb == history.Update || o.Verb == history.Delete) && o.Reason == "Conflict" && (o.Revision != 0 || o.UID != ""):
			// Only where all that the client asked for held all the time is there no conflict.
			differs := func(v *version) bool {
				return v == nil || o.Revision == 0 && o.UID == "" || o.Revision != 0 && v.revision != o.Revision ||
					o.UID != "" && v.item.UID != o.UID || o.Sent.UID != "" && v.item.UID != o.Sent.UID || v.item.Deleting
			}
			if !target.ever(from, to, differs) {
				r.add(violation, "%s was refused as a conflict, and its preconditions held from revision %d to %d", describe(o), from, to)
			}
		}
	}
}
