package check

import (
	"slices"
	"testing"

	"github.com/espalier-dev/espalier/conformance/robustness/history"
)

func TestCaches(t *testing.T) {
	spoil(t, []spoiling{
		{"a cache misses an object", func(h *history.History) { h.Caches[0].Items = h.Caches[0].Items[:1] }, "cache/missing"},
		{"a cache holds an old state", func(h *history.History) { h.Caches[1].Items[1] = h.Operations[opGetB].Got }, "cache/stale"},
		{"a cache holds what was deleted", func(h *history.History) {
			h.Caches[1].Items = append(slices.Clone(h.Caches[1].Items), h.Operations[opCreateOwner].Got)
		}, "cache/stale"},
		{"a cache holds what no client wrote", func(h *history.History) { h.Caches[1].Items[0].Name = "ns/nobody" }, "cache/content cache/missing"},
		{"a cache holds other bytes", func(h *history.History) { h.Caches[1].Items[0].Log = nil }, "cache/content"},
		{"a cache is empty", func(h *history.History) { h.Caches[1].Items = nil }, "cache/missing"},
	})
}

func TestGarbage(t *testing.T) {
	// The owner is deleted after its dependent, or not at all.
	spoil(t, []spoiling{
		{"an object goes before its owner", func(h *history.History) {
			sparse(h)
			own, dep := at(h, 18), at(h, 19)
			h.Writes[own], h.Writes[dep] = h.Writes[dep], h.Writes[own]
			h.Writes[own].Revision, h.Writes[dep].Revision = 18, 19
		}, "garbage/owned"},
		{"an object goes and its owner stays", func(h *history.History) {
			sparse(h)
			h.Writes = slices.Delete(h.Writes, at(h, 18), at(h, 18)+1)
			h.Operations = slices.DeleteFunc(h.Operations, func(o history.Operation) bool { return o.ID == "d1" })
		}, "garbage/owned"},
		{"an object with finalizers is marked while its owner lives", func(h *history.History) {
			sparse(h)
			h.Writes = slices.Delete(h.Writes, at(h, 18), at(h, 18)+1)
			h.Operations = slices.DeleteFunc(h.Operations, func(o history.Operation) bool { return o.ID == "d1" })
			for _, revision := range []int64{17, 19} {
				h.Writes[at(h, revision)].Finalizers = []string{"hold"}
			}
			h.Writes[at(h, 19)].Deleting, h.Writes[at(h, 19)].Deleted = true, false
			find(h, "c4").Sent.Finalizers, find(h, "c4").Got.Finalizers = []string{"hold"}, []string{"hold"}
		}, "garbage/owned"},
		{"a client deletes an object whose owner lives", func(h *history.History) {
			sparse(h)
			h.Writes = slices.Delete(h.Writes, at(h, 18), at(h, 18)+1)
			o := find(h, "d1")
			o.Key, o.Got.UID = "ns/dep", ""
		}, ""},
	})
}

func TestLeader(t *testing.T) {
	spoil(t, []spoiling{
		{"a deposed leader writes", func(h *history.History) {
			last := h.Leads[len(h.Leads)-1]
			h.Leads = append(h.Leads, history.Lead{Holder: h.Leads[0].Holder, Token: h.Leads[0].Token, Revision: last.Revision + 1})
		}, "leader/token"},
		{"two leaders have one token", func(h *history.History) {
			last := h.Leads[len(h.Leads)-1]
			h.Leads = append(h.Leads, history.Lead{Holder: "other", Token: last.Token, Revision: last.Revision + 1})
		}, "leader/holder"},
	})
}

func TestQuota(t *testing.T) {
	spoil(t, []spoiling{
		{"one too many", func(h *history.History) { h.Quotas[0].Count = h.Quotas[0].Hard + 1 }, "quota/exceeded"},
	})
}
