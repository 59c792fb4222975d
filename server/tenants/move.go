package tenants

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// The phases of a move, as status.move.phase says them.
const (
	// copying: the tenant is used where it is, while its keys are copied.
	copying = "Copying"
	// switching: nothing may create its guard. Requests wait.
	switching = "Switching"
	// waiting: the last attempt failed, and another one follows.
	waiting = "Waiting"
)

// move is one that is under way. The status of the tenant's object has it.
type move struct {
	To string
	// Attempt is the number of the fence that the attempt raises, and one more is that of the fence
	// with which its copy is complete.
	Attempt int64
	Phase   string
	Message string
}

// moveOf reads an object; nil if no move is under way.
func moveOf(o *unstructured.Unstructured) *move {
	to, found, _ := unstructured.NestedString(o.Object, "status", "move", "to")
	if !found || to == "" {
		return nil
	}
	m := &move{To: to}
	m.Attempt, _, _ = unstructured.NestedInt64(o.Object, "status", "move", "attempt")
	m.Phase, _, _ = unstructured.NestedString(o.Object, "status", "move", "phase")
	m.Message, _, _ = unstructured.NestedString(o.Object, "status", "move", "message")
	return m
}

// leftovers are the etcds in which something of a tenant may be left.
func leftovers(o *unstructured.Unstructured) []string {
	names, _, _ := unstructured.NestedStringSlice(o.Object, "status", "leftovers")
	return names
}

