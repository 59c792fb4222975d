package check

import (
	"slices"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/conformance/robustness/history"
)

// A script drives a simulation by hand.
type script struct{ *simulation }

func newScript() script {
	s := newSimulation(1)
	s.whole = true
	s.keys = []string{"ns/a", "ns/b", "ns/dep", "ns/f", "ns/g", "ns/own"}
	s.replicas = []simReplica{{schema: s.crd, cached: s.revision}, {schema: s.crd, cached: s.revision}}
	s.clients = []*simClient{{number: 0}, {number: 1}}
	return script{s}
}

// do calls an operation, applies it and returns, each a millisecond after the other.
func (s script) do(client, replica int, o history.Operation) *history.Operation {
	o.Client, o.Replica = client, replica
	s.now += 1e6
	o.Call = s.now
	s.h.Operations = append(s.h.Operations, o)
	call := &simCall{index: len(s.h.Operations) - 1}
	s.now += 1e6
	s.apply(call)
	s.now += 1e6
	done := &s.h.Operations[call.index]
	a := &call.answer
	done.Return, done.Outcome, done.Code, done.Reason, done.Got, done.Items = s.now, a.Outcome, a.Code, a.Reason, a.Got, a.Items
	done.ListRevision, done.Pages, done.PageRevisions = a.ListRevision, a.Pages, a.PageRevisions
	return done
}

// forget makes the outcome of the last operation unknown.
func (s script) forget() {
	o := &s.h.Operations[len(s.h.Operations)-1]
	o.Outcome, o.Code, o.Reason, o.Got = history.Unknown, 0, "", history.Item{}
}

func create(key, id string, change func(*history.Item)) history.Operation {
	o := history.Operation{Verb: history.Create, Key: key, ID: id, Sent: history.Item{Name: key, Log: []string{id}}}
	if change != nil {
		change(&o.Sent)
	}
	return o
}

func patch(key, id string) history.Operation {
	return history.Operation{Verb: history.Patch, Mode: "json", Key: key, ID: id}
}

func update(got history.Item, id string, change func(*history.Item)) history.Operation {
	o := history.Operation{Verb: history.Update, Key: got.Name, ID: id, Revision: got.Revision, Sent: copyItem(got)}
	o.Sent.Log = append(o.Sent.Log, id)
	if change != nil {
		change(&o.Sent)
	}
	return o
}

func get(key string) history.Operation { return history.Operation{Verb: history.Get, Key: key} }

func list(mode string) history.Operation { return history.Operation{Verb: history.List, Mode: mode} }

// open starts a watch; drain brings everything to it.
func (s script) start(session history.Session) int {
	s.now += 1e6
	session.Call = s.now
	w := &simWatch{index: len(s.h.Sessions), sent: session.From}
	if session.Initial || session.From == 0 {
		w.sent = s.revision
		selects := parseSelector(session.Selector)
		for _, key := range s.keys {
			if v := s.at(key, w.sent); v != nil && selects.selects(&v.item) {
				w.queue = append(w.queue, history.Event{Type: "ADDED", Item: s.shown(v.item, session.Replica)})
			}
		}
		if session.Initial {
			w.queue = append(w.queue, history.Event{Type: "BOOKMARK", InitialEnd: true, Item: history.Item{Revision: w.sent}})
		}
	}
	s.h.Sessions = append(s.h.Sessions, session)
	s.simulation.watches = append(s.simulation.watches, w)
	s.drain()
	return w.index
}

func (s script) drain() {
	for _, w := range s.watches {
		for w.sent < s.revision {
			s.send(w, &s.replicas[s.h.Sessions[w.index].Replica])
		}
		session := &s.h.Sessions[w.index]
		for _, e := range w.queue {
			s.now += 1e5
			e.At = s.now
			session.Events = append(session.Events, e)
		}
		w.queue = nil
		session.End = s.now
	}
}

// mark sends a bookmark to a watch.
func (s script) mark(session int) {
	s.now += 1e6
	at := &s.h.Sessions[session]
	at.Events = append(at.Events, history.Event{Type: "BOOKMARK", At: s.now, Item: history.Item{Revision: s.watches[session].sent}})
}

// acknowledge changes the CRD on all replicas.
func (s script) acknowledge(schema simSchema) {
	sent := s.now
	s.revision += 2
	s.now += 1e6
	s.crd = schema
	for i := range s.replicas {
		s.replicas[i].schema = schema
	}
	s.h.Acks = append(s.h.Acks, history.Ack{Schema: schema.n, Storage: schema.storage, Revision: s.revision, Sent: sent, At: s.now})
}

