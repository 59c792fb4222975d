package check

import (
	"slices"
	"time"

	"github.com/espalier-dev/espalier/conformance/robustness/history"
)

// minimiseTime bounds Minimise: the smallest history so far is better than none.
const minimiseTime = 20 * time.Second

// Minimise returns the smallest history that it finds that a checker still complains
// about, by the same rule as about the whole; the history itself if it does not complain.
//
// It only takes away what cannot make a correct history incorrect: whole keys, watches,
// reads, operations that wrote nothing, the end of the log with everything that depends
// on it, the beginning and the end of watches. A write that is in the log stays, because
// without it the log would have something that no client asked for.
func Minimise(h *history.History, checker string) *history.History {
	found := One(h, checker)
	if len(found) == 0 {
		return h
	}
	m := &minimiser{best: h, checker: checker, rule: found[0].Rule, deadline: time.Now().Add(minimiseTime)}
	if key := found[0].Key; key != "" {
		m.try(withoutKeys(h, func(k string) bool { return k == key }))
	}
	for size := -1; size != weight(m.best) && !m.late(); {
		size = weight(m.best)
		m.truncate()
		m.keys()
		m.parts()
		m.operations()
		m.events()
	}
	return m.best
}

// weight is what Minimise makes small.
func weight(h *history.History) int {
	n := len(h.Operations) + len(h.Writes) + len(h.Sessions) + len(h.Acks) + len(h.Caches) + len(h.Leads) + len(h.Quotas)
	for i := range h.Sessions {
		n += len(h.Sessions[i].Events)
	}
	for i := range h.Operations {
		n += len(h.Operations[i].Items)
	}
	return n
}

type minimiser struct {
	best          *history.History
	checker, rule string
	deadline      time.Time
}

func (m *minimiser) late() bool { return time.Now().After(m.deadline) }

// try keeps a history if the checker complains about it as before.
func (m *minimiser) try(h *history.History) bool {
	if m.late() || h == nil {
		return false
	}
	for _, v := range One(h, m.checker) {
		if v.Rule == m.rule {
			m.best = h
			return true
		}
	}
	return false
}

// remove takes away as many of n things as it can: halves first, then smaller parts. The
// function makes the history in which the things that are not kept are missing.
func (m *minimiser) remove(n int, without func(kept func(int) bool) *history.History) {
	kept := make([]bool, n)
	for i := range kept {
		kept[i] = true
	}
	for size := n; size > 0; size /= 2 {
		for from := 0; from < n && !m.late(); from += size {
			to := min(n, from+size)
			if !slices.Contains(kept[from:to], true) {
				continue
			}
			before := slices.Clone(kept)
			for i := from; i < to; i++ {
				kept[i] = false
			}
			if !m.try(without(func(i int) bool { return kept[i] })) {
				kept = before
			}
		}
	}
}

// keys removes whole keys.
func (m *minimiser) keys() {
	h := m.best
	numbers := map[string]int{}
	number := func(resource, name string) {
		if key := keyOf(resource, name); name != "" {
			if _, known := numbers[key]; !known {
				numbers[key] = len(numbers)
			}
		}
	}
	for i := range h.Operations {
		number(h.Operations[i].Resource, h.Operations[i].Key)
	}
	for i := range h.Writes {
		number(h.Writes[i].Resource, nameInKey(&h.Writes[i]))
	}
	m.remove(len(numbers), func(kept func(int) bool) *history.History {
		return withoutKeys(h, func(key string) bool {
			n, known := numbers[key]
			return !known || kept(n)
		})
	})
}

// withoutKeys is a history of some keys only.
func withoutKeys(h *history.History, kept func(key string) bool) *history.History {
	out := *h
	out.Operations = nil
	for _, o := range h.Operations {
		if o.Key != "" && o.Verb != history.List && o.Verb != history.DeleteCollection && !kept(keyOf(o.Resource, o.Key)) {
			continue
		}
		o.Items = filter(o.Items, func(item *history.Item) bool { return kept(keyOf(o.Resource, item.Name)) })
		out.Operations = append(out.Operations, o)
	}
	out.Writes = filter(h.Writes, func(w *history.Write) bool { return kept(keyOf(w.Resource, nameInKey(w))) })
	out.Sessions = slices.Clone(h.Sessions)
	for i := range out.Sessions {
		s := &out.Sessions[i]
		s.Events = filter(s.Events, func(e *history.Event) bool {
			return e.Type == "BOOKMARK" || kept(keyOf(s.Resource, e.Name))
		})
	}
	out.Caches = slices.Clone(h.Caches)
	for i := range out.Caches {
		out.Caches[i].Items = filter(out.Caches[i].Items, func(item *history.Item) bool { return kept(keyOf(item.Resource, item.Name)) })
	}
	return &out
}

