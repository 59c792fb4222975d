package tenants

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/espalier-dev/espalier/server/replica"
	"github.com/espalier-dev/espalier/server/storage/transfer"
)

const (
	// movers is how many tenants are moved at a time.
	movers = 4
	// smallLag is how long it may take to catch up before the tenant is stopped.
	smallLag = 50 * time.Millisecond
	// grace is how long requests that are under way have, when new ones wait already.
	grace = 50 * time.Millisecond
	// switchTime bounds the time in which a tenant takes no writes, before it is given back.
	switchTime = 1500 * time.Millisecond
	// attendEvery is how often an attempt looks whether it is still wanted.
	attendEvery = 500 * time.Millisecond
	// directoryTime bounds a change of the status.
	directoryTime = 10 * time.Second
)

// mark is a key that the end of a copy is recognized by. It is beside the folder, where no tenant sees it.
func mark(prefix string, uid types.UID) string { return Guard(prefix, uid) + ".moved" }

// move does what the object of a tenant says about its place: it begins, goes on with, or ends a
// move, and removes what is left of others.
func (r *remover) move(ctx context.Context, name string) error {
	o, err := r.client.Get(ctx, name, metav1.GetOptions{})
	if isGone(err) || err == nil && o.GetDeletionTimestamp() != nil {
		r.pauses.forget(name)
		return nil
	}
	if err != nil {
		return err
	}
	if wait := r.pauses.left(name, o.GetGeneration()); wait > 0 {
		r.moving.AddAfter(name, wait)
		return nil
	}
	to := target(o)
	if m := moveOf(o); m != nil && m.To != to || m == nil && to == "" && complains(o) {
		if o, err = r.cancel(ctx, o); err != nil {
			return taken(err)
		}
	}
	if to != "" {
		switch err := r.attempt(ctx, o, to); {
		case err == nil:
			r.pauses.forget(name)
		case taken(err) == nil || ctx.Err() != nil:
			return nil
		default:
			klog.ErrorS(err, "Moving a tenant failed, retrying", "tenant", name, "to", to)
			r.moving.AddAfter(name, r.pauses.add(name, o.GetGeneration()))
		}
	}
	return r.clear(ctx, name)
}

// pauses are for how long tenants are left alone whose move has failed. The status of a tenant changes
// with each attempt, which must not begin the next one.
type pauses struct {
	mu sync.Mutex
	of map[string]movePause
}

type movePause struct {
	generation int64 // a change of the spec ends the pause
	pause      time.Duration
	until      time.Time
}

func (p *pauses) left(name string, generation int64) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if of := p.of[name]; of.generation == generation {
		return time.Until(of.until)
	}
	return 0
}

// add makes a pause, longer than the last one, and returns it.
func (p *pauses) add(name string, generation int64) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.of == nil {
		p.of = map[string]movePause{}
	}
	pause := min(max(2*p.of[name].pause, firstPause), lastPause)
	p.of[name] = movePause{generation, pause, time.Now().Add(pause)}
	return pause
}

func (p *pauses) forget(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.of, name)
}

// taken drops the error of an attempt that is no longer the current one: what has taken over goes on.
func taken(err error) error {
	if errors.Is(err, errTaken) || errors.Is(err, transfer.ErrTaken) || errors.Is(err, errFenced) {
		return nil
	}
	return err
}

// cancel ends a move that is not wanted any more.
func (r *remover) cancel(ctx context.Context, o *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	return r.change(ctx, o.GetName(), o.GetUID(), func(s status) error {
		switch m := moveOf(s.Unstructured); {
		case m == nil:
			s.say(nil, "Canceled", "the tenant is to stay where it is")
		case m.To != target(s.Unstructured):
			s.giveBack()
			s.leave(m.To, true)
			s.say(nil, "Canceled", fmt.Sprintf("the move to the etcd %q was canceled", m.To))
		}
		return nil
	})
}

// begin makes an attempt the current one. Whatever attempt was before writes nothing more: its
// number is lower.
func (r *remover) begin(ctx context.Context, o *unstructured.Unstructured, to string) (*unstructured.Unstructured, *move, error) {
	m := &move{To: to, Phase: copying}
	o, err := r.change(ctx, o.GetName(), o.GetUID(), func(s status) error {
		if target(s.Unstructured) != to {
			return errTaken
		}
		if before := moveOf(s.Unstructured); before != nil && before.To != to {
			return errTaken
		}
		s.giveBack()
		m.Attempt = s.number(2)
		s.leave(to, false)
		s.say(m, copying, fmt.Sprintf("the tenant is being copied to the etcd %q", to))
		return nil
	})
	return o, m, err
}

