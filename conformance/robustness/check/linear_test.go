package check

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/conformance/robustness/history"
)

// unlogged is base without etcd's log, so that porcupine decides alone.
func unlogged(h *history.History) { h.Writes = nil }

func TestLinear(t *testing.T) {
	spoil(t, []spoiling{
		{"no log, nothing wrong", unlogged, ""},
		{"no log, a stale get", func(h *history.History) {
			unlogged(h)
			h.Operations[opGetNew].Got = h.Operations[opGetB].Got
			h.Operations[opGetNew].Got.Schema = 1
		}, "linear/order"},
		{"no log, a get finds nothing", func(h *history.History) {
			unlogged(h)
			o := &h.Operations[opGetNew]
			o.Outcome, o.Code, o.Reason, o.Got = history.Refused, 404, "NotFound", history.Item{}
		}, "linear/order"},
		{"no log, a get finds what was deleted", func(h *history.History) {
			unlogged(h)
			h.Operations[opGetGone] = h.Operations[opGetA]
			h.Operations[opGetGone].Call, h.Operations[opGetGone].Return = 51.7e6, 53.7e6
		}, "linear/order"},
		{"no log, a lost update", func(h *history.History) {
			unlogged(h)
			o := &h.Operations[opGetNew]
			o.Got.Log = slices.Delete(slices.Clone(o.Got.Log), 1, 2)
		}, "linear/order"},
		{"no log, a create of what is there", func(h *history.History) {
			unlogged(h)
			h.Operations = slices.Delete(h.Operations, opDeleteA, opDeleteA+2)
		}, "linear/order"},
		{"no log, a second delete", func(h *history.History) {
			unlogged(h)
			o := h.Operations[opDeleteOwner]
			o.Call, o.Return = 97e6, 98e6
			h.Operations = append(h.Operations, o)
		}, "linear/order"},
		{"a mark that was never set", func(h *history.History) {
			unlogged(h)
			h.Operations[opGetNew].Got.Marks = map[string]string{"m0": "a1"}
		}, "linear/order"},
	})
}

// TestUnknown shows that an operation with unknown outcome stays open without a log: it
// may have been done or not.
func TestUnknown(t *testing.T) {
	for name, spoil := range map[string]func(*history.History){
		"done":    func(*history.History) {},
		"at once": func(h *history.History) { h.Operations[opPatchUnknown].Return = h.Operations[opPatchUnknown].Call },
		"never": func(h *history.History) {
			for _, i := range []int{opGetB, opPatchNew, opGetNew} {
				h.Operations[i].Got.Log = slices.DeleteFunc(slices.Clone(h.Operations[i].Got.Log), func(id string) bool { return id == "p2" })
			}
			h.Operations[opGetB].Got.Revision = 15
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := base()
			unlogged(h)
			spoil(h)
			for _, v := range One(h, Linear) {
				t.Errorf("%s", v)
			}
		})
	}
}

// TestUndecided shows that a key that takes too long without a log is said to be
// undecided: thirty creates and deletes at the same time, and a read of nothing that fits.
func TestUndecided(t *testing.T) {
	if testing.Short() {
		t.Skip("takes the time that a key may take")
	}
	h := &history.History{}
	for i := range 40 {
		id := string(rune('A' + i))
		h.Operations = append(h.Operations,
			history.Operation{Verb: history.Apply, Key: "k", ID: id, Mode: id, Call: 1, Return: 2, Outcome: history.Unknown},
		)
	}
	h.Operations = append(h.Operations, history.Operation{Verb: history.Get, Key: "k", Call: 3, Return: 4, Outcome: history.Done, Got: history.Item{Name: "k", Revision: 9, UID: "nobody"}})
	violations := All(h)
	if len(violations) != 1 || violations[0].Rule != "undecided" {
		t.Errorf("got %v, want undecided", violations)
	}
}

func TestPicture(t *testing.T) {
	h := base()
	h.Operations[opGetNew].Got.Log = nil
	h.Faults = append(h.Faults, history.Fault{Name: "cut", Begin: 20e6, End: 40e6})
	path := filepath.Join(t.TempDir(), "picture.html")
	if err := Picture(path, h, "things/ns/b"); err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"patch ns/b p2", "revision 25", "cut"} {
		if !strings.Contains(string(page), want) {
			t.Errorf("the picture does not have %q", want)
		}
	}
	if err := Picture(path, h, "things/nobody"); err == nil {
		t.Error("a picture of a key without operations was drawn")
	}
}