// The operations of base, by index, where tests spoil them.
const (
	opCreateA = iota
	opCreateB
	opGetA
	opPatchA
	opApplyA
	opUpdateB
	opList
	opCreateOwner
	opCreateDependent
	opDeleteOwner
	opCreateHeld
	opDeleteHeld
	opReleaseHeld
	opExists
	opDeleteA
	opGetGone
	opCreateAgain
	opPatchUnknown
	opCreateNever
	opGetB
	opConflict
	opPages
	opExact
	opMinimum
	opAny
	opPatchNew
	opGetNew
	opListNew
)

// The sessions of base.
const (
	watchAll = iota
	watchRed
	watchInitial
	watchResumed
	watchName
)

// base is a correct history that has something of everything.
func base() *history.History {
	s := newScript()
	s.h.Acks = []history.Ack{{Schema: 0, Storage: "v1", Revision: 10}}
	all := s.start(history.Session{From: 10})
	s.start(history.Session{From: 10, Selector: "color=red", Replica: 1})
	s.do(0, 0, create("ns/a", "c1", nil))
	b := s.do(0, 0, create("ns/b", "c2", func(i *history.Item) { i.Labels = map[string]string{"color": "red"} })).Got
	s.do(1, 1, get("ns/a"))
	s.do(0, 1, patch("ns/a", "p1"))
	s.do(1, 0, history.Operation{Verb: history.Apply, Key: "ns/a", ID: "a1", Mode: "m0"})
	s.drain()
	s.do(0, 0, update(b, "u1", func(i *history.Item) { i.Labels = nil }))
	s.do(1, 1, list(""))
	owner := s.do(0, 0, create("ns/own", "c3", nil)).Got
	s.do(0, 0, create("ns/dep", "c4", func(i *history.Item) { i.Owners = []string{owner.UID} }))
	s.do(1, 0, history.Operation{Verb: history.Delete, Key: "ns/own", ID: "d1"})
	s.collect()
	s.drain()
	s.mark(all)
	s.do(0, 1, create("ns/f", "c5", func(i *history.Item) { i.Finalizers = []string{"example.dev/hold"} }))
	held := s.do(0, 1, history.Operation{Verb: history.Delete, Key: "ns/f", ID: "d2"}).Got
	s.start(history.Session{Initial: true, Client: 1, Replica: 1})
	s.do(0, 1, update(held, "u2", func(i *history.Item) { i.Finalizers = nil }))
	s.do(1, 1, create("ns/b", "c6", nil))
	a := s.at("ns/a", s.revision).item
	s.do(0, 0, history.Operation{Verb: history.Delete, Key: "ns/a", ID: "d3", UID: a.UID})
	s.do(1, 1, get("ns/a"))
	s.do(0, 0, create("ns/a", "c7", nil))
	s.drain()
	s.start(history.Session{From: 19, Client: 1})
	s.start(history.Session{Selector: "metadata.name=b"})
	s.do(1, 0, patch("ns/b", "p2"))
	s.forget()
	s.replicas[0].gone = true // the request is lost
	s.do(1, 0, create("ns/g", "c8", nil))
	s.replicas[0].gone = false
	s.forget()
	s.do(0, 1, get("ns/b"))
	s.do(0, 1, update(a, "u3", nil))
	s.do(0, 0, list("/1"))
	s.do(0, 0, list("exact:17/2"))
	s.do(1, 1, list("min:20"))
	s.do(1, 1, list("0"))
	s.acknowledge(simSchema{1, "v2"})
	s.do(0, 0, patch("ns/b", "p3"))
	s.do(1, 1, get("ns/b"))
	s.do(1, 1, list(""))
	s.drain()
	s.mark(all)
	for _, w := range s.watches {
		s.close(w)
	}
	s.rest()
	return &s.h
}

func TestBase(t *testing.T) {
	h := base()
	for _, v := range All(h) {
		t.Errorf("%s", v)
	}
	if t.Failed() || testing.Verbose() {
		var b strings.Builder
		Print(&b, h)
		t.Log(b.String())
	}
}

// A spoiling breaks a correct history in one way.
type spoiling struct {
	name  string
	spoil func(h *history.History)
	want  string // checker/rule of all violations, sorted
}

// spoil runs a table: base has nothing, and with one spoiling exactly what is said.
func spoil(t *testing.T, table []spoiling) {
	t.Helper()
	for _, s := range table {
		t.Run(s.name, func(t *testing.T) {
			h := base()
			s.spoil(h)
			var rules []string
			violations := All(h)
			for _, v := range violations {
				rules = append(rules, v.Checker+"/"+v.Rule)
			}
			slices.Sort(rules)
			got := strings.Join(slices.Compact(rules), " ")
			if got == s.want {
				return
			}
			for _, v := range violations {
				t.Logf("%s", v)
			}
			t.Errorf("got %q, want %q", got, s.want)
		})
	}
}