// attempt moves a tenant.
func (r *remover) attempt(ctx context.Context, o *unstructured.Unstructured, to string) error {
	if err := r.reachable(ctx, to); err != nil {
		return r.failed(ctx, o, nil, to, err)
	}
	o, m, err := r.begin(ctx, o, to)
	if err != nil {
		return err
	}
	began := time.Now()
	klog.InfoS("Moving a tenant", "tenant", o.GetName(), "from", placeOf(o).at(), "to", to, "attempt", m.Attempt)
	if err := r.try(ctx, o, m, began); err != nil {
		movesTotal.WithLabelValues("failed").Inc()
		return r.failed(ctx, o, m, to, err)
	}
	movesTotal.WithLabelValues("moved").Inc()
	return nil
}

// reachable returns an error if a tenant cannot be moved to an etcd for now.
func (r *remover) reachable(ctx context.Context, to string) error {
	if to != RootEtcd {
		of, err := r.pool.etcds.Get(ctx, to, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			return fmt.Errorf("there is no etcd %q: name one of 'espalier etcd list'", to)
		case err != nil:
			return err
		case of.GetDeletionTimestamp() != nil:
			return fmt.Errorf("the etcd %q: %w", to, errRemoved)
		}
	}
	use, err := r.pool.Use(ctx, to)
	use.Release()
	return err
}

// failed says in the status why a move waits. m is nil if there was no attempt.
func (r *remover) failed(ctx context.Context, o *unstructured.Unstructured, m *move, to string, cause error) error {
	if taken(cause) == nil { // the object says whether that is so
		cause = errUndone
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), directoryTime)
	defer cancel()
	message := fmt.Sprintf("moving to the etcd %q failed, and is tried again: %v", to, cause)
	_, err := r.change(ctx, o.GetName(), o.GetUID(), func(s status) error {
		now := moveOf(s.Unstructured)
		switch {
		case m == nil && now == nil && target(s.Unstructured) == to:
			s.say(nil, waiting, message)
			return nil
		case m == nil && now != nil && now.To == to && now.Phase != switching, m != nil && now != nil && now.Attempt == m.Attempt && target(s.Unstructured) == to:
			s.giveBack()
			now.Phase = waiting
			s.say(now, waiting, message)
			return nil
		}
		return errTaken
	})
	if errors.Is(err, errTaken) {
		return err
	}
	return errors.Join(cause, err)
}

// errUndone is that etcd refuses an attempt that is the current one.
var errUndone = errors.New("an etcd has a higher number than the move, or was restored from a backup")

