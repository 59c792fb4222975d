package check

import (
	"cmp"
	"math"
	"slices"
	"sort"
	"strings"

	"github.com/espalier-dev/espalier/conformance/robustness/history"
)

// forever is a time and a revision after everything.
const forever = int64(math.MaxInt64)

// A version is an object from one write on.
type version struct {
	write    int // index into Writes
	revision int64
	deleted  bool
	item     *history.Item // of a deletion the state before
	ids      []string      // operations that are in this version and not in the one before
}

// An object is a key of etcd with its versions in the order of revisions.
type object struct {
	key      string // resource/name
	resource string
	name     string
	versions []version
	// open: the log begins in the middle, so the object may have been there before.
	open bool
}

// at returns the index of the version that holds at a revision: -1 before the first.
func (o *object) at(revision int64) int {
	return sort.Search(len(o.versions), func(i int) bool { return o.versions[i].revision > revision }) - 1
}

// live returns the state at a revision, or nil.
func (o *object) live(revision int64) *version {
	i := o.at(revision)
	if i < 0 || o.versions[i].deleted {
		return nil
	}
	return &o.versions[i]
}

// unknown reports whether the log does not say if there was an object at a revision.
func (o *object) unknown(revision int64) bool { return o.open && o.at(revision) < 0 }

// end is the revision up to which a version holds, inclusive.
func (o *object) end(i int) int64 {
	if i+1 < len(o.versions) {
		return o.versions[i+1].revision - 1
	}
	return forever
}

// An observation is a revision that a client was shown at a time.
type observation struct {
	time, revision int64
}

// bounds holds observations sorted by time with the running maximum of revisions.
type bounds []observation

func newBounds(all []observation) bounds {
	slices.SortFunc(all, func(a, b observation) int { return cmp.Compare(a.time, b.time) })
	for i := 1; i < len(all); i++ {
		all[i].revision = max(all[i].revision, all[i-1].revision)
	}
	return all
}

// before is the highest revision that was shown before a time.
func (b bounds) before(time int64) int64 {
	i := sort.Search(len(b), func(i int) bool { return b[i].time >= time })
	if i == 0 {
		return 0
	}
	return b[i-1].revision
}

// An index is what all checkers need to know of a history.
type index struct {
	h       *history.History
	objects map[string]*object
	// resources holds the objects of each resource, sorted by key.
	resources map[string][]*object
	// log is the order of Writes by revision; earliest and latest are bounds of the
	// time of each.
	log              []int
	earliest, latest []int64
	// byID is the operation of an ID, wrote the writes in which an ID is new.
	byID  map[string]int
	wrote map[string][]int
	// seen is what clients were shown, acked what writers were told, both by time.
	seen, acked bounds
	last        int64 // revision of the last write
	// deletedCRD are resources whose CRD was deleted, served the time from which a CRD is
	// known to be served by all replicas.
	deletedCRD map[string]bool
	served     map[string]int64
	labelled   bool
	// writeOf finds the version of a write.
	objectOf  []*object
	versionOf []int
	changes   map[string]*changes
	uids      map[string][]uidVersion
}

// A uidVersion says where a UID is.
type uidVersion struct {
	object  *object
	version int
}

func newIndex(h *history.History) *index {
	ix := &index{
		h:          h,
		objects:    map[string]*object{},
		resources:  map[string][]*object{},
		byID:       map[string]int{},
		wrote:      map[string][]int{},
		deletedCRD: map[string]bool{},
		served:     map[string]int64{},
		objectOf:   make([]*object, len(h.Writes)),
		versionOf:  make([]int, len(h.Writes)),
		changes:    map[string]*changes{},
		uids:       map[string][]uidVersion{},
	}
	for i := range h.Operations {
		if id := h.Operations[i].ID; id != "" {
			if _, twice := ix.byID[id]; !twice {
				ix.byID[id] = i
			}
		}
	}
	for _, ack := range h.Acks {
		resource := plural(ack.Resource)
		if ack.Deleted {
			ix.deletedCRD[resource] = true
		} else if first, known := ix.served[resource]; !known || ack.At < first {
			ix.served[resource] = ack.At
		}
	}
	ix.readLog()
	ix.bindTime()
	return ix
}

