package check

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/espalier-dev/espalier/conformance/robustness/history"
)

// transit is how long an event may be on its way while no fault is on: from a server that
// sent it just before a schema was acknowledged to the client that notes its arrival. The
// arrival does not bound the time of sending, so that this is generous, and only used
// where etcd's revisions say nothing.
const transit = int64(10 * time.Second)

// checkSchema asks whether an acknowledged schema is in force everywhere. Behind the
// acknowledgement of schema N:
//
//   - an operation that is called later shows N or newer, on any replica;
//   - a write with a revision behind that of the CRD is stored by N or newer, in its
//     storage version;
//   - an event with a revision behind that of the CRD was sent later, whenever it
//     arrived, and shows N or newer; so does everything in watches that were opened later;
//   - an older event in an older watch may have been on its way, for the time of transit
//     and of all faults meanwhile; after that it was sent too late;
//   - below a CRD that was seen to be gone nothing is stored, and nothing is shown.
//
// Each change of the schema has a greater N, and so has a CRD that is created again. A
// storage version that was left is not returned to.
func checkSchema(ix *index, r *report) {
	byResource := map[string][]history.Ack{}
	for _, ack := range ix.h.Acks {
		byResource[plural(ack.Resource)] = append(byResource[plural(ack.Resource)], ack)
	}
	for resource, acks := range byResource {
		c := &schemas{ix: ix, r: r, resource: resource}
		c.byTime = slices.Clone(acks)
		slices.SortStableFunc(c.byTime, func(a, b history.Ack) int { return cmp.Compare(a.At, b.At) })
		c.byRevision = slices.Clone(acks)
		slices.SortStableFunc(c.byRevision, func(a, b history.Ack) int { return cmp.Compare(a.Revision, b.Revision) })
		c.operations()
		c.events()
		c.writes()
		c.deleted()
	}
}

type schemas struct {
	ix                 *index
	r                  *report
	resource           string
	byTime, byRevision []history.Ack
}

// newest is the acknowledged schema with the greatest N of a prefix of acknowledgements.
func newest(acks []history.Ack, within func(*history.Ack) bool) *history.Ack {
	var found *history.Ack
	for i := range acks {
		if !within(&acks[i]) {
			break
		}
		if !acks[i].Deleted && (found == nil || acks[i].Schema >= found.Schema) {
			found = &acks[i]
		}
	}
	return found
}

func (c *schemas) at(time int64) *history.Ack {
	return newest(c.byTime, func(a *history.Ack) bool { return a.At < time })
}

func (c *schemas) behind(revision int64) *history.Ack {
	return newest(c.byRevision, func(a *history.Ack) bool { return a.Revision < revision })
}

func (c *schemas) operations() {
	for i := range c.ix.h.Operations {
		o := &c.ix.h.Operations[i]
		if o.Outcome != history.Done || plural(o.Resource) != c.resource {
			continue
		}
		ack := c.at(o.Call)
		if ack == nil {
			continue
		}
		violation := Violation{Rule: "answer", Operations: []int{i}}
		// The answer to a delete may be a status, which shows nothing.
		if shown := o.Got.Name != "" && o.Got.Revision != 0 && (o.Verb != history.Delete || o.Got.Deleting); shown && o.Got.Schema < ack.Schema {
			violation.Key = keyOf(o.Resource, o.Key)
			c.r.add(violation, "%s on replica %d shows schema %d; schema %d was acknowledged before its call", describe(o), o.Replica, o.Got.Schema, ack.Schema)
		}
		for j := range o.Items {
			if item := &o.Items[j]; item.Schema < ack.Schema {
				violation.Key = keyOf(o.Resource, item.Name)
				c.r.add(violation, "%s on replica %d shows %s by schema %d; schema %d was acknowledged before its call", describe(o), o.Replica, item.Name, item.Schema, ack.Schema)
				break
			}
		}
	}
}

func (c *schemas) events() {
	for i := range c.ix.h.Sessions {
		s := &c.ix.h.Sessions[i]
		if plural(s.Resource) != c.resource {
			continue
		}
		opened := c.at(s.Call)
		for j := range s.Events {
			e := &s.Events[j]
			if e.Type == "BOOKMARK" {
				continue
			}
			violation := Violation{Rule: "event", Key: keyOf(s.Resource, e.Name), Sessions: []int{i}, Events: []int{j}}
			if opened != nil && e.Schema < opened.Schema {
				c.r.add(violation, "replica %d sent revision %d by schema %d; schema %d was acknowledged before the watch", s.Replica, e.Revision, e.Schema, opened.Schema)
				continue
			}
			if ack := c.behind(e.Revision); ack != nil && e.Schema < ack.Schema {
				c.r.add(violation, "replica %d sent revision %d by schema %d; schema %d was acknowledged at revision %d", s.Replica, e.Revision, e.Schema, ack.Schema, ack.Revision)
				continue
			}
			if ack := c.at(e.At - transit); ack != nil && e.Schema < ack.Schema && e.At-ack.At > transit+c.faults(ack.At, e.At) {
				violation.Rule = "late"
				c.r.add(violation, "replica %d sent revision %d by schema %d, and it came %s after schema %d was acknowledged",
					s.Replica, e.Revision, e.Schema, time.Duration(e.At-ack.At), ack.Schema)
			}
		}
	}
}

