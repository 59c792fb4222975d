package check

import (
	"sort"

	"github.com/espalier-dev/espalier/conformance/robustness/history"
)

// A change is a write as watches with a selector see it.
type change struct {
	kind     string // ADDED, MODIFIED or DELETED
	revision int64
	object   *object
	item     *history.Item // what the event shows
	write    int
	// loose: the log does not say whether the object was selected before.
	loose bool
}

// changes are all changes of a resource that a selector shows, by revision.
type changes struct {
	selector selector
	// loose: the selector cannot be evaluated, so that every write may be shown.
	loose bool
	list  []change
	// live is the number of objects after each change; nil if the log does not say.
	live []int
}

// after is the index of the first change behind a revision.
func (c *changes) after(revision int64) int {
	return sort.Search(len(c.list), func(i int) bool { return c.list[i].revision > revision })
}

// changesOf returns the changes of a resource by a selector.
func (ix *index) changesOf(resource, text string) *changes {
	resource = plural(resource)
	if known := ix.changes[resource+"?"+text]; known != nil {
		return known
	}
	c := &changes{selector: parseSelector(text)}
	c.loose = c.selector.unknown || c.selector.labels && !ix.labelled
	if c.loose {
		c.selector = selector{}
	}
	for _, i := range ix.log {
		o := ix.objectOf[i]
		if o.resource != resource {
			continue
		}
		at := ix.versionOf[i]
		v := &o.versions[at]
		one := change{revision: v.revision, object: o, item: v.item, write: i, loose: c.loose}
		var before *history.Item
		if at > 0 && !o.versions[at-1].deleted {
			before = o.versions[at-1].item
		}
		if at == 0 && o.open {
			before = v.item
			one.loose = one.loose || len(c.selector.terms) > 0
		}
		now := !v.deleted && c.selector.selects(v.item)
		switch old := c.selector.selects(before); {
		case old && now:
			one.kind = "MODIFIED"
		case now:
			one.kind = "ADDED"
		case old:
			one.kind, one.item = "DELETED", before
		default:
			continue
		}
		c.list = append(c.list, one)
	}
	c.count(ix.resources[resource])
	ix.changes[resource+"?"+text] = c
	return c
}

func (c *changes) count(objects []*object) {
	for _, o := range objects {
		if o.open {
			return
		}
	}
	c.live = make([]int, len(c.list))
	live := 0
	for i := range c.list {
		switch c.list[i].kind {
		case "ADDED":
			live++
		case "DELETED":
			live--
		}
		c.live[i] = live
	}
}

// liveAt is the number of objects at a revision, and whether it is known.
func (c *changes) liveAt(revision int64) (int, bool) {
	if c.live == nil {
		return 0, false
	}
	if i := c.after(revision); i > 0 {
		return c.live[i-1], true
	}
	return 0, true
}