// nameInKey is the name that a key of etcd says: what follows the resource.
func nameInKey(w *history.Write) string {
	segment := plural(w.Resource) + "/"
	if rest, found := strings.CutPrefix(w.Key, segment); found {
		return rest
	}
	if _, rest, found := strings.Cut(w.Key, "/"+segment); found {
		return rest
	}
	return w.Name
}

func (ix *index) readLog() {
	h := ix.h
	ix.log = make([]int, len(h.Writes))
	for i := range ix.log {
		ix.log[i] = i
	}
	slices.SortStableFunc(ix.log, func(a, b int) int { return cmp.Compare(h.Writes[a].Revision, h.Writes[b].Revision) })
	for _, i := range ix.log {
		w := &h.Writes[i]
		name := nameInKey(w)
		key := keyOf(w.Resource, name)
		o := ix.objects[key]
		if o == nil {
			o = &object{key: key, resource: plural(w.Resource), name: name, open: !w.Created && w.Previous != 0}
			ix.objects[key] = o
			ix.resources[o.resource] = append(ix.resources[o.resource], o)
		}
		var before *history.Item
		if n := len(o.versions); n > 0 && !o.versions[n-1].deleted {
			before = o.versions[n-1].item
		}
		v := version{write: i, revision: w.Revision, deleted: w.Deleted, item: &w.Item}
		if w.Deleted {
			if before != nil {
				v.item = before
			}
		} else {
			v.ids = newIDs(before, &w.Item)
			if before == nil && o.open && len(o.versions) == 0 {
				v.ids = v.ids[max(0, len(v.ids)-1):] // the others may be from before
			}
			for _, id := range v.ids {
				ix.wrote[id] = append(ix.wrote[id], i)
			}
			ix.labelled = ix.labelled || len(w.Labels) > 0
		}
		ix.objectOf[i], ix.versionOf[i] = o, len(o.versions)
		if w.UID != "" {
			ix.uids[w.UID] = append(ix.uids[w.UID], uidVersion{o, len(o.versions)})
		}
		o.versions = append(o.versions, v)
		ix.last = max(ix.last, w.Revision)
	}
	for _, objects := range ix.resources {
		slices.SortFunc(objects, func(a, b *object) int { return cmp.Compare(a.key, b.key) })
	}
}

// newIDs are the operations that a version has done on top of the one before. An ID
// that is twice in the log is new although it was there before.
func newIDs(before, after *history.Item) []string {
	var ids []string
	if before != nil && len(after.Log) >= len(before.Log) && slices.Equal(after.Log[:len(before.Log)], before.Log) {
		ids = append(ids, after.Log[len(before.Log):]...)
	} else {
		old := map[string]int{}
		if before != nil {
			for _, id := range before.Log {
				old[id]++
			}
		}
		for _, id := range after.Log {
			if old[id]--; old[id] < 0 {
				ids = append(ids, id)
			}
		}
	}
	for manager, id := range after.Marks {
		if before == nil || before.Marks[manager] != id {
			ids = append(ids, id)
		}
	}
	return ids
}