// try is one attempt.
func (r *remover) try(ctx context.Context, o *unstructured.Unstructured, m *move, began time.Time) (err error) {
	name, uid := o.GetName(), o.GetUID()
	if err := r.pool.keep(ctx, m.To); err != nil { // after the status names it: see choose
		return err
	}
	from, err := r.pool.Use(ctx, placeOf(o).Etcd)
	if err != nil {
		return err
	}
	defer from.Release()
	to, err := r.pool.Use(ctx, m.To)
	if err != nil {
		return err
	}
	defer to.Release()
	for _, use := range []*Use{from, to} {
		var end func()
		ctx, end = use.patient(ctx)
		defer end()
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer func() {
		if cause := context.Cause(ctx); err != nil && cause != nil && !errors.Is(cause, context.Canceled) {
			err = cause // it says more
		}
	}()
	attended := make(chan struct{})
	attending, stop := context.WithCancel(ctx)
	defer stop()
	go func() { defer close(attended); r.attend(attending, name, m, cancel) }()

	if err := r.distinct(ctx, from, to, uid, m.Attempt); err != nil {
		return err
	}
	if err := r.whole(ctx, from, tenantOf(o)); err != nil {
		return err
	}
	if err := r.alone(ctx, from, uid); err != nil {
		return err
	}
	if err := r.older(ctx, from, to, o); err != nil {
		return err
	}
	anchored, err := r.anchor(ctx, from, uid, m.Attempt)
	if err != nil {
		return err
	}
	base, err := r.fence(ctx, to.Client(), uid, m.Attempt, nil)
	if err != nil {
		return err
	}
	keys := below(Prefix(r.prefix, uid) + "/")
	// The second one does not hold after the etcd was restored from a backup.
	current := []clientv3.Cmp{noFence(r.prefix, uid, m.Attempt), clientv3.Compare(clientv3.ModRevision(fence(r.prefix, uid, m.Attempt)), "=", base)}
	if err := empty(ctx, to.Client(), keys, current...); err != nil {
		return fmt.Errorf("remove what is left of a former attempt: %w", err)
	}
	c := transfer.New(transfer.Options{
		From: from.Client(), To: to.Client(), Begin: keys.begin, End: keys.end, Marks: Guard(r.prefix, uid),
		Skip:  func(key string) bool { return ofProcess(strings.TrimPrefix(key, keys.begin)) },
		While: current, Stream: fmt.Sprintf("move-%s-%d", uid, m.Attempt),
	})
	defer c.Close()
	if err := c.Load(ctx); err != nil {
		return err
	}
	if err := c.Follow(ctx, smallLag); err != nil {
		return err
	}
	stop()
	<-attended
	if err := context.Cause(ctx); err != nil {
		return err
	}
	return r.switchOver(ctx, o, m, from, to, c, anchored, base, began)
}

// distinct returns an error if two names are of one etcd: what is emptied before the copy would be the
// tenant itself. Identifiers of clusters do not tell, since those of many are the same.
func (r *remover) distinct(ctx context.Context, from, to *Use, uid types.UID, n int64) error {
	ctx, cancel := context.WithTimeout(ctx, connectTime)
	defer cancel()
	key, value := mark(r.prefix, uid), fmt.Sprint(n)
	answer, err := to.Client().Txn(ctx).If(noFence(r.prefix, uid, n)).Then(clientv3.OpPut(key, value)).Commit()
	switch {
	case err != nil:
		return fmt.Errorf("write to the other etcd: %w", err)
	case !answer.Succeeded:
		return errTaken
	}
	found, err := from.Client().Get(ctx, key)
	if err != nil {
		return fmt.Errorf("read from the etcd that the tenant is in: %w", err)
	}
	if len(found.Kvs) > 0 && string(found.Kvs[0].Value) == value {
		return fmt.Errorf("%q and %q: %w: change spec.servers of one of them", from.Name, to.Name, errSame)
	}
	return nil
}

// whole returns an error if the data of a tenant is being imported, or will be.
func (r *registry) whole(ctx context.Context, from *Use, t Tenant) error {
	ctx, cancel := context.WithTimeout(ctx, connectTime)
	defer cancel()
	value, _, err := r.guardOf(ctx, from, t)
	if err == nil && t.incomplete(value) {
		err = errImporting
	}
	return err
}

// alone returns an error if a tenant shares APIs with others.
func (r *registry) alone(ctx context.Context, from *Use, uid types.UID) error {
	ctx, cancel := context.WithTimeout(ctx, connectTime)
	defer cancel()
	why, err := Stays(ctx, from.Client(), r.prefix, uid)
	if err == nil && why != "" {
		err = errors.New(why)
	}
	return err
}

// stop ends the use of a tenant in an etcd: no guard is there, and who wants to create one has a lower number. It
// returns the revision of that. An import that has begun meanwhile is not stopped.
func (r *registry) stop(ctx context.Context, from *Use, t Tenant, n int64, anchored clientv3.Cmp) (int64, error) {
	for {
		value, revision, err := r.guardOf(ctx, from, t)
		switch {
		case err != nil:
			return 0, err
		case imports(value):
			return 0, errImporting
		}
		same := clientv3.Compare(clientv3.ModRevision(Guard(r.prefix, t.UID)), "=", revision)
		end, err := r.fence(ctx, from.Client(), t.UID, n, []clientv3.Cmp{same, anchored}, clientv3.OpPut(mark(r.prefix, t.UID), ""))
		if !errors.Is(err, errTaken) {
			return end, err
		}
		if now, changed, failed := r.guardOf(ctx, from, t); failed != nil || now == value && changed == revision {
			return 0, errors.Join(err, failed)
		}
	}
}

// errSame is that two names are of one etcd.
var errSame = errors.New("both are the same etcd")

// apart connects to an etcd in which something of a tenant may be left. The error is errSame if it is the one that the
// tenant is in, and another if that one does not have the tenant: then what is left may be all there is.
func (r *remover) apart(ctx context.Context, o *unstructured.Unstructured, etcd string) (*Use, error) {
	if err := r.exists(ctx, etcd); err != nil {
		return nil, err
	}
	home, err := r.pool.Use(ctx, placeOf(o).Etcd)
	if err != nil {
		return nil, err
	}
	defer home.Release()
	if err := r.arrived(ctx, home, tenantOf(o)); err != nil {
		return nil, err
	}
	other, err := r.pool.Use(ctx, etcd)
	if err != nil {
		return nil, err
	}
	if err := r.distinct(ctx, home, other, o.GetUID(), last(o)); err != nil {
		other.Release()
		return nil, err
	}
	return other, nil
}

// ofProcess reports whether a key below the folder of a tenant is about a process that uses the tenant
// where it is: others do not have to wait for that process where the tenant goes.
func ofProcess(key string) bool {
	return slices.ContainsFunc([]string{"replicas/", "settings/", "fences/"}, func(folder string) bool {
		return strings.HasPrefix(key, replica.OwnFolder+folder)
	})
}

// attend ends an attempt that is not wanted any more.
func (r *remover) attend(ctx context.Context, name string, m *move, cancel context.CancelCauseFunc) {
	tick := time.NewTicker(attendEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		o, err := r.client.Get(ctx, name, metav1.GetOptions{})
		if isGone(err) || err == nil && !m.wanted(o) {
			cancel(errTaken)
			return
		}
	}
}

// wanted reports whether an attempt is the current one, and its target the one that is wanted.
func (m *move) wanted(o *unstructured.Unstructured) bool {
	now := moveOf(o)
	return now != nil && now.Attempt == m.Attempt && o.GetDeletionTimestamp() == nil && target(o) == m.To
}

// fence raises the fence of a number under conditions, and returns the revision of that. No guard of the tenant is there afterwards.
func (r *registry) fence(ctx context.Context, etcd *clientv3.Client, uid types.UID, n int64, conditions []clientv3.Cmp, more ...clientv3.Op) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, connectTime)
	defer cancel()
	ops := append(raise(r.prefix, uid, n), clientv3.OpDelete(Guard(r.prefix, uid)))
	answer, err := etcd.Txn(ctx).If(append([]clientv3.Cmp{noFence(r.prefix, uid, n)}, conditions...)...).Then(append(ops, more...)...).Commit()
	switch {
	case err != nil:
		return 0, fmt.Errorf("raise the fence: %w", err)
	case !answer.Succeeded:
		return 0, errTaken
	}
	return answer.Header.Revision, nil
}

