package check

import (
	"slices"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/conformance/robustness/history"
)

// gone makes a history in which the CRD is deleted at the end, with all objects.
func gone(h *history.History) {
	for i, revision := range []int64{24, 28} {
		w := h.Writes[at(h, revision)]
		w.Created, w.Deleted, w.Previous, w.Revision = false, true, revision, int64(29+i)
		h.Writes = append(h.Writes, w)
	}
	h.Caches = nil
	h.Acks = append(h.Acks, history.Ack{Deleted: true, Schema: 1, Revision: 31, Sent: 99e6, At: 100e6})
}

func TestSchema(t *testing.T) {
	spoil(t, []spoiling{
		{"a get shows the old schema", func(h *history.History) { h.Operations[opGetNew].Got.Schema = 0 }, "schema/answer"},
		{"a get shows no default at all", func(h *history.History) { h.Operations[opGetNew].Got.Schema = -1 }, "schema/answer"},
		{"a list shows the old schema", func(h *history.History) { h.Operations[opListNew].Items[0].Schema = 0 }, "schema/answer"},
		{"a patch is stored by the old schema", func(h *history.History) { h.Writes[at(h, 28)].Schema = 0 }, "schema/stored"},
		{"a patch is stored in the old version", func(h *history.History) { h.Writes[at(h, 28)].APIVersion = "example.dev/v1" }, "schema/storage"},
		{"an open watch sends the old schema", func(h *history.History) {
			h.Sessions[watchAll].Events[event(h, watchAll, 28)].Schema = 0
		}, "schema/event"},
		{"a new watch sends the old schema", func(h *history.History) {
			s := h.Sessions[watchResumed]
			s.Events = slices.Clone(s.Events)
			s.Call, s.End = 97e6, 99e6
			for i := range s.Events {
				s.Events[i].At = 98e6
				s.Events[i].Schema = 1
			}
			s.Events[3].Schema = 0
			h.Sessions = append(h.Sessions, s)
		}, "schema/event"},
		{"an old event is sent long after the acknowledgement", func(h *history.History) {
			for _, s := range h.Sessions {
				for i := range s.Events {
					if e := &s.Events[i]; e.At > 90e6 {
						e.At += int64(20 * time.Second)
					}
				}
			}
			h.Sessions[watchAll].Events[event(h, watchAll, 25)].Schema = 0
		}, "schema/late"},
		{"an object outlives its CRD", func(h *history.History) {
			gone(h)
			h.Writes = slices.DeleteFunc(h.Writes, func(w history.Write) bool { return w.Revision == 30 })
		}, "schema/orphan"},
		{"an object is stored below a CRD that is gone", func(h *history.History) {
			gone(h)
			h.Operations = append(h.Operations, history.Operation{Verb: history.Create, Key: "ns/z", ID: "z1", Call: 98e6, Return: 101e6, Outcome: history.Unknown, Sent: history.Item{Name: "ns/z", Log: []string{"z1"}}})
			h.Writes = append(h.Writes, history.Write{Revision: 32, Key: "example.dev/things/ns/z", Created: true, Item: history.Item{Name: "ns/z", UID: "z", Log: []string{"z1"}, Schema: 1, APIVersion: "example.dev/v2"}})
			// The CRD is created again, and the object appears.
			h.Acks = append(h.Acks, history.Ack{Schema: 2, Storage: "v2", Revision: 34, Sent: 110e6, At: 120e6})
		}, "schema/orphan"},
		{"something is shown after the CRD is gone", func(h *history.History) {
			gone(h)
			o := h.Operations[opGetNew]
			o.Call, o.Return = 101e6, 102e6
			o.Mode = "0"
			h.Operations = append(h.Operations, o)
		}, "schema/gone"},
	})
}

func TestSchemaAllows(t *testing.T) {
	spoil(t, []spoiling{
		{"an event was on its way", func(h *history.History) {
			h.Sessions[watchAll].Events[event(h, watchAll, 25)].Schema = 0
		}, ""},
		{"an event was held up by a fault", func(h *history.History) {
			for _, s := range h.Sessions {
				for i := range s.Events {
					if e := &s.Events[i]; e.At > 90e6 {
						e.At += int64(20 * time.Second)
					}
				}
			}
			h.Faults = []history.Fault{{Name: "cut", Begin: 80e6, End: int64(15 * time.Second)}}
			h.Sessions[watchAll].Events[event(h, watchAll, 25)].Schema = 0
		}, ""},
		{"a request was called before the acknowledgement", func(h *history.History) {
			h.Operations[opGetNew].Call = 84.5e6
			h.Operations[opGetNew].Got.Schema = 0
		}, ""},
		{"a newer schema is not acknowledged yet", func(h *history.History) {
			h.Operations[opGetNew].Got.Schema = 2
			h.Writes[at(h, 28)].Schema, h.Writes[at(h, 28)].APIVersion = 2, "example.dev/v3"
		}, ""},
		{"a storage version is not acknowledged yet", func(h *history.History) {
			h.Writes[at(h, 28)].APIVersion = "example.dev/v3"
		}, ""},
		{"a CRD is deleted", gone, ""},
	})
}
