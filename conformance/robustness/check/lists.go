package check

import (
	"strconv"
	"strings"

	"github.com/espalier-dev/espalier/conformance/robustness/history"
)

// A mode is which state a read asks for.
type mode struct {
	kind     string // "" (consistent), "0", "exact" or "min"
	revision int64
	limit    int
}

func parseMode(text string) mode {
	var m mode
	text, limit, _ := strings.Cut(text, "/")
	m.limit, _ = strconv.Atoi(limit)
	kind, revision, _ := strings.Cut(text, ":")
	m.kind = kind
	m.revision, _ = strconv.ParseInt(revision, 10, 64)
	return m
}

// checkLists holds each list against the log: it is the state of its resource at the
// revision that it says, all pages of it, and the revision is one that its mode admits.
// Whether a consistent list is new enough is decided by checkFresh.
func checkLists(ix *index, r *report) {
	for i := range ix.h.Operations {
		o := &ix.h.Operations[i]
		if o.Verb != history.List || o.Outcome != history.Done {
			continue
		}
		violation := Violation{Rule: "mode", Operations: []int{i}}
		revision := o.ListRevision
		if len(o.PageRevisions) > 0 && saysInconsistent(o) {
			revision = o.PageRevisions[0] // the others are as new as they are
		}
		switch m := parseMode(o.Mode); {
		case m.kind == "exact" && revision != m.revision:
			r.add(violation, "%s is of revision %d", describe(o), revision)
		case m.kind == "min" && revision < m.revision:
			r.add(violation, "%s is of the older revision %d", describe(o), revision)
		}
		if len(ix.h.Writes) == 0 {
			continue
		}
		if ix.earliestOf(min(o.ListRevision, ix.last)) > o.Return {
			violation.Rule = "future"
			r.add(violation, "%s is of revision %d, which did not exist yet", describe(o), o.ListRevision)
			continue
		}
		checkList(ix, r, i)
	}
}

func checkList(ix *index, r *report, i int) {
	o := &ix.h.Operations[i]
	low, high := o.ListRevision, o.ListRevision
	for _, page := range o.PageRevisions {
		low, high = min(low, page), max(high, page)
	}
	if low != high && !saysInconsistent(o) {
		r.add(Violation{Rule: "pages", Operations: []int{i}}, "the pages of %s are of different revisions %v", describe(o), o.PageRevisions)
		return
	}
	shown := make(map[string]bool, len(o.Items))
	for j := range o.Items {
		item := &o.Items[j]
		key := keyOf(o.Resource, item.Name)
		violation := Violation{Rule: "content", Key: key, Operations: []int{i}}
		if shown[item.Name] {
			r.add(violation, "%s shows %s twice", describe(o), item.Name)
			continue
		}
		shown[item.Name] = true
		checkListed(ix, r, violation, o, item, low, high)
	}
	checkComplete(ix, r, i, shown, low, high)
}

// checkListed compares an item of a list with the log. A list whose pages are of several
// revisions shows each item as it was at one of them.
func checkListed(ix *index, r *report, violation Violation, o *history.Operation, item *history.Item, low, high int64) {
	target := ix.objects[violation.Key]
	if target == nil {
		r.add(violation, "%s shows %s, which was never written", describe(o), item.Name)
		return
	}
	if target.unknown(low) {
		return
	}
	at := target.at(item.Revision)
	switch {
	case at < 0 || target.versions[at].revision != item.Revision || target.versions[at].deleted:
		r.add(violation, "%s shows %s at revision %d, at which nothing was written", describe(o), item.Name, item.Revision)
	case item.Revision > high || target.end(at) < low:
		r.add(violation, "%s at revision %d shows %s at revision %d, which was its state until revision %d", describe(o), low, item.Name, item.Revision, target.end(at))
	default:
		if text := difference(item, target.versions[at].item); text != "" {
			r.add(violation, "%s shows revision %d of %s in another way: %s", describe(o), item.Revision, item.Name, text)
		}
	}
}

// checkComplete finds objects that are there at the list's revision and not shown.
func checkComplete(ix *index, r *report, i int, shown map[string]bool, low, high int64) {
	o := &ix.h.Operations[i]
	namespace := strings.TrimSuffix(o.Key, "/")
	if low == high && namespace == "" {
		if live, known := ix.changesOf(o.Resource, "").liveAt(low); known && live == len(shown) {
			return // what is shown is there, and nothing else is
		}
	}
	for _, target := range ix.resources[plural(o.Resource)] {
		if shown[target.name] || namespace != "" && namespaceOf(target.name) != namespace {
			continue
		}
		// A list of several revisions must show what did not change in between.
		if v := target.live(low); v != nil && target.end(target.at(low)) >= high {
			r.add(Violation{Rule: "content", Key: target.key, Operations: []int{i}, Writes: []int{v.write}},
				"%s at revision %d does not show %s, which is there since revision %d", describe(o), low, target.name, v.revision)
		}
	}
}

// saysInconsistent reports whether the client was told that the pages are of several
// revisions: a continue token was expired, and it went on with the one for that case.
func saysInconsistent(o *history.Operation) bool {
	return o.Reason == "Expired" || strings.Contains(strings.ToLower(o.Message), "inconsistent") ||
		o.Code == 410
}
