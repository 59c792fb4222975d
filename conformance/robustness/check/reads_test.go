package check

import (
	"slices"
	"testing"

	"github.com/espalier-dev/espalier/conformance/robustness/history"
)

func TestLists(t *testing.T) {
	spoil(t, []spoiling{
		{"an object is missing", func(h *history.History) {
			o := &h.Operations[opList]
			o.Items = slices.Delete(slices.Clone(o.Items), 0, 1)
		}, "lists/content"},
		{"a page is missing", func(h *history.History) {
			o := &h.Operations[opPages]
			o.Items = o.Items[:1]
		}, "lists/content"},
		{"an object is there twice", func(h *history.History) {
			o := &h.Operations[opPages]
			o.Items = append(slices.Clone(o.Items), o.Items[1])
		}, "lists/content"},
		{"an object was deleted", func(h *history.History) {
			o := &h.Operations[opListNew]
			o.Items = append(slices.Clone(o.Items), h.Operations[opCreateOwner].Got)
			o.Items[len(o.Items)-1].Schema = 1
		}, "lists/content"},
		{"an object is older than the list", func(h *history.History) {
			o := &h.Operations[opListNew]
			o.Items[1] = h.Operations[opGetB].Got
			o.Items[1].Schema = 1
		}, "lists/content"},
		{"an object is newer than the list", func(h *history.History) {
			o := &h.Operations[opExact]
			o.Items[1] = h.Operations[opGetB].Got
		}, "lists/content"},
		{"an object shows other bytes", func(h *history.History) { h.Operations[opPages].Items[1].Log = nil }, "lists/content"},
		{"an object was never written", func(h *history.History) { h.Operations[opPages].Items[1].Name = "ns/nobody" }, "lists/content"},
		{"pages are of two revisions", func(h *history.History) {
			o := &h.Operations[opPages]
			o.PageRevisions = slices.Clone(o.PageRevisions)
			o.PageRevisions[1] = 24
		}, "lists/pages"},
		{"exact is not exact", func(h *history.History) { h.Operations[opExact].Mode = "exact:16/2" }, "lists/mode"},
		{"older than the minimum", func(h *history.History) { h.Operations[opMinimum].Mode = "min:25" }, "lists/mode"},
		{"a list of the future", func(h *history.History) {
			o := &h.Operations[opList]
			o.ListRevision = 24
			o.PageRevisions = nil
		}, "lists/future"},
	})
}

func TestListsAllow(t *testing.T) {
	spoil(t, []spoiling{
		{"pages of two revisions, and it was said", func(h *history.History) {
			o := &h.Operations[opPages]
			o.PageRevisions = []int64{24, 25}
			o.Reason = "Expired"
		}, ""},
		{"a list of one namespace", func(h *history.History) {
			o := &h.Operations[opListNew]
			o.Key = "other/"
			o.Items = nil
		}, ""},
	})
}

func TestFresh(t *testing.T) {
	spoil(t, []spoiling{
		{"a get misses a write that was acknowledged by another replica", func(h *history.History) {
			o := &h.Operations[opGetNew]
			o.Got = h.Operations[opGetB].Got
			o.Got.Schema = 1
		}, "fresh/stale linear/order"},
		{"a get does not find what was acknowledged", func(h *history.History) {
			o := &h.Operations[opGetA]
			o.Outcome, o.Code, o.Reason, o.Got = history.Refused, 404, "NotFound", history.Item{}
		}, "fresh/stale linear/order"},
		{"a get finds what was deleted", func(h *history.History) {
			o := &h.Operations[opGetGone]
			o.Outcome, o.Code, o.Reason, o.Got = history.Done, 200, "", h.Operations[opApplyA].Got
		}, "linear/order"},
		{"a list misses a write that was acknowledged by another replica", func(h *history.History) {
			o := &h.Operations[opListNew]
			o.ListRevision = 24
			o.PageRevisions = nil
			o.Items = slices.Clone(h.Operations[opAny].Items)
			for i := range o.Items {
				o.Items[i].Schema = 1
			}
		}, "fresh/stale monotonic/stale"},
		{"a consistent watch-list misses a write that was acknowledged before", func(h *history.History) {
			s := &h.Sessions[watchInitial]
			s.Consistent, s.Call = true, 57e6
			for i := range s.Events {
				s.Events[i].At = max(s.Events[i].At, 57e6)
			}
		}, "fresh/initial"},
		{"a get is older than its minimum", func(h *history.History) {
			o := &h.Operations[opGetNew]
			o.Mode = "min:28"
			o.Got = h.Operations[opGetB].Got
			o.Got.Schema = 1
		}, "fresh/stale"},
	})
}

func TestMonotonic(t *testing.T) {
	spoil(t, []spoiling{
		{"a client reads back from what was never acknowledged", func(h *history.History) {
			// p2 has an unknown outcome; client 0 has seen it.
			o := h.Operations[opPages]
			o.ListRevision, o.PageRevisions, o.Mode = 24, nil, ""
			o.Items = h.Operations[opAny].Items
			h.Operations[opPages] = o
		}, "monotonic/stale"},
		{"a client reads back by a get", func(h *history.History) {
			o := h.Operations[opGetB]
			o.Call, o.Return, o.Got = 70.5e6, 71e6, h.Operations[opUpdateB].Got
			h.Operations = slices.Insert(h.Operations, opGetB+1, o)
		}, "linear/order monotonic/stale"},
		{"another client reads back in a mode that may be stale", func(h *history.History) {
			h.Operations[opAny].ListRevision = 17
			h.Operations[opAny].PageRevisions = nil
			h.Operations[opAny].Items = h.Operations[opExact].Items
		}, ""},
	})
}

// TestAbsent shows which answers say that an object does not exist.
func TestAbsent(t *testing.T) {
	spoil(t, []spoiling{
		{"a replica does not serve the CRD yet", func(h *history.History) {
			h.Acks = h.Acks[1:]
			o := &h.Operations[opGetA]
			o.Outcome, o.Code, o.Reason, o.Got = history.Refused, 404, "NotFound", history.Item{}
		}, ""},
		{"a replica says that it does not serve the CRD", func(h *history.History) {
			o := &h.Operations[opGetA]
			o.Outcome, o.Code, o.Reason, o.Got = history.Refused, 404, "NotFound", history.Item{}
			o.Message = "the server could not find the requested resource"
		}, ""},
	})
}
