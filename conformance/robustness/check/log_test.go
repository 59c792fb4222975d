package check

import (
	"slices"
	"testing"

	"github.com/espalier-dev/espalier/conformance/robustness/history"
)

// at is the index of the write of a revision.
func at(h *history.History, revision int64) int {
	return slices.IndexFunc(h.Writes, func(w history.Write) bool { return w.Revision == revision })
}

// sparse is base without what shows the same in other ways, so that only the log and the
// answers of writes speak.
func sparse(h *history.History) {
	h.Sessions, h.Caches = nil, nil
	h.Operations = slices.DeleteFunc(h.Operations, func(o history.Operation) bool { return !o.Write() })
}

func find(h *history.History, id string) *history.Operation {
	i := slices.IndexFunc(h.Operations, func(o history.Operation) bool { return o.ID == id })
	return &h.Operations[i]
}

// again is the same update of another client. The answers to both show nothing, as clients record them of
// what is gone.
func again(update *history.Operation, id string) history.Operation {
	update.Got = history.Item{Schema: -1}
	o := *update
	o.ID, o.Client = id, 9
	o.Sent.Log = append(slices.Clone(o.Sent.Log[:len(o.Sent.Log)-1]), id)
	return o
}

func TestLog(t *testing.T) {
	spoil(t, []spoiling{
		{"an acknowledged patch is not in the log", func(h *history.History) {
			sparse(h)
			h.Writes = slices.Delete(h.Writes, at(h, 28), at(h, 28)+1)
		}, "log/lost"},
		{"an acknowledged create is not in the log", func(h *history.History) {
			sparse(h)
			h.Operations = append(h.Operations, history.Operation{
				Verb: history.Create, Key: "ns/z", ID: "z1", Call: 97e6, Return: 98e6, Outcome: history.Done,
				Sent: history.Item{Name: "ns/z", Log: []string{"z1"}}, Got: history.Item{Name: "ns/z", UID: "z", Revision: 29, Log: []string{"z1"}, Schema: 1},
			})
		}, "log/lost"},
		{"an acknowledged delete is not in the log", func(h *history.History) {
			sparse(h)
			h.Operations = append(h.Operations, history.Operation{Verb: history.Delete, Key: "ns/b", ID: "z1", Call: 97e6, Return: 98e6, Outcome: history.Done})
		}, "log/lost"},
		{"an acknowledged deletecollection left an object", func(h *history.History) {
			sparse(h)
			h.Operations = append(h.Operations, history.Operation{Verb: history.DeleteCollection, ID: "z1", Call: 97e6, Return: 98e6, Outcome: history.Done})
		}, "log/lost"},
		{"an acknowledged deletecollection left what it selects", func(h *history.History) {
			sparse(h)
			h.Writes[at(h, 28)].Labels, find(h, "p3").Got.Labels = map[string]string{"pool": "bulk"}, map[string]string{"pool": "bulk"}
			h.Writes[at(h, 24)].Labels, find(h, "c7").Got.Labels = map[string]string{"pool": "other"}, map[string]string{"pool": "other"}
			h.Operations = append(h.Operations, history.Operation{Verb: history.DeleteCollection, Mode: "pool=bulk", ID: "z1", Call: 97e6, Return: 98e6, Outcome: history.Done})
		}, "log/lost"},
		{"two updates take the last finalizer away at the same time", func(h *history.History) {
			sparse(h)
			h.Operations = append(h.Operations, again(find(h, "u2"), "z1"))
		}, ""},
		{"an update takes the last finalizer away from what is gone", func(h *history.History) {
			sparse(h)
			o := again(find(h, "u2"), "z1")
			o.Call, o.Return = 97e6, 98e6
			h.Operations = append(h.Operations, o)
		}, "log/lost"},
		{"an object with finalizers is deleted", func(h *history.History) {
			sparse(h)
			for _, revision := range []int64{16, 18} {
				h.Writes[at(h, revision)].Finalizers = []string{"hold"}
			}
			find(h, "c3").Sent.Finalizers, find(h, "c3").Got.Finalizers = []string{"hold"}, []string{"hold"}
		}, "log/finalizers"},
		{"a refused create was written", func(h *history.History) {
			sparse(h)
			o := find(h, "c7")
			o.Outcome, o.Code, o.Reason, o.Got = history.Refused, 409, "AlreadyExists", history.Item{}
		}, "linear/order log/refused"},
		{"a refused patch was written", func(h *history.History) {
			sparse(h)
			o := find(h, "p3")
			o.Outcome, o.Code, o.Reason, o.Got = history.Refused, 403, "Forbidden", history.Item{}
		}, "log/refused"},
		{"a patch was done twice in one write", func(h *history.History) {
			sparse(h)
			w := &h.Writes[at(h, 28)]
			w.Log = append(slices.Clone(w.Log), "p3")
			o := find(h, "p3")
			o.Got.Log = w.Log
		}, "linear/order log/effect log/twice"},
		{"a patch was done twice in two writes", func(h *history.History) {
			sparse(h)
			w := h.Writes[at(h, 28)]
			w.Previous, w.Revision = 28, 29
			w.Log = append(slices.Clone(w.Log), "p3")
			h.Writes = append(h.Writes, w)
		}, "log/twice"},
		{"a deleted object returns with its UID", func(h *history.History) {
			sparse(h)
			w := h.Writes[at(h, 16)] // the create of own, done again
			w.Revision = 29
			h.Writes = append(h.Writes, w)
		}, "log/resurrected log/twice schema/stored"},
		{"a create overwrites", func(h *history.History) {
			sparse(h)
			h.Writes[at(h, 24)].Created, h.Writes[at(h, 24)].Previous = false, 14
			h.Writes[at(h, 24)].UID = h.Writes[at(h, 23)].UID
			find(h, "c7").Got.UID = h.Writes[at(h, 23)].UID
			h.Writes = slices.Delete(h.Writes, at(h, 23), at(h, 23)+1)
			h.Operations = slices.DeleteFunc(h.Operations, func(o history.Operation) bool { return o.ID == "d3" })
		}, "linear/order log/effect"},
		{"an object has another UID without a deletion", func(h *history.History) {
			sparse(h)
			h.Writes[at(h, 28)].UID = "other"
			find(h, "p3").Got.UID = "other"
		}, "linear/order log/uid"},
		{"a UID is below two keys", func(h *history.History) {
			sparse(h)
			h.Writes[at(h, 24)].UID = h.Writes[at(h, 12)].UID
			find(h, "c7").Got.UID = h.Writes[at(h, 12)].UID
		}, "log/resurrected"},
		{"etcd names another predecessor", func(h *history.History) {
			sparse(h)
			h.Writes[at(h, 28)].Previous = 15
		}, "log/chain"},
		{"a key is changed that does not exist", func(h *history.History) {
			sparse(h)
			h.Writes = slices.Delete(h.Writes, at(h, 24), at(h, 24)+1)
			w := h.Writes[at(h, 23)]
			w.Deleted, w.Revision, w.Previous, w.UID, w.Log, w.Marks = false, 24, 14, "uid-ns-a-24", []string{"c7"}, nil
			h.Writes = slices.Insert(h.Writes, at(h, 25), w)
		}, "log/chain"},
		{"the acknowledged revision is not that of the write", func(h *history.History) {
			sparse(h)
			find(h, "p1").Got.Revision = 12
		}, "log/revision"},
		{"a write has an operation that no client sent", func(h *history.History) {
			sparse(h)
			h.Operations = slices.DeleteFunc(h.Operations, func(o history.Operation) bool { return o.ID == "p2" })
		}, "linear/order log/invented"},
		{"a patch drops what was there", func(h *history.History) {
			sparse(h)
			h.Writes[at(h, 28)].Log = []string{"c2", "u1", "p3"}
			find(h, "p3").Got.Log = []string{"c2", "u1", "p3"}
		}, "linear/order log/effect"},
		{"an update with precondition replaces a newer revision", func(h *history.History) {
			sparse(h)
			find(h, "u1").Revision = 11
		}, "linear/order log/effect"},
		{"an apply loses the other manager's mark", func(h *history.History) {
			sparse(h)
			w := h.Writes[at(h, 28)]
			w.Previous, w.Revision, w.Marks, w.Log = 28, 29, map[string]string{"m1": "z1"}, []string{"c2"}
			h.Writes = append(h.Writes, w)
			h.Operations = append(h.Operations, history.Operation{Verb: history.Apply, Key: "ns/b", ID: "z1", Mode: "m1", Call: 97e6, Return: 98e6, Outcome: history.Done, Got: w.Item})
			h.Operations[len(h.Operations)-1].Got.Revision = 29
		}, "linear/order log/effect"},
		{"a client changes the log without an operation", func(h *history.History) {
			sparse(h)
			w := h.Writes[at(h, 28)]
			w.Previous, w.Revision, w.Log = 28, 29, w.Log[:1]
			h.Writes = append(h.Writes, w)
		}, "log/effect"},
		{"an answer shows what is not stored", func(h *history.History) {
			sparse(h)
			find(h, "p3").Got.Owners = []string{"nobody"}
		}, "log/answer"},
		{"a get shows what is not stored", func(h *history.History) {
			h.Operations[opGetNew].Got.Labels = map[string]string{"color": "green"}
		}, "log/answer"},
		{"a get shows a revision at which nothing was written", func(h *history.History) {
			h.Operations[opGetNew].Got.Revision = 26
		}, "linear/order log/answer"},
		{"a get shows the future", func(h *history.History) {
			h.Operations[opGetA].Got = h.Operations[opApplyA].Got
		}, "linear/order log/future"},
		{"a create is refused because of an object that does not exist", func(h *history.History) {
			h.Operations[opExists].Key = "ns/own"
		}, "linear/order log/reason"},
		{"an update is refused because of an object that is there", func(h *history.History) {
			h.Operations[opConflict].Reason, h.Operations[opConflict].Code = "NotFound", 404
		}, "linear/order log/reason"},
		{"an update is refused as a conflict without one", func(h *history.History) {
			h.Operations[opConflict].Revision, h.Operations[opConflict].Sent.UID = 24, ""
		}, "linear/order log/reason"},
		{"etcd has an operation before one that returned before it was called", func(h *history.History) {
			sparse(h)
			a, b := find(h, "p1"), find(h, "a1")
			a.Call, a.Return, b.Call, b.Return = b.Call, b.Return, a.Call, a.Return
		}, "corruption/back linear/order log/order"},
	})
}
