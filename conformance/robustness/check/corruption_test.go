package check

import (
	"testing"

	"github.com/espalier-dev/espalier/conformance/robustness/history"
)

func TestCorruption(t *testing.T) {
	spoil(t, []spoiling{
		{"a key holds another object", func(h *history.History) {
			h.Writes[at(h, 19)].Name = "ns/other"
		}, "corruption/key"},
		{"the log goes back", func(h *history.History) {
			h.Writes[3], h.Writes[4] = h.Writes[4], h.Writes[3]
		}, "corruption/revision"},
		{"a revision of a key is twice in the log", func(h *history.History) {
			sparse(h)
			h.Writes = append(h.Writes, h.Writes[len(h.Writes)-1])
			h.Writes[len(h.Writes)-1].Previous = 28
		}, "corruption/revision"},
		{"no log, a write goes back behind a restore", func(h *history.History) {
			unlogged(h)
			h.Operations = append(h.Operations, history.Operation{Verb: history.Create, Key: "ns/z", ID: "z1", Call: 97e6, Return: 98e6, Outcome: history.Done,
				Sent: history.Item{Name: "ns/z", Log: []string{"z1"}}, Got: history.Item{Name: "ns/z", UID: "z", Revision: 20, Log: []string{"z1"}, Schema: 1}})
		}, "corruption/back"},
		{"no log, a list goes back behind a restore", func(h *history.History) {
			unlogged(h)
			h.Operations[opListNew].ListRevision = 20
		}, "corruption/back"},
		{"after a restore revisions begin again", func(h *history.History) {
			sparse(h)
			// The etcd of a backup of revision 27 has written again.
			again := history.Operation{Verb: history.Create, Key: "ns/z", ID: "z1", Call: 97e6, Return: 98e6, Outcome: history.Done,
				Sent: history.Item{Name: "ns/z", Log: []string{"z1"}}, Got: history.Item{Name: "ns/z", UID: "z", Revision: 28, Log: []string{"z1"}, Schema: 1}}
			h.Writes[at(h, 28)] = history.Write{Revision: 28, Key: "example.dev/things/ns/z", Created: true, Item: history.Item{Name: "ns/z", UID: "z", Log: []string{"z1"}, Schema: 1, APIVersion: "example.dev/v2"}}
			h.Operations = append(h.Operations, again)
		}, "corruption/back log/lost"},
	})
}
