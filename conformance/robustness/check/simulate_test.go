package check

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/espalier-dev/espalier/conformance/robustness/history"
)

// A simulation is a correct API server with replicas, clients, watches and controllers in
// one process with a clock of its own: it records histories that have no violation.
type simulation struct {
	rng      *rand.Rand
	now      int64
	revision int64
	h        history.History
	keys     []string
	versions map[string][]simVersion
	written  map[int64]simWritten
	clients  []*simClient
	late     []*simCall
	replicas []simReplica
	watches  []*simWatch
	ids      int
	whole    bool // lists are not interrupted
	large    bool // lists are rare and sessions are many
	// crd is the CRD as it is stored; change is one on its way.
	crd    simSchema
	change *simChange
}

type simVersion struct {
	revision int64
	deleted  bool
	item     history.Item
}

// A simWritten is where a revision is.
type simWritten struct {
	key   string
	index int
}

type simReplica struct {
	schema simSchema
	cached int64 // revision of its cache
	gone   bool  // it knows no CRD
}

type simSchema struct {
	n       int
	storage string
}

type simChange struct {
	to       simSchema
	sent     int64
	revision int64 // of the status that acknowledges it; 0: not all have it yet
	deleted  bool
}

type simClient struct {
	number int
	call   *simCall
	known  map[string]history.Item // what it last read
}

// A simCall is a request on its way.
type simCall struct {
	index   int // of the operation
	applied bool
	answer  history.Operation
	rest    bool // half of a list is to come
}

type simWatch struct {
	index  int
	sent   int64 // revision up to which events were sent
	queue  []history.Event
	marked bool // the end of initial events was sent
}

func newSimulation(seed uint64) *simulation {
	s := &simulation{
		rng:      rand.New(rand.NewPCG(seed, 7)),
		versions: map[string][]simVersion{},
		written:  map[int64]simWritten{},
		revision: 10,
		crd:      simSchema{0, "v1"},
	}
	s.h.Seed = seed
	for i := range 1 + s.rng.IntN(4) {
		s.keys = append(s.keys, fmt.Sprintf("ns%d/k%d", i%2, i))
	}
	slices.Sort(s.keys)
	for range 1 + s.rng.IntN(3) {
		s.replicas = append(s.replicas, simReplica{schema: s.crd, cached: s.revision})
	}
	if s.one(2) {
		s.h.Acks = append(s.h.Acks, history.Ack{Storage: "v1", Revision: s.revision})
	}
	for i := range 1 + s.rng.IntN(5) {
		s.clients = append(s.clients, &simClient{number: i, known: map[string]history.Item{}})
	}
	return s
}

// simulate runs a simulation for a number of steps and closes everything.
func simulate(seed uint64, steps int) *history.History {
	s := newSimulation(seed)
	s.run(steps)
	return &s.h
}

func (s *simulation) run(steps int) {
	for range steps {
		pace := int64(1e6)
		if s.large {
			pace = 1e5
		}
		s.now += int64(1+s.rng.IntN(5)) * pace
		switch n := s.rng.IntN(100); {
		case n < 70:
			s.client(s.clients[s.rng.IntN(len(s.clients))])
		case n < 88:
			s.watch()
		case n < 91:
			s.applyLate()
		case n < 94:
			s.collect()
		case n < 97:
			replica := &s.replicas[s.rng.IntN(len(s.replicas))]
			replica.cached += s.rng.Int64N(s.revision - replica.cached + 1)
		default:
			s.schema()
		}
	}
	for _, c := range s.clients {
		for c.call != nil {
			s.now += 1e6
			s.client(c)
		}
	}
	for _, w := range s.watches {
		s.close(w)
	}
	s.rest()
}

func (s *simulation) one(n int) bool { return s.rng.IntN(n) == 0 }

// at is the version of a key at a revision, or nil.
func (s *simulation) at(key string, revision int64) *simVersion {
	versions := s.versions[key]
	for i := len(versions) - 1; i >= 0; i-- {
		if versions[i].revision <= revision {
			if versions[i].deleted {
				return nil
			}
			return &versions[i]
		}
	}
	return nil
}

