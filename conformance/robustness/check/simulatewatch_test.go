package check

import (
	"fmt"

	"github.com/espalier-dev/espalier/conformance/robustness/history"
)

// watch opens a watch, or takes one a step further.
func (s *simulation) watch() {
	if len(s.watches) == 0 || len(s.watches) < 6 && s.one(12) || s.large && len(s.watches) < 20 {
		s.open()
		return
	}
	i := s.rng.IntN(len(s.watches))
	w := s.watches[i]
	session := &s.h.Sessions[w.index]
	replica := &s.replicas[session.Replica]
	switch n := s.rng.IntN(20); {
	case n < 8:
		s.send(w, replica)
	case n < 17:
		for n := 0; len(w.queue) > 0 && (n == 0 || s.large); n++ {
			e := w.queue[0]
			e.At = s.now
			session.Events = append(session.Events, e)
			w.queue = w.queue[1:]
		}
	case n < 19:
		if session.Initial && !w.marked {
			w.queue = append(w.queue, history.Event{Type: "BOOKMARK", Item: history.Item{Revision: w.sent}, InitialEnd: true})
			w.marked = true
			return
		}
		s.send(w, replica)
		w.queue = append(w.queue, history.Event{Type: "BOOKMARK", Item: history.Item{Revision: w.sent}})
	default:
		if s.large && !s.one(20) {
			return
		}
		s.close(w)
		s.watches = append(s.watches[:i], s.watches[i+1:]...)
	}
}

func (s *simulation) close(w *simWatch) {
	s.h.Sessions[w.index].End = s.now
}

func (s *simulation) open() {
	session := history.Session{Client: s.rng.IntN(len(s.clients)), Replica: s.rng.IntN(len(s.replicas)), Call: s.now}
	session.Selector = []string{"", "", "color=red", "metadata.name=k1", "color!=red"}[s.rng.IntN(5)]
	replica := &s.replicas[session.Replica]
	w := &simWatch{index: len(s.h.Sessions)}
	switch s.rng.IntN(3) {
	case 0:
		session.From = 10 + s.rng.Int64N(s.revision-9)
		w.sent = session.From
	case 1:
		session.Initial = true
		switch s.rng.IntN(3) {
		case 0:
			session.From = replica.cached
		case 1:
			session.Consistent = true
			replica.cached = s.revision
		}
		fallthrough
	default:
		w.sent = replica.cached
		selects := parseSelector(session.Selector)
		for _, i := range s.rng.Perm(len(s.keys)) {
			if v := s.at(s.keys[i], w.sent); v != nil && selects.selects(&v.item) {
				w.queue = append(w.queue, history.Event{Type: "ADDED", Item: s.shown(v.item, session.Replica)})
			}
		}
	}
	s.h.Sessions = append(s.h.Sessions, session)
	s.watches = append(s.watches, w)
}

// send brings the events of a few revisions on their way.
func (s *simulation) send(w *simWatch, replica *simReplica) {
	session := &s.h.Sessions[w.index]
	selects := parseSelector(session.Selector)
	few := int64(4)
	if s.large {
		few = 40
	}
	to := min(s.revision, w.sent+1+s.rng.Int64N(few))
	for revision := w.sent + 1; revision <= to; revision++ {
		place, written := s.written[revision]
		if !written {
			continue
		}
		versions, i := s.versions[place.key], place.index
		var before *history.Item
		if i > 0 && !versions[i-1].deleted {
			before = &versions[i-1].item
		}
		old := selects.selects(before)
		now := !versions[i].deleted && selects.selects(&versions[i].item)
		var e history.Event
		switch {
		case old && now:
			e = history.Event{Type: "MODIFIED", Item: s.shown(versions[i].item, session.Replica)}
		case now:
			e = history.Event{Type: "ADDED", Item: s.shown(versions[i].item, session.Replica)}
		case old:
			e = history.Event{Type: "DELETED", Item: s.shown(*before, session.Replica)}
		default:
			continue
		}
		e.Revision = revision
		w.queue = append(w.queue, e)
	}
	w.sent = max(w.sent, to)
	replica.cached = max(replica.cached, min(w.sent, s.revision))
}

// schema changes the CRD: replicas take it one by one, and when all have it, it is
// acknowledged.
func (s *simulation) schema() {
	c := s.change
	if c == nil {
		if s.one(3) && !(s.large && len(s.h.Acks) > 20) {
			s.change = &simChange{to: simSchema{s.crd.n + 1, s.crd.storage}, sent: s.now, deleted: !s.large && s.one(4)}
			if s.one(2) {
				s.change.to.storage = fmt.Sprintf("v%d", 1+s.rng.IntN(2))
			}
			s.revision++
		}
		return
	}
	if c.deleted {
		if c.revision == 0 {
			for i := range s.replicas {
				s.replicas[i].gone = true
			}
			for _, key := range s.keys {
				if v := s.at(key, s.revision); v != nil {
					s.erase(key, v, 0)
				}
				if s.at(key, s.revision) != nil {
					s.remove(key) // a client has taken the finalizers away
				}
			}
			s.revision++
			c.revision = s.revision
			return
		}
		s.h.Acks = append(s.h.Acks, history.Ack{Deleted: true, Schema: s.crd.n, Revision: c.revision, Sent: c.sent, At: s.now})
		s.change = &simChange{to: simSchema{s.crd.n + 1, s.crd.storage}, sent: s.now + 1}
		return
	}
	if c.revision != 0 {
		s.h.Acks = append(s.h.Acks, history.Ack{Schema: c.to.n, Storage: c.to.storage, Revision: c.revision, Sent: c.sent, At: s.now})
		s.crd, s.change = c.to, nil
		return
	}
	for i := range s.replicas {
		if s.replicas[i].schema != c.to && s.one(2) {
			s.replicas[i].schema, s.replicas[i].gone = c.to, false
			return
		}
	}
	for i := range s.replicas {
		s.replicas[i].schema, s.replicas[i].gone = c.to, false
	}
	s.revision++
	c.revision = s.revision
}

// rest records what is compared when nothing changes any more.
func (s *simulation) rest() {
	for i := range s.replicas {
		cache := history.Cache{Client: i, Replica: i, Revision: s.revision, At: s.now}
		for _, key := range s.keys {
			if v := s.at(key, s.revision); v != nil {
				cache.Items = append(cache.Items, s.shown(v.item, i))
			}
		}
		s.h.Caches = append(s.h.Caches, cache)
	}
	token := int64(1)
	for i := range 6 {
		if s.one(2) {
			token++
		}
		s.h.Leads = append(s.h.Leads, history.Lead{Holder: fmt.Sprintf("h%d", token), Token: token, Revision: s.revision + int64(i)})
		s.h.Quotas = append(s.h.Quotas, history.Quota{Hard: 5, Count: s.rng.Int64N(6), Revision: s.revision + int64(i)})
	}
}