// switchOver stops the tenant where it is, copies the rest, and starts it where it goes. If that fails
// or takes too long, the caller gives the tenant back.
func (r *remover) switchOver(ctx context.Context, o *unstructured.Unstructured, m *move, from, to *Use, c *transfer.Copy, anchored clientv3.Cmp, base int64, began time.Time) error {
	name, uid := o.GetName(), o.GetUID()
	stopped := time.Now()
	o, err := r.change(ctx, name, uid, attempt(m.Attempt, copying, func(s status, now *move) error {
		if !m.wanted(s.Unstructured) {
			return errTaken
		}
		now.Phase = switching
		s.say(now, switching, fmt.Sprintf("the tenant is being stopped in the etcd %q and started in %q", placeOf(s.Unstructured).at(), m.To))
		return nil
	}))
	if err != nil {
		return err
	}
	until, cancel := context.WithTimeout(ctx, switchTime)
	defer cancel()
	select {
	case <-time.After(grace):
	case <-until.Done():
		return context.Cause(until)
	}
	// From here on nothing is written where the tenant was.
	end, err := r.stop(until, from, tenantOf(o), m.Attempt, anchored)
	if err != nil {
		return err
	}
	if err := r.alone(until, from, uid); err != nil { // no binding is made without the guard
		return err
	}
	if err := c.Until(until, end); err != nil {
		return err
	}
	// The copy is complete. Nothing is added to it: the fence has the next number.
	complete, err := r.fence(until, to.Client(), uid, m.Attempt+1, c.While)
	if err != nil {
		return err
	}
	if err := r.unchanged(until, from, to); err != nil {
		return err
	}
	was := placeOf(o)
	// All keys of the copy are of later revisions than base, and must be so for clients: than the last one where the tenant was.
	offset := max(0, end+was.Revisions.Offset-base)
	_, err = r.commit(until, name, uid, m.Attempt, func(s status) {
		s.set("etcd", m.To)
		s.set("epoch", m.Attempt+1)
		s.set("offset", offset)
		s.set("since", complete+offset)
		s.leave(was.at(), true)
		s.say(nil, "Moved", fmt.Sprintf("the tenant was moved from the etcd %q to %q", was.at(), m.To))
	})
	if err != nil {
		return err
	}
	paused := time.Since(stopped)
	pauseSeconds.Observe(paused.Seconds())
	klog.InfoS("Moved a tenant", "tenant", name, "from", was.at(), "to", m.To, "keys", c.Keys, "bytes", c.Bytes,
		"paused", paused.Round(time.Millisecond), "after", time.Since(began).Round(time.Millisecond))
	return nil
}

// commit makes the target the place of the tenant. An answer that is lost is no failure: the object says what was done.
func (r *remover) commit(ctx context.Context, name string, uid types.UID, n int64, change func(status)) (*unstructured.Unstructured, error) {
	for {
		o, err := r.change(ctx, name, uid, func(s status) error {
			if number(s.Unstructured, "epoch") == n+1 {
				return nil // by an earlier try
			}
			return attempt(n, switching, func(s status, _ *move) error { change(s); return nil })(s)
		})
		if err == nil || errors.Is(err, errTaken) || ctx.Err() != nil {
			return o, err
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(movePoll):
		}
	}
}
