package check

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/espalier-dev/espalier/conformance/robustness/history"
)

// Porcupine is exponential in the number of operations that overlap without a bound. By
// etcd's log nothing overlaps so, and the limits are not met; without a log they are.
const (
	keyTime   = 2 * time.Second
	wholeTime = 10 * time.Second
)

// checkLinear asks porcupine for each key whether its operations can be put into one
// order that respects their times. An operation with unknown outcome was done if its ID
// is in etcd's log, at that revision; otherwise it was not. Without a log it stays open.
func checkLinear(ix *index, r *report) {
	deadline := time.Now().Add(wholeTime)
	undecided := 0
	example := ""
	keys := keysOf(ix)
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		steps := linearSteps(ix, key, keys[key])
		if len(steps) == 0 {
			continue
		}
		left := min(keyTime, time.Until(deadline))
		result := porcupine.Unknown
		if left > 0 {
			result = porcupine.CheckOperationsTimeout(model(), steps, left)
		}
		switch result {
		case porcupine.Illegal:
			reportIllegal(ix, r, key, steps)
		case porcupine.Unknown:
			undecided, example = undecided+1, key
		}
	}
	// With a log the other checkers decide by revisions what porcupine does not.
	if undecided > 0 && len(ix.h.Writes) == 0 {
		r.add(Violation{Rule: "undecided", Key: example}, "%d keys were not decided in time, and there is no log of etcd to decide them by", undecided)
	}
}

// keysOf groups operations by key.
func keysOf(ix *index) map[string][]int {
	keys := map[string][]int{}
	for i := range ix.h.Operations {
		if o := &ix.h.Operations[i]; o.Key != "" && o.Verb != history.DeleteCollection && o.Verb != history.List {
			key := keyOf(o.Resource, o.Key)
			keys[key] = append(keys[key], i)
		}
	}
	return keys
}

// linearSteps are the operations of a key as porcupine takes them.
func linearSteps(ix *index, key string, operations []int) []porcupine.Operation {
	target := ix.objects[key]
	if target != nil && target.open {
		return nil // the state at the beginning is not known
	}
	logged := len(ix.h.Writes) > 0
	var steps []porcupine.Operation
	add := func(in step, client int, from, to int64) {
		if in.item != nil {
			in.hash = hashLog(in.item.Log)
		}
		if in.operation != nil {
			in.sent = hashLog(in.operation.Sent.Log)
		}
		steps = append(steps, porcupine.Operation{ClientId: max(0, client), Input: &in, Call: from, Return: max(from, to)})
	}
	for _, i := range operations {
		o := &ix.h.Operations[i]
		if in, to, used := linearStep(ix, i, logged); used {
			add(in, o.Client, o.Call, to)
		}
	}
	if len(steps) == 0 {
		return nil
	}
	if logged {
		addFacts(ix, target, add)
	} else {
		for i := range ix.h.Operations {
			o := &ix.h.Operations[i]
			if o.Verb == history.DeleteCollection && o.Outcome != history.Refused && keyOf(o.Resource, "") == key[:len(keyOf(o.Resource, ""))] {
				to := o.Return
				if o.Outcome == history.Unknown {
					to = forever
				}
				add(step{kind: stepMaybe, operation: o, index: i}, o.Client, o.Call, to)
			}
		}
	}
	// Porcupine tries in the order of calls; equal calls in the order of revisions.
	slices.SortStableFunc(steps, func(a, b porcupine.Operation) int {
		return cmp.Or(cmp.Compare(a.Call, b.Call), cmp.Compare(a.Input.(*step).revision, b.Input.(*step).revision))
	})
	return steps
}

// addFacts adds writes of etcd's log that no operation's ID explains: deletions, marks of
// deletion, what controllers do.
func addFacts(ix *index, target *object, add func(in step, client int, from, to int64)) {
	if target == nil {
		return
	}
	for i := range target.versions {
		v := &target.versions[i]
		place := ix.place(v.revision)
		if len(v.ids) > 0 || place < 0 {
			continue
		}
		kind := stepFact
		if v.deleted {
			kind = stepGone
		} else if ix.h.Writes[v.write].Created {
			continue // an object that no recorded operation made: checkLog
		}
		add(step{kind: kind, index: v.write, revision: v.revision, item: v.item}, facts, ix.earliest[place], ix.latest[place])
	}
}