func filter[T any](all []T, kept func(*T) bool) []T {
	var out []T
	for i := range all {
		if kept(&all[i]) {
			out = append(out, all[i])
		}
	}
	return out
}

// some is the elements at kept indices.
func some[T any](all []T, kept func(int) bool) []T {
	var out []T
	for i := range all {
		if kept(i) {
			out = append(out, all[i])
		}
	}
	return out
}

// parts removes watches and what is recorded besides. Faults stay: they excuse. Where a
// CRD was deleted, all acknowledgements stay: they say when nothing is to be expected.
func (m *minimiser) parts() {
	part(m, func(h *history.History) *[]history.Session { return &h.Sessions })
	part(m, func(h *history.History) *[]history.Cache { return &h.Caches })
	part(m, func(h *history.History) *[]history.Lead { return &h.Leads })
	part(m, func(h *history.History) *[]history.Quota { return &h.Quotas })
	if !slices.ContainsFunc(m.best.Acks, func(a history.Ack) bool { return a.Deleted }) {
		part(m, func(h *history.History) *[]history.Ack { return &h.Acks })
	}
}

// part removes what it can of one list.
func part[T any](m *minimiser, of func(*history.History) *[]T) {
	h := m.best
	m.remove(len(*of(h)), func(kept func(int) bool) *history.History {
		out := *h
		*of(&out) = some(*of(h), kept)
		return &out
	})
}

// operations removes reads and what has written nothing.
func (m *minimiser) operations() {
	h := m.best
	removable := removableOperations(h)
	m.remove(len(removable), func(kept func(int) bool) *history.History {
		gone := map[int]bool{}
		for n, i := range removable {
			gone[i] = !kept(n)
		}
		out := *h
		out.Operations = some(h.Operations, func(i int) bool { return !gone[i] })
		return &out
	})
}

// removableOperations are reads and what has written nothing. A delete that may have been
// done stays: it explains what the log has.
func removableOperations(h *history.History) []int {
	ix := newIndex(h)
	var removable []int
	for i := range h.Operations {
		o := &h.Operations[i]
		_, written := ix.writeOf(o)
		switch {
		case !o.Write(), o.Outcome == history.Refused && !written,
			o.Outcome == history.Unknown && !written && len(h.Writes) > 0 && o.Verb != history.Delete && o.Verb != history.DeleteCollection:
			removable = append(removable, i)
		}
	}
	return removable
}

// events removes the end of watches, and their beginning where they can be resumed.
func (m *minimiser) events() {
	for i := range m.best.Sessions {
		h := m.best
		s := h.Sessions[i]
		cut := func(change func(*history.Session)) bool {
			out := *h
			out.Sessions = slices.Clone(h.Sessions)
			change(&out.Sessions[i])
			return m.try(&out)
		}
		// The first that is enough, by halves: what is needed is mostly at one place.
		low, high := 0, len(s.Events)
		for low < high && !m.late() {
			middle := (low + high) / 2
			if cut(func(s *history.Session) { s.Events = s.Events[:middle] }) {
				high = middle
			} else {
				low = middle + 1
			}
		}
		h = m.best
		s = h.Sessions[i]
		from, to := 0, len(s.Events)
		for from < to && !m.late() {
			middle := (from + to + 1) / 2
			if cut(func(s *history.Session) { resume(s, middle) }) {
				from = middle
			} else {
				to = middle - 1
			}
		}
	}
}

// resume makes a watch begin behind some of its events.
func resume(s *history.Session, events int) {
	if events == 0 || (s.Initial || s.From <= 0) && !slices.ContainsFunc(s.Events[:events], func(e history.Event) bool { return e.Type == "BOOKMARK" }) {
		return // within the initial state
	}
	s.From, s.Initial = s.Events[events-1].Revision, false
	s.Events = s.Events[events:]
}
