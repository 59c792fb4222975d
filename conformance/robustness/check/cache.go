package check

import "github.com/espalier-dev/espalier/conformance/robustness/history"

// checkCaches compares an informer's cache at rest with etcd. A cache may be newer than
// the revision that was read before it was compared, never older.
func checkCaches(ix *index, r *report) {
	if len(ix.h.Writes) == 0 {
		return
	}
	for i := range ix.h.Caches {
		c := &ix.h.Caches[i]
		resource := ""
		held := make(map[string]*history.Item, len(c.Items))
		for j := range c.Items {
			held[c.Items[j].Name] = &c.Items[j]
			resource = c.Items[j].Resource
		}
		for name, item := range held {
			checkHeld(ix, r, c, keyOf(resource, name), item)
		}
		for _, o := range ix.resources[plural(resource)] {
			if held[o.name] != nil || o.ever(c.Revision, forever, func(v *version) bool { return v == nil }) {
				continue
			}
			r.add(Violation{Rule: "missing", Key: o.key}, "the cache of client %d on replica %d misses the object, which is in etcd at revision %d", c.Client, c.Replica, c.Revision)
		}
	}
}

func checkHeld(ix *index, r *report, c *history.Cache, key string, item *history.Item) {
	violation := Violation{Rule: "content", Key: key}
	o := ix.objects[key]
	if o == nil {
		r.add(violation, "the cache of client %d on replica %d holds an object that was never written", c.Client, c.Replica)
		return
	}
	at := o.at(item.Revision)
	if o.unknown(item.Revision) {
		return
	}
	if at < 0 || o.versions[at].revision != item.Revision || o.versions[at].deleted || o.end(at) < c.Revision {
		violation.Rule = "stale"
		r.add(violation, "the cache of client %d on replica %d holds revision %d, which is not the state at revision %d", c.Client, c.Replica, item.Revision, c.Revision)
		return
	}
	if text := difference(item, o.versions[at].item); text != "" {
		violation.Writes = []int{o.versions[at].write}
		r.add(violation, "the cache of client %d on replica %d holds revision %d in another way: %s", c.Client, c.Replica, item.Revision, text)
	}
}