func copyItem(item history.Item) history.Item {
	item.Log = slices.Clone(item.Log)
	item.Marks = maps.Clone(item.Marks)
	item.Finalizers = slices.Clone(item.Finalizers)
	item.Owners = slices.Clone(item.Owners)
	item.Labels = maps.Clone(item.Labels)
	return item
}

// put writes a key.
func (s *simulation) put(key string, item history.Item, schema simSchema) history.Item {
	s.revision++
	item = copyItem(item)
	item.Name, item.Revision, item.Schema, item.APIVersion = key, s.revision, schema.n, "example.dev/"+schema.storage
	before := s.at(key, s.revision)
	w := history.Write{Revision: s.revision, Key: "example.dev/things/" + key, Created: before == nil, Item: item}
	if before != nil {
		w.Previous = before.revision
	}
	s.h.Writes = append(s.h.Writes, w)
	s.keep(key, simVersion{s.revision, false, item})
	return copyItem(item)
}

// remove deletes a key.
func (s *simulation) remove(key string) {
	before := s.at(key, s.revision)
	s.revision++
	s.h.Writes = append(s.h.Writes, history.Write{Revision: s.revision, Key: "example.dev/things/" + key, Deleted: true, Previous: before.revision, Item: copyItem(before.item)})
	s.keep(key, simVersion{s.revision, true, before.item})
}

func (s *simulation) keep(key string, v simVersion) {
	s.written[v.revision] = simWritten{key, len(s.versions[key])}
	s.versions[key] = append(s.versions[key], v)
}

// shown is an item as a replica shows it.
func (s *simulation) shown(item history.Item, replica int) history.Item {
	item = copyItem(item)
	item.Schema, item.APIVersion = s.replicas[replica].schema.n, "example.dev/v1"
	return item
}

// client takes a client one step further: it calls, is applied, returns.
func (s *simulation) client(c *simClient) {
	switch {
	case c.call == nil:
		s.start(c)
	case !c.call.applied:
		o := &s.h.Operations[c.call.index]
		if s.one(15) { // the request is lost, or late
			o.Outcome, o.Return = history.Unknown, s.now
			if s.one(2) {
				s.late = append(s.late, c.call)
			}
			c.call = nil
			return
		}
		s.apply(c.call)
	default:
		o := &s.h.Operations[c.call.index]
		o.Return = s.now
		if s.one(15) {
			o.Outcome = history.Unknown
		} else {
			a := &c.call.answer
			o.Outcome, o.Code, o.Reason, o.Message, o.Got, o.Items = a.Outcome, a.Code, a.Reason, a.Message, a.Got, a.Items
			o.ListRevision, o.Pages, o.PageRevisions = a.ListRevision, a.Pages, a.PageRevisions
			if o.Verb == history.Get && o.Outcome == history.Done {
				c.known[o.Key] = o.Got
			}
		}
		c.call = nil
	}
}

func (s *simulation) applyLate() {
	if len(s.late) == 0 {
		return
	}
	i := s.rng.IntN(len(s.late))
	s.apply(s.late[i])
	s.late = slices.Delete(s.late, i, i+1)
}

