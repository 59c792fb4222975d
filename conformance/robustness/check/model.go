package check

import (
	"fmt"
	"hash/maphash"
	"maps"
	"slices"
	"strings"

	"github.com/anishathalye/porcupine"

	"github.com/espalier-dev/espalier/conformance/robustness/history"
)

// A state is one key of the model. States are never changed: each step makes a new one.
type state struct {
	exists bool
	uid    string // of the object, or of the last one
	// revision of the last change; not exact: it is greater than that.
	revision   int64
	exact      bool
	length     int    // of the log
	last       string // entry of the log
	log        uint64 // hash of the log
	marks      map[string]string
	finalizers string
	deleting   bool
}

var seed = maphash.MakeSeed()

// extend is the hash of a log with one more entry.
func extend(log uint64, id string) uint64 {
	return maphash.Comparable(seed, struct {
		log uint64
		id  string
	}{log, id})
}

func hashLog(log []string) uint64 {
	var h uint64
	for _, id := range log {
		h = extend(h, id)
	}
	return h
}

// A kind of step.
type kind int

const (
	stepWrite  kind = iota // create, update, patch, apply, with its effect
	stepDelete             // a delete that was acknowledged
	stepRead               // a consistent get
	stepExists             // a refusal: the object is there
	stepAbsent             // a refusal: the object does not exist
	stepOther              // a refusal: the object is not at the revision of the precondition
	stepFact               // a write of etcd's log that no operation explains
	stepGone               // a deletion of etcd's log
	stepMaybe              // an operation with unknown outcome, where there is no log
)

// A step is an input of the model, with everything that is known of its outcome.
type step struct {
	kind      kind
	operation *history.Operation // nil for facts
	index     int                // of the operation, or of the write
	revision  int64              // at which it was done, 0: not known
	item      *history.Item      // what was shown, or what the log has; nil: not known
	hash      uint64             // of the item's log
	sent      uint64             // hash of the log that was asked for
}

func model() porcupine.Model {
	return porcupine.Model{
		Init: func() any { return state{exact: true} },
		Step: func(before, input, _ any) (bool, any) {
			s, in := before.(state), input.(*step)
			return in.apply(s)
		},
		Equal: func(a, b any) bool { return a.(state).equal(b.(state)) },
		Hash: func(s any) uint64 {
			at := s.(state)
			return at.log ^ uint64(at.revision)
		},
		DescribeOperation: func(input, _ any) string { return input.(*step).String() },
		DescribeState:     func(s any) string { return s.(state).String() },
	}
}

func (s state) equal(t state) bool {
	return s.exists == t.exists && s.uid == t.uid && s.revision == t.revision && s.exact == t.exact && s.log == t.log &&
		s.length == t.length && s.finalizers == t.finalizers && s.deleting == t.deleting && equalMaps(s.marks, t.marks)
}

func (s state) String() string {
	revision := fmt.Sprint(s.revision)
	if !s.exact {
		revision = ">" + revision
	}
	if !s.exists {
		return "absent at " + revision
	}
	text := fmt.Sprintf("at %s: %d operations, last %s, marks %v", revision, s.length, s.last, s.marks)
	if s.deleting {
		text += ", deleting"
	}
	return text
}

// apply reports whether a step is possible in a state, and the state after it.
func (in *step) apply(s state) (bool, state) {
	switch in.kind {
	case stepWrite:
		return in.write(s)
	case stepDelete:
		return in.delete(s)
	case stepRead:
		if !s.exists || !s.may(in.item.Revision) || !s.shows(in) {
			return false, s
		}
		return true, s.settled(in.item.Revision)
	case stepExists:
		return s.exists, s
	case stepAbsent:
		return !s.exists, s
	case stepOther:
		return !s.exists || !s.exact || s.deleting || s.revision != in.operation.Revision || in.operation.UID != "" && s.uid != in.operation.UID, s
	case stepFact:
		if !s.exists || s.uid != in.item.UID || s.exact && s.revision >= in.revision {
			return s.revision >= in.revision, s
		}
		s = s.settled(in.revision)
		s.deleting, s.finalizers = in.item.Deleting, joined(in.item.Finalizers)
		return true, s
	case stepGone:
		switch {
		case s.revision >= in.revision:
			return true, s
		case s.uid == in.item.UID && s.uid != "":
			s.exists = false
			return true, s.settled(in.revision)
		}
		return false, s
	case stepMaybe:
		return true, in.maybe(s)
	}
	return false, s
}

// may reports whether the state can be that of a revision.
func (s state) may(revision int64) bool {
	return s.exact && s.revision == revision || !s.exact && s.revision < revision
}

func (s state) settled(revision int64) state {
	s.revision, s.exact = revision, true
	return s
}

// shows reports whether what was shown is this state.
func (s state) shows(in *step) bool {
	return s.uid == in.item.UID && s.log == in.hash && equalMaps(s.marks, in.item.Marks) &&
		s.deleting == in.item.Deleting && s.finalizers == joined(in.item.Finalizers)
}

func joined(finalizers []string) string { return strings.Join(finalizers, ",") }