// bindTime ties revisions to times.
func (ix *index) bindTime() {
	h := ix.h
	n := len(ix.log)
	ix.earliest, ix.latest = make([]int64, n), make([]int64, n)
	bound := int64(0)
	for place, i := range ix.log {
		for _, id := range ix.objectOf[i].versions[ix.versionOf[i]].ids {
			if op, known := ix.byID[id]; known && ix.wrote[id][0] == i {
				bound = max(bound, h.Operations[op].Call)
			}
		}
		ix.earliest[place] = bound
	}
	var seen, acked []observation
	see := func(time, revision int64) bool {
		// A revision that no client can have seen is wrong in itself and bounds nothing else.
		if revision <= 0 || revision > ix.last || ix.earliestOf(revision) > time {
			return false
		}
		seen = append(seen, observation{time, revision})
		return true
	}
	for i := range h.Operations {
		o := &h.Operations[i]
		if o.Outcome != history.Done {
			continue
		}
		see(o.Return, o.ListRevision)
		if see(o.Return, o.Got.Revision) && o.Write() {
			acked = append(acked, observation{o.Return, o.Got.Revision})
		}
		if w, known := ix.writeOf(o); known && see(o.Return, h.Writes[w].Revision) {
			acked = append(acked, observation{o.Return, h.Writes[w].Revision})
		}
	}
	for i := range h.Sessions {
		for j := range h.Sessions[i].Events {
			e := &h.Sessions[i].Events[j]
			see(e.At, e.Revision)
		}
	}
	byRevision := slices.Clone(seen)
	slices.SortFunc(byRevision, func(a, b observation) int { return cmp.Compare(b.revision, a.revision) })
	bound = forever
	next := 0
	for place := n - 1; place >= 0; place-- {
		for ; next < len(byRevision) && byRevision[next].revision >= h.Writes[ix.log[place]].Revision; next++ {
			bound = min(bound, byRevision[next].time)
		}
		ix.latest[place] = bound
	}
	ix.seen, ix.acked = newBounds(seen), newBounds(acked)
}

// place is the position in the log of the last write at or below a revision, or -1.
func (ix *index) place(revision int64) int {
	return sort.Search(len(ix.log), func(i int) bool { return ix.h.Writes[ix.log[i]].Revision > revision }) - 1
}

// earliestOf is a time before which a revision did not exist.
func (ix *index) earliestOf(revision int64) int64 {
	if i := ix.place(revision); i >= 0 {
		return ix.earliest[i]
	}
	return 0
}

// latestOf is a time by which a revision existed.
func (ix *index) latestOf(revision int64) int64 {
	if i := ix.place(revision); i >= 0 && ix.h.Writes[ix.log[i]].Revision == revision {
		return ix.latest[i]
	}
	return forever
}

// highest is the last revision that can have existed at a time.
func (ix *index) highest(time int64) int64 {
	i := sort.Search(len(ix.earliest), func(i int) bool { return ix.earliest[i] > time })
	if i == len(ix.earliest) {
		return forever
	}
	return ix.h.Writes[ix.log[i]].Revision - 1
}

// window is the range of revisions at which an operation can have taken effect.
func (ix *index) window(o *history.Operation) (from, to int64) {
	from, to = ix.seen.before(o.Call), forever
	if o.Outcome != history.Unknown {
		to = ix.highest(o.Return)
	}
	return from, to
}

// writeOf is the write of an operation that leaves its ID.
func (ix *index) writeOf(o *history.Operation) (int, bool) {
	if o.ID == "" || len(ix.wrote[o.ID]) == 0 {
		return 0, false
	}
	return ix.wrote[o.ID][0], true
}

// object is the object of an operation, empty if nothing was ever written there.
func (ix *index) object(o *history.Operation) *object {
	key := keyOf(o.Resource, o.Key)
	if found := ix.objects[key]; found != nil {
		return found
	}
	return &object{key: key, resource: plural(o.Resource), name: o.Key}
}

// ever reports whether a condition holds for an object at some revision of a range. The
// condition is asked with nil for times at which there is no object. If the log does not
// say what was there, the condition holds.
func (o *object) ever(from, to int64, condition func(*version) bool) bool {
	if o.unknown(from) {
		return true
	}
	for i := o.at(from); i < len(o.versions); i++ {
		if i >= 0 && o.versions[i].revision > to {
			return false
		}
		var v *version
		if i >= 0 && !o.versions[i].deleted {
			v = &o.versions[i]
		}
		if condition(v) {
			return true
		}
	}
	return false
}