// faults is the time of all faults within a range: whatever they hold up arrives later.
// It counts overlapping faults twice, which only makes it longer.
func (c *schemas) faults(from, to int64) int64 {
	var sum int64
	for _, f := range c.ix.h.Faults {
		end := f.End
		if end < f.Begin {
			end = to
		}
		if overlap := min(end, to) - max(f.Begin, from); overlap > 0 {
			sum += overlap
		}
	}
	return sum
}

func (c *schemas) writes() {
	for _, o := range c.ix.resources[c.resource] {
		for k := range o.versions {
			v := &o.versions[k]
			ack := c.behind(v.revision)
			if ack == nil || v.deleted {
				continue
			}
			violation := Violation{Rule: "stored", Key: o.key, Writes: []int{v.write}}
			for _, id := range v.ids {
				if op, known := c.ix.byID[id]; known {
					violation.Operations = append(violation.Operations, op)
				}
			}
			stored := v.item.APIVersion[strings.LastIndex(v.item.APIVersion, "/")+1:]
			switch {
			case v.item.Schema < ack.Schema:
				c.r.add(violation, "revision %d is stored by schema %d; schema %d was acknowledged at revision %d", v.revision, v.item.Schema, ack.Schema, ack.Revision)
			case v.item.Schema == ack.Schema && c.dropped(ack, stored):
				violation.Rule = "storage"
				c.r.add(violation, "revision %d is stored in version %s; storage version %s was acknowledged at revision %d", v.revision, stored, ack.Storage, ack.Revision)
			}
		}
	}
}

// dropped reports whether a version was the storage version before an acknowledgement and
// is not since. A version that was not acknowledged before may be that of a change on its
// way, which no client has seen acknowledged yet.
func (c *schemas) dropped(ack *history.Ack, version string) bool {
	before := false
	for i := range c.byRevision {
		switch a := &c.byRevision[i]; {
		case a.Deleted || a.Storage != version:
		case a.Revision < ack.Revision:
			before = true
		default:
			return false
		}
	}
	return before
}

// deleted finds what is stored or shown by a CRD that is gone. A CRD that is created again
// has a greater N; if it has not, what it makes is told from the rest by time.
func (c *schemas) deleted() {
	for i := range c.byTime {
		ack := &c.byTime[i]
		if !ack.Deleted {
			continue
		}
		was := ack.Schema
		if before := newest(c.byTime, func(a *history.Ack) bool { return a.At < ack.At }); before != nil {
			was = max(was, before.Schema)
		}
		// again is when a client can have asked for the CRD again.
		again := forever
		for j := range c.byTime {
			if next := &c.byTime[j]; !next.Deleted && next.At > ack.At && next.Schema <= was {
				again = min(again, max(next.Sent, ack.At))
			}
		}
		for j := range c.ix.h.Operations {
			op := &c.ix.h.Operations[j]
			if op.Resource == "customresourcedefinitions" && op.Verb == history.Create && op.Call > ack.At && strings.HasPrefix(op.Key, c.resource+".") && op.Sent.Schema <= was {
				again = min(again, op.Call)
			}
		}
		for _, o := range c.ix.resources[c.resource] {
			c.below(o, ack, was, again)
		}
		for j := range c.ix.h.Operations {
			op := &c.ix.h.Operations[j]
			if plural(op.Resource) != c.resource || op.Outcome != history.Done || op.Call <= ack.At || op.Return >= again {
				continue
			}
			if op.Got.UID != "" && op.Got.Name != "" && op.Got.Schema <= was || slices.ContainsFunc(op.Items, func(item history.Item) bool { return item.Schema <= was }) {
				violation := Violation{Rule: "gone", Operations: []int{j}}
				if op.Key != "" {
					violation.Key = keyOf(op.Resource, op.Key)
				}
				c.r.add(violation, "%s was answered by schema %d or older after its CRD was seen to be gone", describe(op), was)
			}
		}
	}
}

// below finds objects that are there at the revision at which the CRD is not, and objects
// that the CRD's schema stored behind that revision.
func (c *schemas) below(o *object, ack *history.Ack, was int, again int64) {
	violation := Violation{Rule: "orphan", Key: o.key}
	if v := o.live(ack.Revision); v != nil {
		violation.Writes = []int{v.write}
		c.r.add(violation, "revision %d is still there at revision %d, where the CRD was seen to be gone", v.revision, ack.Revision)
		return
	}
	for k := o.at(ack.Revision) + 1; k < len(o.versions); k++ {
		v := &o.versions[k]
		if !v.deleted && v.item.Schema <= was && (again == forever || c.ix.latestOf(v.revision) < again) {
			violation.Writes = []int{v.write}
			c.r.add(violation, "revision %d is stored by schema %d, and the CRD that had it was seen to be gone at revision %d", v.revision, v.item.Schema, ack.Revision)
			return
		}
	}
}