// start calls a random operation.
func (s *simulation) start(c *simClient) {
	s.ids++
	o := history.Operation{
		Client: c.number, Replica: s.rng.IntN(len(s.replicas)), Call: s.now, Outcome: history.Unknown,
		Key: s.keys[s.rng.IntN(len(s.keys))],
	}
	known, read := c.known[o.Key]
	n := s.rng.IntN(100)
	if s.large && (n >= 62 && n < 64 || n >= 84 && !s.one(10)) {
		n = 40
	}
	switch {
	case n < 18:
		o.Verb, o.ID = history.Create, fmt.Sprintf("c%d", s.ids)
		o.Sent = history.Item{Name: o.Key, Log: []string{o.ID}}
		if s.one(3) {
			o.Sent.Finalizers = []string{"example.dev/hold"}
		}
		if s.one(2) {
			o.Sent.Labels = map[string]string{"color": "red"}
		}
		if s.one(3) {
			if owner := s.at(s.keys[s.rng.IntN(len(s.keys))], s.revision); owner != nil && owner.item.Name != o.Key {
				o.Sent.Owners = []string{owner.item.UID}
			}
		}
	case n < 32 && read:
		o.Verb, o.ID, o.Revision = history.Update, fmt.Sprintf("u%d", s.ids), known.Revision
		if s.one(2) {
			o.UID = known.UID
		}
		o.Sent = copyItem(known)
		o.Sent.Log = append(o.Sent.Log, o.ID)
		if s.one(2) {
			o.Sent.Finalizers = nil
		}
		if o.Sent.Labels = nil; s.one(2) {
			o.Sent.Labels = map[string]string{"color": "red"}
		}
	case n < 42:
		o.Verb, o.ID, o.Mode = history.Patch, fmt.Sprintf("p%d", s.ids), "json"
		if read && s.one(3) {
			o.Mode, o.Revision = "merge", known.Revision
			o.Sent = history.Item{Name: o.Key, Log: append(slices.Clone(known.Log), o.ID)}
		}
	case n < 50:
		o.Verb, o.ID, o.Mode = history.Apply, fmt.Sprintf("a%d", s.ids), fmt.Sprintf("m%d", s.rng.IntN(2))
	case n < 62:
		o.Verb, o.ID = history.Delete, fmt.Sprintf("d%d", s.ids)
		if read && s.one(3) {
			o.UID = known.UID
		}
		if read && s.one(4) {
			o.Revision = known.Revision
		}
	case n < 64:
		o.Verb, o.ID, o.Key = history.DeleteCollection, fmt.Sprintf("x%d", s.ids), ""
		if s.one(2) {
			o.Mode = "color=red"
		}
	case n < 84:
		o.Verb = history.Get
		o.Mode = s.mode([]string{"", "", "", "0", "min"})
	default:
		o.Verb, o.Key = history.List, ""
		o.Mode = s.mode([]string{"", "", "0", "min", "exact"})
		if s.one(2) {
			o.Mode += fmt.Sprintf("/%d", 1+s.rng.IntN(3))
		}
	}
	s.h.Operations = append(s.h.Operations, o)
	c.call = &simCall{index: len(s.h.Operations) - 1}
}

func (s *simulation) mode(of []string) string {
	kind := of[s.rng.IntN(len(of))]
	if kind == "min" || kind == "exact" {
		return fmt.Sprintf("%s:%d", kind, 10+s.rng.Int64N(s.revision-9))
	}
	return kind
}

// apply does what a request asks for and keeps the answer.
func (s *simulation) apply(call *simCall) {
	o := &s.h.Operations[call.index]
	a := &call.answer
	call.applied = true
	if s.replicas[o.Replica].gone {
		*a = history.Operation{Outcome: history.Refused, Code: 404, Reason: "NotFound", Message: "the server could not find the requested resource"}
		return
	}
	switch {
	case o.Verb == history.List:
		s.list(call, o)
	case o.Verb == history.Get:
		s.get(o, a)
	case o.Verb == history.DeleteCollection:
		a.Outcome, a.Code = history.Done, 200
		for _, key := range s.keys {
			selects := parseSelector(o.Mode)
			if v := s.at(key, s.revision); v != nil && selects.selects(&v.item) {
				s.erase(key, v, o.Replica)
			}
		}
	default:
		s.write(o, a)
	}
}

func (s *simulation) read(o *history.Operation) int64 {
	cached := s.replicas[o.Replica].cached
	switch m := parseMode(o.Mode); m.kind {
	case "0":
		return cached
	case "min":
		return max(cached, m.revision)
	case "exact":
		return m.revision
	}
	return s.revision
}

func (s *simulation) get(o, a *history.Operation) {
	v := s.at(o.Key, s.read(o))
	if v == nil {
		a.Outcome, a.Code, a.Reason = history.Refused, 404, "NotFound"
		return
	}
	a.Outcome, a.Code, a.Got = history.Done, 200, s.shown(v.item, o.Replica)
}