// traces are all etcds in which something of a tenant is, or may be. A tenant that was never
// used may be nowhere.
func traces(o *unstructured.Unstructured) []string {
	all := leftovers(o)
	if m := moveOf(o); m != nil {
		all = append(all, m.To)
	}
	if at := placeOf(o).Etcd; at != "" {
		all = append(all, at)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// last is the last number that was given to an attempt, or to a guard.
func last(o *unstructured.Unstructured) int64 { return max(number(o, "last"), number(o, "epoch")) }

// target is where a tenant is to go; empty if it is to stay.
func target(o *unstructured.Unstructured) string {
	if to := wanted(o); to != placeOf(o).at() && slices.Contains(o.GetFinalizers(), Finalizer) {
		return to
	}
	return ""
}

// moves reports whether something is to be done about the place of a tenant.
func moves(o *unstructured.Unstructured) bool {
	return o.GetDeletionTimestamp() == nil && (target(o) != "" || moveOf(o) != nil || len(leftovers(o)) > 0 || complains(o))
}

// complains reports whether the condition speaks of a move that waits.
func complains(o *unstructured.Unstructured) bool {
	conditions, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	if len(conditions) != 1 {
		return false
	}
	c, ok := conditions[0].(map[string]any)
	return ok && c["reason"] == waiting
}

// A status is that of an object that is changed.
type status struct{ *unstructured.Unstructured }

func (s status) set(field string, value any) {
	fields, _, _ := unstructured.NestedMap(s.Object, "status")
	if fields == nil {
		fields = map[string]any{}
	}
	if value == nil {
		delete(fields, field)
	} else {
		fields[field] = value
	}
	s.Object["status"] = fields
}

// number gives the next numbers, and returns the first of them.
func (s status) number(n int64) int64 {
	first := last(s.Unstructured) + 1
	s.set("last", first+n-1)
	return first
}

// leave notes that something may be left in an etcd, or no more.
func (s status) leave(etcd string, left bool) {
	names := slices.DeleteFunc(leftovers(s.Unstructured), func(n string) bool { return n == etcd })
	if left && etcd != placeOf(s.Unstructured).at() {
		names = append(names, etcd)
	}
	if len(names) == 0 {
		s.set("leftovers", nil)
		return
	}
	all := make([]any, len(names))
	for i, n := range names {
		all[i] = n
	}
	s.set("leftovers", all)
}

// say sets the move and the condition that users see; nil ends it.
func (s status) say(m *move, reason, message string) {
	is := "True"
	if m == nil {
		is = "False"
		s.set("move", nil)
	} else {
		s.set("move", map[string]any{"to": m.To, "attempt": m.Attempt, "phase": m.Phase, "message": message})
	}
	since := time.Now().UTC().Format(time.RFC3339)
	if old, _, _ := unstructured.NestedSlice(s.Object, "status", "conditions"); len(old) == 1 {
		if c, ok := old[0].(map[string]any); ok && c["status"] == is && c["lastTransitionTime"] != nil {
			since = fmt.Sprint(c["lastTransitionTime"])
		}
	}
	s.set("conditions", []any{map[string]any{"type": "Moving", "status": is, "reason": reason, "message": message, "lastTransitionTime": since}})
}

// giveBack ends the phase in which nothing may create the guard: the tenant goes on where it is,
// with guards of a new epoch.
func (s status) giveBack() {
	if m := moveOf(s.Unstructured); m != nil && m.Phase == switching {
		s.set("epoch", s.number(1))
	}
}

// errTaken is that an attempt is not the current one any more.
var errTaken = errors.New("the tenant was deleted, or its move was changed, canceled, or begun again by another server")

// change changes the status of a tenant, if it is as the change expects. It is the only
// transition from one state of a move to another: either it is done as a whole, with what has
// been read, or not at all.
func (r *registry) change(ctx context.Context, name string, uid types.UID, change func(status) error) (*unstructured.Unstructured, error) {
	for {
		o, err := r.client.Get(ctx, name, metav1.GetOptions{})
		switch {
		case isGone(err), err == nil && (o.GetUID() != uid || o.GetDeletionTimestamp() != nil):
			return nil, errTaken
		case err != nil:
			return nil, err
		}
		if err := change(status{o}); err != nil {
			return nil, err
		}
		o, err = r.client.UpdateStatus(ctx, o, metav1.UpdateOptions{})
		if !apierrors.IsConflict(err) {
			return o, err
		}
	}
}

// attempt is a change under the condition that an attempt is the current one, in a phase.
func attempt(n int64, phase string, change func(status, *move) error) func(status) error {
	return func(s status) error {
		m := moveOf(s.Unstructured)
		if m == nil || m.Attempt != n || m.Phase != phase {
			return errTaken
		}
		return change(s, m)
	}
}

const (
	// movePoll is how often a request that waits looks whether the tenant has moved, and moveWait how
	// long it waits.
	movePoll, moveWait = 10 * time.Millisecond, 5 * time.Second
	// moveOver is when a server that waits takes an attempt for dead, and gives the tenant back.
	moveOver = 2 * time.Second
)

// movingError is that a tenant is changing its etcd at this moment.
type movingError struct {
	to      string
	attempt int64
}

// Error implements error.
func (e *movingError) Error() string {
	return fmt.Sprintf("the tenant is being moved to the etcd %q; please try again", e.to)
}

// locate finds a tenant, and waits while it is changing its etcd. If that takes too long, the server
// that does it may be gone: the tenant goes on where it was. The server can commit the move or this one can end it;
// etcd decides which.
func (s *Set) locate(ctx context.Context, name string) (t Tenant, use *Use, err error) {
	began := time.Now()
	var seen movingError
	var since time.Time
	for {
		t, use, err = s.find(ctx, name)
		moving, ok := errors.AsType[*movingError](err)
		if !ok || time.Since(began) > moveWait {
			return t, use, err
		}
		if *moving != seen {
			seen, since = *moving, time.Now()
		}
		if time.Since(since) > moveOver {
			if err := s.registry.giveBack(ctx, name, moving.attempt); err != nil && !errors.Is(err, errTaken) {
				return t, use, err
			}
		}
		select {
		case <-ctx.Done():
			return t, use, moving
		case <-time.After(movePoll):
		}
	}
}

// giveBack ends an attempt that takes too long.
func (r *registry) giveBack(ctx context.Context, name string, n int64) error {
	o, err := r.client.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	_, err = r.change(ctx, name, o.GetUID(), attempt(n, switching, func(s status, m *move) error {
		s.giveBack()
		m.Phase = waiting
		s.say(m, waiting, "the last attempt did not end in time")
		return nil
	}))
	return err
}
