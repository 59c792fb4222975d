package check

import (
	"slices"
	"strings"

	"github.com/espalier-dev/espalier/conformance/robustness/history"
)

// checkGarbage finds objects that the garbage collector deleted although an owner lives:
// an owner exists at the revision of the deletion and is not being deleted itself.
// etcd does not record the client of a deletion, so it is the collector's if no client can have asked for it.
func checkGarbage(ix *index, r *report) {
	asked := newDeletions(ix)
	for _, i := range ix.log {
		o, at := ix.objectOf[i], ix.versionOf[i]
		v := &o.versions[at]
		if len(v.item.Owners) == 0 || len(v.ids) > 0 {
			continue
		}
		var before *version
		if at > 0 && !o.versions[at-1].deleted {
			before = &o.versions[at-1]
		}
		begins := !v.deleted && v.item.Deleting && before != nil && !before.item.Deleting
		// The end of a deletion with finalizers belongs to the client that removed the last of them.
		ends := v.deleted && !v.item.Deleting
		if !begins && !ends || asked.explain(o, at, history.Done, history.Unknown) {
			continue
		}
		for _, uid := range v.item.Owners {
			owner, place, lives := ix.alive(uid, v.revision)
			if !lives || asked.swept(owner, place) {
				continue
			}
			r.add(Violation{Rule: "owned", Key: o.key, Writes: []int{i, owner.versions[place].write}},
				"revision %d deletes the object, no client asked for it, and its owner %s lives at revision %d", v.revision, uid, owner.versions[place].revision)
		}
	}
}

// alive finds the version of a UID at a revision, unless it is being deleted.
func (ix *index) alive(uid string, revision int64) (owner *object, version int, lives bool) {
	for _, place := range ix.uids[uid] {
		if v := place.object.live(revision); v != nil && v.item.UID == uid {
			return place.object, place.object.at(revision), !v.item.Deleting
		}
	}
	return nil, 0, false
}

// swept reports whether the owner went later without a client that knows of it, too: then
// a client may delete everything, as for a CRD whose deletion was not acknowledged any
// more.
func (d *deletions) swept(owner *object, place int) bool {
	for i := place + 1; i < len(owner.versions); i++ {
		if v := &owner.versions[i]; v.deleted || v.item.Deleting {
			return len(v.ids) == 0 && !d.explain(owner, i, history.Done)
		}
	}
	return false
}

// deletions are what clients asked to delete: by key, by collection, by namespace, by
// CRD.
type deletions struct {
	ix     *index
	byKey  map[string][]int
	others []int
}

func newDeletions(ix *index) *deletions {
	d := &deletions{ix: ix, byKey: map[string][]int{}}
	for i := range ix.h.Operations {
		o := &ix.h.Operations[i]
		if o.Outcome == history.Refused {
			continue
		}
		switch {
		case o.Verb == history.DeleteCollection, o.Verb == history.Delete && (o.Resource == "namespaces" || o.Resource == "customresourcedefinitions"):
			d.others = append(d.others, i)
		case o.Verb == history.Delete:
			key := keyOf(o.Resource, o.Key)
			d.byKey[key] = append(d.byKey[key], i)
		}
	}
	return d
}

// explain reports whether a client can have asked for a deletion, with one of some
// outcomes.
func (d *deletions) explain(o *object, at int, outcomes ...history.Outcome) bool {
	v := &o.versions[at]
	for _, i := range d.byKey[o.key] {
		operation := &d.ix.h.Operations[i]
		if !slices.Contains(outcomes, operation.Outcome) || operation.Revision != 0 && at > 0 && o.versions[at-1].revision != operation.Revision {
			continue
		}
		if from, to := d.ix.window(operation); from < v.revision && v.revision <= to && matches(operation, v) {
			return true
		}
	}
	for _, i := range d.others {
		operation := &d.ix.h.Operations[i]
		if !slices.Contains(outcomes, operation.Outcome) {
			continue
		}
		from := d.ix.seen.before(operation.Call)
		if v.revision <= from {
			continue
		}
		switch operation.Resource {
		case "namespaces":
			if namespaceOf(o.name) == operation.Key || o.name == operation.Key {
				return true
			}
		case "customresourcedefinitions":
			if strings.HasPrefix(operation.Key, o.resource+".") {
				return true
			}
		}
		if operation.Verb == history.DeleteCollection && plural(operation.Resource) == o.resource {
			return true
		}
	}
	for _, ack := range d.ix.h.Acks {
		if ack.Deleted && plural(ack.Resource) == o.resource && d.ix.seen.before(ack.Sent) < v.revision {
			return true
		}
	}
	return false
}