func (s *simulation) list(call *simCall, o *history.Operation) {
	a := &call.answer
	keys := s.keys
	limit := parseMode(o.Mode).limit
	if !call.rest {
		a.Outcome, a.Code, a.ListRevision = history.Done, 200, s.read(o)
	} else {
		// The continue token has expired: the rest is of now.
		keys = keys[limit:]
		a.ListRevision = s.revision
		a.Reason, a.Message = "Expired", "inconsistent continuation"
	}
	first := !s.whole && !call.rest && limit > 0 && limit < len(keys) && s.one(4)
	if first {
		keys = keys[:limit]
		call.rest, call.applied = true, false
	}
	for _, key := range keys {
		if v := s.at(key, a.ListRevision); v != nil {
			a.Items = append(a.Items, s.shown(v.item, o.Replica))
		}
	}
	a.Pages = 1
	if limit > 0 {
		a.Pages = max(1, len(keys)/limit)
	}
	for range a.Pages {
		a.PageRevisions = append(a.PageRevisions, a.ListRevision)
	}
}

// erase deletes an object as a server does: at once, or by a mark if it has finalizers.
func (s *simulation) erase(key string, v *simVersion, replica int) history.Item {
	if len(v.item.Finalizers) == 0 {
		s.remove(key)
		return history.Item{UID: v.item.UID}
	}
	if v.item.Deleting {
		return s.shown(v.item, replica)
	}
	item := copyItem(v.item)
	item.Deleting = true
	return s.shown(s.put(key, item, s.replicas[replica].schema), replica)
}

func (s *simulation) write(o, a *history.Operation) {
	refuse := func(code int, reason string) { a.Outcome, a.Code, a.Reason = history.Refused, code, reason }
	schema := s.replicas[o.Replica].schema
	done := func(item history.Item) {
		a.Outcome, a.Code, a.Got = history.Done, 200, s.shown(s.put(o.Key, item, schema), o.Replica)
	}
	v := s.at(o.Key, s.revision)
	if v == nil && o.Verb != history.Create && o.Verb != history.Apply {
		refuse(404, "NotFound")
		return
	}
	if v != nil && (o.Revision != 0 && o.Revision != v.revision || o.UID != "" && o.UID != v.item.UID) {
		refuse(409, "Conflict")
		return
	}
	var item history.Item
	if v != nil {
		item = copyItem(v.item)
	} else {
		item = history.Item{UID: fmt.Sprintf("uid-%s-%d", strings.ReplaceAll(o.Key, "/", "-"), s.revision+1)}
	}
	switch o.Verb {
	case history.Create:
		if v != nil {
			refuse(409, "AlreadyExists")
			return
		}
		uid := item.UID
		item = copyItem(o.Sent)
		item.UID = uid
	case history.Update:
		item.Log, item.Finalizers, item.Labels, item.Marks = o.Sent.Log, o.Sent.Finalizers, o.Sent.Labels, o.Sent.Marks
		if item.Deleting && len(item.Finalizers) == 0 && len(v.item.Finalizers) > 0 {
			s.remove(o.Key)
			// Servers differ in the revision that they show of what is gone.
			if item.Revision = s.revision; s.one(2) {
				item.Revision = v.revision
			}
			a.Outcome, a.Code, a.Got = history.Done, 200, s.shown(item, o.Replica)
			return
		}
	case history.Patch:
		item.Log = append(item.Log, o.ID)
		if o.Mode == "merge" {
			item.Log = slices.Clone(o.Sent.Log)
		}
	case history.Apply:
		if item.Marks == nil {
			item.Marks = map[string]string{}
		}
		item.Marks[o.Mode] = o.ID
	case history.Delete:
		a.Outcome, a.Code, a.Got = history.Done, 200, s.erase(o.Key, v, o.Replica)
		return
	}
	done(item)
}

// collect is the garbage collector.
func (s *simulation) collect() {
	if s.replicas[0].gone {
		return
	}
	for _, key := range s.keys {
		v := s.at(key, s.revision)
		if v == nil || len(v.item.Owners) == 0 || v.item.Deleting {
			continue
		}
		lives := false
		for _, other := range s.keys {
			if owner := s.at(other, s.revision); owner != nil && slices.Contains(v.item.Owners, owner.item.UID) {
				lives = true
			}
		}
		if !lives {
			s.erase(key, v, 0)
			return
		}
	}
}