// write is a create, update, patch or apply that was done.
func (in *step) write(s state) (bool, state) {
	o := in.operation
	if in.released(s) {
		return true, s
	}
	if o.Revision != 0 && o.Verb != history.Create && (!s.exists || !s.may(o.Revision)) {
		return false, s
	}
	next, possible := in.effect(s)
	if !possible {
		return false, s
	}
	if s.exists && s.deleting && s.finalizers != "" && next.finalizers == "" {
		// The last finalizer was removed: the object is gone, whatever the answer shows.
		next.exists, next.finalizers = false, s.finalizers
		next.revision, next.exact = s.revision, false
		return true, next
	}
	if in.revision != 0 && in.revision <= s.revision {
		return false, s
	}
	if in.revision != 0 {
		next = next.settled(in.revision)
	} else {
		next.exact = false
	}
	if in.item != nil {
		if next.log != in.hash || !equalMaps(next.marks, in.item.Marks) || s.exists && s.uid != in.item.UID {
			return false, s
		}
		next.uid, next.deleting, next.finalizers = in.item.UID, in.item.Deleting, joined(in.item.Finalizers)
	}
	return true, next
}

// released reports whether an update took the last finalizer away from an object that another client had
// taken it away from just before. There was nothing left to do, and nothing was written.
func (in *step) released(s state) bool {
	o := in.operation
	return o.Verb == history.Update && o.Got.Revision == 0 && o.Got.UID == "" && in.revision == 0 && len(o.Sent.Finalizers) == 0 &&
		!s.exists && s.deleting && s.finalizers != "" && (o.UID == "" || o.UID == s.uid)
}

// effect is the state that an operation makes, and whether it can be done at all.
func (in *step) effect(s state) (state, bool) {
	o := in.operation
	next := s
	if !s.exists {
		next = state{revision: s.revision}
	}
	switch o.Verb {
	case history.Create:
		if s.exists {
			return s, false
		}
		next.setLog(in.sent, o.Sent.Log)
		next.marks, next.finalizers, next.uid = o.Sent.Marks, joined(o.Sent.Finalizers), o.Sent.UID
	case history.Update:
		if !s.exists {
			return s, false
		}
		if len(o.Sent.Log) > 0 || len(o.Sent.Marks) > 0 {
			next.setLog(in.sent, o.Sent.Log)
			next.marks, next.finalizers = o.Sent.Marks, joined(o.Sent.Finalizers)
		} else {
			next.push(o.ID)
		}
	case history.Patch:
		if !s.exists {
			return s, false
		}
		if len(o.Sent.Log) > 0 {
			next.setLog(in.sent, o.Sent.Log)
		} else {
			next.push(o.ID)
		}
	case history.Apply:
		next.marks = maps.Clone(next.marks)
		if next.marks == nil {
			next.marks = map[string]string{}
		}
		next.marks[o.Mode] = o.ID
	default:
		return s, false
	}
	next.exists = true
	return next, true
}

func (s *state) push(id string) {
	s.log, s.length, s.last = extend(s.log, id), s.length+1, id
}

func (s *state) setLog(hash uint64, log []string) {
	s.log, s.length, s.last = hash, len(log), ""
	if len(log) > 0 {
		s.last = log[len(log)-1]
	}
}

// delete is a delete that was acknowledged.
func (in *step) delete(s state) (bool, state) {
	o := in.operation
	if !s.exists || o.UID != "" && s.uid != o.UID || o.Revision != 0 && !s.may(o.Revision) {
		return false, s
	}
	if s.deleting {
		return true, s
	}
	s.exact = false
	if s.finalizers == "" {
		s.exists = false
		return true, s
	}
	s.deleting = true
	if o.Got.Deleting && o.Got.Revision != 0 {
		if o.Got.Revision <= s.revision {
			return false, s
		}
		s = s.settled(o.Got.Revision)
	}
	return true, s
}

// maybe is an operation that may have been done, and that fits at the end of everything
// if it was not.
func (in *step) maybe(s state) state {
	o := in.operation
	switch o.Verb {
	case history.Delete, history.DeleteCollection:
		if s.exists && (o.UID == "" || o.UID == s.uid) && (o.Revision == 0 || s.may(o.Revision)) && !s.deleting {
			s.deleting, s.exists, s.exact = s.finalizers != "", s.finalizers != "", false
		}
		return s
	}
	if ok, next := in.write(s); ok {
		return next
	}
	return s
}

func (in *step) String() string {
	switch in.kind {
	case stepFact, stepGone:
		text := "etcd: changed"
		if in.kind == stepGone {
			text = "etcd: deleted"
		}
		return fmt.Sprintf("%s at %d", text, in.revision)
	}
	o := in.operation
	text := describe(o)
	if o.Revision != 0 {
		text += fmt.Sprintf(" if at %d", o.Revision)
	}
	if o.UID != "" {
		text += " if " + o.UID
	}
	text += " → " + string(o.Outcome)
	if o.Reason != "" {
		text += " " + o.Reason
	}
	if in.revision != 0 {
		text += fmt.Sprintf(" at %d", in.revision)
	}
	if in.item != nil {
		text += " " + tail(in.item.Log)
		if len(in.item.Marks) > 0 {
			var marks []string
			for _, manager := range slices.Sorted(maps.Keys(in.item.Marks)) {
				marks = append(marks, manager+"="+in.item.Marks[manager])
			}
			text += " " + strings.Join(marks, " ")
		}
	}
	return text
}