// facts is the client of what etcd's log says, in pictures.
const facts = 99

// linearStep is one operation, the time by which it was done, and whether it says
// anything.
func linearStep(ix *index, i int, logged bool) (in step, to int64, used bool) {
	o := &ix.h.Operations[i]
	in = step{operation: o, index: i}
	to = o.Return
	if o.Outcome == history.Refused {
		switch {
		case o.Verb == history.Create && o.Reason == "AlreadyExists":
			in.kind = stepExists
		case o.Verb == history.Get && o.Mode != "" || o.Verb == history.Create:
			return in, 0, false
		case ix.saysAbsent(o):
			in.kind = stepAbsent
		case o.Reason == "Conflict" && o.Verb == history.Update && o.Revision != 0 && (o.Sent.UID == "" || o.Sent.UID == o.UID):
			in.kind = stepOther
		default:
			return in, 0, false
		}
		return in, to, true
	}
	switch o.Verb {
	case history.Get:
		if o.Mode != "" || o.Outcome != history.Done {
			return in, 0, false
		}
		in.kind, in.item, in.revision = stepRead, &o.Got, o.Got.Revision
		return in, to, true
	case history.Delete:
		in.kind = stepDelete
		if o.Outcome == history.Unknown {
			in.kind, to = stepMaybe, forever
			return in, to, !logged // if it was done, the log has the deletion
		}
		return in, to, true
	case history.Create, history.Update, history.Patch, history.Apply:
	default:
		return in, 0, false
	}
	in.kind = stepWrite
	w, written := ix.writeOf(o)
	if o.Outcome == history.Unknown {
		to = forever
		if !logged {
			in.kind = stepMaybe
			return in, to, true
		}
		if !written || keyOf(o.Resource, o.Key) != ix.objectOf[w].key {
			return in, 0, false
		}
		in.revision, in.item = ix.h.Writes[w].Revision, &ix.h.Writes[w].Item
		return in, max(o.Call, ix.latestOf(in.revision)), true
	}
	if o.Got.Revision != 0 {
		in.revision, in.item = o.Got.Revision, &o.Got
		if written && o.Verb == history.Apply && o.Got.Revision != ix.h.Writes[w].Revision {
			// It was answered with a later state: its write is what counts.
			in.revision, in.item = ix.h.Writes[w].Revision, &ix.h.Writes[w].Item
		}
	} else if written {
		in.revision, in.item = ix.h.Writes[w].Revision, &ix.h.Writes[w].Item
	}
	return in, to, true
}

// reportIllegal says which operations do not fit into the longest order.
func reportIllegal(ix *index, r *report, key string, steps []porcupine.Operation) {
	v := Violation{Rule: "order", Key: key}
	_, info := porcupine.CheckOperationsVerbose(model(), steps, keyTime)
	longest := 0
	var best []porcupine.Operation
	for _, partition := range info.PartialLinearizationsOperations() {
		for _, order := range partition {
			if len(order) > longest {
				longest, best = len(order), order
			}
		}
	}
	fits := map[*step]bool{}
	for _, one := range best {
		fits[one.Input.(*step)] = true
	}
	first := ""
	for _, one := range steps {
		in := one.Input.(*step)
		if fits[in] {
			continue
		}
		if first == "" {
			first = in.String()
		}
		if len(v.Operations)+len(v.Writes) < 8 {
			if in.operation != nil {
				v.Operations = append(v.Operations, in.index)
			} else {
				v.Writes = append(v.Writes, in.index)
			}
		}
	}
	r.add(v, "no order of the %d operations explains all answers; the longest has %d and then not: %s", len(steps), longest, first)
}
