package robustness

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/espalier-dev/espalier/conformance/launch"
	"github.com/espalier-dev/espalier/conformance/robustness/environment"
	"github.com/espalier-dev/espalier/conformance/robustness/history"
	"github.com/espalier-dev/espalier/conformance/robustness/load"
)

// patience is how long a change of a CRD may take while a replica is out: its lease, and a slow machine.
const patience = time.Minute

// stored reads an object of the run in etcd.
func (p *play) stored(ctx context.Context, resource, name string) []byte {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	resp, err := p.environment.Etcd.Get(ctx, p.etcdKey(resource, name))
	if err != nil || len(resp.Kvs) == 0 {
		return nil
	}
	return resp.Kvs[0].Value
}

func (p *play) etcdKey(resource, name string) string {
	return fmt.Sprintf("%s/%s/%s/%s/%s", environment.Prefix, load.Group, resource, p.Namespace(), name)
}

// await waits for something that has to come.
func (p *play) await(ctx context.Context, what string, ready func() bool) bool {
	for end := time.Now().Add(environment.Patience); time.Now().Before(end) && ctx.Err() == nil; time.Sleep(5 * time.Millisecond) {
		if ready() {
			return true
		}
	}
	p.fail("it never came: %s", what)
	return false
}

// lostAnswer: replica 0 creates, etcd has done it, and the answer is lost with the connection. Meanwhile the object is deleted at
// replica 1 and, with again, another one is created.
func (p *play) lostAnswer(ctx context.Context, again bool) {
	p.a.Get(ctx, p.Thing(0, "k"), "") // connections are open
	p.b.Get(ctx, p.Thing(1, "k"), "")
	links := p.replica(0).Etcd
	links.Each((*environment.Link).HoldDown)
	p.note("answers of etcd to replica 0 are held")
	var created *history.Operation
	var wg sync.WaitGroup
	wg.Go(func() { created = p.a.Create(ctx, p.Thing(0, "k"), load.Traits{}) })
	p.await(ctx, "the create in etcd", func() bool { return p.stored(ctx, load.Things, "k") != nil })
	links.Each((*environment.Link).Cut)
	p.note("replica 0 is cut off")
	if o := p.b.Delete(ctx, p.Thing(1, "k"), load.Preconditions{}); o.Outcome != history.Done {
		p.fail("replica 1 did not delete: %d %s", o.Code, o.Message)
	}
	p.b.Get(ctx, p.Thing(1, "k"), "")
	var second *history.Operation
	if again {
		second = p.b.Create(ctx, p.Thing(1, "k"), load.Traits{})
	}
	time.Sleep(300 * time.Millisecond) // replica 0 tries to connect
	links.Each((*environment.Link).Heal)
	p.note("replica 0 is connected again")
	wg.Wait()
	p.note("the create was answered with %d %s %s", created.Code, created.Reason, created.Message)
	if created.Outcome == history.Refused {
		p.fail("a create that was done was refused: %d %s %s", created.Code, created.Reason, created.Message)
	}
	for i := range 2 {
		o := p.b.Get(ctx, p.Thing(i, "k"), "")
		switch {
		case !again && o.Code != http.StatusNotFound:
			p.fail("replica %d: the object was deleted and is there again: %d, log %v, UID %s", i, o.Code, o.Got.Log, o.Got.UID)
		case again && (o.Outcome != history.Done || o.Got.UID != second.Got.UID):
			p.fail("replica %d: the second object does not exist: %d, log %v, UID %s", i, o.Code, o.Got.Log, o.Got.UID)
		}
	}
}

// patchTwice: replica 0 patches, etcd has done it, and the answer is lost with the connection.
func (p *play) patchTwice(ctx context.Context) {
	p.Sync(p.b.Create(ctx, p.Thing(1, "k"), load.Traits{}).Got.Revision) // replica 0 need not read it from etcd
	p.a.Get(ctx, p.Thing(0, "k"), "")
	links := p.replica(0).Etcd
	links.Each((*environment.Link).HoldDown)
	var patched *history.Operation
	var wg sync.WaitGroup
	wg.Go(func() { patched = p.a.Patch(ctx, p.Thing(0, "k")) })
	p.await(ctx, "the patch in etcd", func() bool {
		it, err := load.ItemOf(load.Things, p.stored(ctx, load.Things, "k"))
		return err == nil && len(it.Log) == 2
	})
	links.Each((*environment.Link).Cut)
	time.Sleep(300 * time.Millisecond) // replica 0 tries to connect
	links.Each((*environment.Link).Heal)
	wg.Wait()
	p.note("the patch was answered with %d %s %s", patched.Code, patched.Reason, patched.Message)
	if patched.Outcome == history.Refused {
		p.fail("a patch that was done was refused: %d %s %s", patched.Code, patched.Reason, patched.Message)
	}
	if it, err := load.ItemOf(load.Things, p.stored(ctx, load.Things, "k")); err != nil || len(it.Log) != 2 {
		p.fail("the log is %v, %v", it.Log, err)
	}
	p.b.Get(ctx, p.Thing(1, "k"), "")
}

// quotaRush: more clients than a quota has room for create at the same moment, again and again. The checker of quotas counts.
func (p *play) quotaRush(ctx context.Context) {
	ns, hard, err := p.Limit(ctx, p.b)
	if err != nil {
		p.fail("%v", err)
		return
	}
	clients := make([]*load.Client, 3*hard)
	for i := range clients {
		if clients[i], err = p.Client(20 * time.Second); err != nil {
			p.fail("%v", err)
			return
		}
	}
	for round := range 8 {
		var wg sync.WaitGroup
		created := make([]*history.Operation, len(clients))
		at := func(i int) load.Target {
			return load.Target{Replica: i % len(p.environment.Replicas), Resource: load.Crates, Version: "v1", Key: fmt.Sprintf("%s/round%d-%d", ns, round, i)}
		}
		for i, c := range clients {
			wg.Go(func() { created[i] = c.Create(ctx, at(i), load.Traits{}) })
		}
		wg.Wait()
		for i, o := range created {
			if o.Outcome == history.Done {
				wg.Go(func() { clients[i].Delete(ctx, at(i), load.Preconditions{}) })
			}
		}
		wg.Wait()
		launch.Pause(ctx, 200*time.Millisecond) // what is deleted is counted
	}
}

// contend: many clients write the same objects at the same time on all replicas: with and without the version that they have seen.
func (p *play) contend(ctx context.Context) {
	const lasts = 2 * time.Second
	names := []string{"k0", "k1"}
	for _, name := range names {
		p.b.Create(ctx, p.Thing(1, name), load.Traits{})
	}
	writing, stop := context.WithTimeout(ctx, lasts)
	defer stop()
	var wg sync.WaitGroup
	for i := range 6 {
		c, err := p.Client(10 * time.Second)
		if err != nil {
			p.fail("%v", err)
			return
		}
		wg.Go(func() {
			for n := 0; writing.Err() == nil; n++ {
				t := p.Thing((i+n)%len(p.environment.Replicas), names[n/3%2])
				switch (i + n) % 4 {
				case 0:
					c.Patch(ctx, t)
				case 1:
					c.Get(ctx, t, "")
					c.Update(ctx, t, false)
				case 2:
					c.Update(ctx, t, false) // with what it has seen before: often too old
				case 3:
					c.Delete(ctx, t, load.Preconditions{Revision: n%2 == 0, UID: n%2 == 1})
					c.Create(ctx, t, load.Traits{})
				}
			}
		})
	}
	wg.Wait()
	for i := range p.environment.Replicas {
		for _, name := range names {
			p.b.Get(ctx, p.Thing(i, name), "")
		}
	}
}

// held: objects with a finalizer are deleted, and stay until it is taken away.
func (p *play) held(ctx context.Context) {
	for i := range p.environment.Replicas {
		t := p.Thing(i, fmt.Sprint("f", i))
		p.b.Create(ctx, t, load.Traits{Finalizers: []string{load.Group + "/hold"}})
		p.b.Delete(ctx, t, load.Preconditions{})
		if o := p.b.Get(ctx, t, ""); o.Outcome != history.Done || !o.Got.Deleting {
			p.fail("an object with a finalizer was deleted, and the answer to a get is %d %+v", o.Code, o.Got)
		}
		p.b.Update(ctx, t, true)
		if o := p.b.Get(ctx, t, ""); o.Code != http.StatusNotFound {
			p.fail("the finalizer was taken away from a deleted object, and the answer to a get is %d", o.Code)
		}
	}
}

// lateWriteCase: an update is on its way from replica 0 to etcd when that link stalls for longer than the lease.
func (p *play) lateWriteCase(ctx context.Context) {
	p.b.Create(ctx, p.Thing(1, "k"), load.Traits{})
	p.a.Get(ctx, p.Thing(0, "k"), "")
	links := p.replica(0).Etcd
	links.Each((*environment.Link).HoldUp)
	var wg sync.WaitGroup
	wg.Go(func() {
		o := p.a.Update(ctx, p.Thing(0, "k"), false)
		p.note("the late update: %d %s %s", o.Code, o.Reason, o.Message)
	})
	time.Sleep(200 * time.Millisecond) // it is on its way
	ack := p.ChangeSchema(ctx, p.b, 1, patience)
	links.Each((*environment.Link).Heal)
	wg.Wait()
	if ack == nil {
		p.fail("the schema was not acknowledged in %v", patience)
		return
	}
	p.note("acknowledged after %.2f s", float64(ack.At-ack.Sent)/1e9)
	if it, err := load.ItemOf(load.Things, p.stored(ctx, load.Things, "k")); err == nil && len(it.Log) > 1 && it.Schema < ack.Schema {
		p.fail("stored by schema %d after schema %d was acknowledged", it.Schema, ack.Schema)
	}
	p.b.Get(ctx, p.Thing(1, "k"), "")
}

// stall holds a create back: by replica 0's link to etcd, or (slow) by its own body.
type stall struct {
	slow    bool
	release chan struct{}
	play    *play
}

func (p *play) stall(slow bool) *stall {
	if !slow {
		p.replica(0).Etcd.Each((*environment.Link).HoldUp)
	}
	return &stall{slow, make(chan struct{}), p}
}

func (s *stall) create(ctx context.Context, t load.Target) *history.Operation {
	if s.slow {
		return s.play.a.CreateSlowly(ctx, t, s.release)
	}
	return s.play.a.Create(ctx, t, load.Traits{})
}

func (s *stall) end() {
	close(s.release)
	s.play.replica(0).Etcd.Each((*environment.Link).Heal)
	s.play.note("released")
}

// lateStorage: a create of v1 is held back. Meanwhile the storage version becomes v2, storedVersions is cleaned and v1 is dropped.
func (p *play) lateStorage(ctx context.Context, slow bool) {
	d := load.CRD{Resource: fmt.Sprintf("boat%ds", p.Number), Schema: -1, Versions: []string{"v1", "v2"}, Storage: "v1"}
	at := func(replica int, version, name string) load.Target {
		return load.Target{Replica: replica, Resource: d.Resource, Version: version, Key: p.Namespace() + "/" + name}
	}
	defer p.b.DeleteCRD(ctx, &d, 1, 1, patience)
	if p.b.ChangeCRD(ctx, &d, 1, 1, patience) == nil {
		p.fail("the CRD was not acknowledged")
		return
	}
	p.await(ctx, "the CRD at replica 0", func() bool { return p.a.Get(ctx, at(0, "v1", "none"), "").Reason == "NotFound" })
	p.a.Create(ctx, at(0, "v1", "first"), load.Traits{})
	s := p.stall(slow)
	var wg sync.WaitGroup
	wg.Go(func() {
		o := s.create(ctx, at(0, "v1", "late"))
		p.note("the late create: %d %s %s", o.Code, o.Reason, o.Message)
	})
	time.Sleep(300 * time.Millisecond) // it is on its way
	d.Storage = "v2"
	moved := p.b.ChangeCRD(ctx, &d, 1, 1, patience)
	p.b.Get(ctx, at(1, "v2", "first"), "")
	p.b.Update(ctx, at(1, "v2", "first"), false)
	a := p.b.Ask(ctx, 1, http.MethodPatch, d.Path()+"/status", "application/merge-patch+json", strings.NewReader(`{"status":{"storedVersions":["v2"]}}`))
	p.note("storedVersions: %v", a)
	d.Versions = []string{"v2"}
	dropped := p.b.ChangeCRD(ctx, &d, 1, 1, patience)
	s.end()
	wg.Wait()
	if moved == nil || dropped == nil {
		p.fail("a change of the CRD was not acknowledged: storage %v, dropped %v", moved != nil, dropped != nil)
	}
	if data := p.stored(ctx, d.Resource, "late"); bytes.Contains(data, []byte(load.Group+"/v1")) {
		p.fail("stored in v1, which is gone: %.120s", data)
	}
	for range 2 {
		for i := range 2 {
			l := load.Listing{Replica: i, Resource: d.Resource, Version: "v2", Namespace: p.Namespace()}
			for _, l.Mode = range []string{"", "0"} {
				if o := p.b.List(ctx, l); o.Outcome != history.Done {
					p.fail("replica %d does not list (mode %q): %d %s %s", i, l.Mode, o.Code, o.Reason, o.Message)
				}
			}
		}
		// What a cache still knows, a new process does not.
		p.replica(0).End()
		if err := p.replica(0).Start(); err != nil {
			p.fail("%v", err)
		}
		if err := p.replica(0).AwaitReady(ctx, environment.Patience); err != nil {
			p.fail("%v", err)
		}
	}
}

// lateCreate: a create is held back. Meanwhile its CRD is deleted; later it is made again.
func (p *play) lateCreate(ctx context.Context, slow bool) {
	d := load.CRD{Resource: fmt.Sprintf("ship%ds", p.Number), Versions: []string{"v1", "v2"}, Storage: "v1"}
	at := func(replica int, name string) load.Target {
		return load.Target{Replica: replica, Resource: d.Resource, Version: "v1", Key: p.Namespace() + "/" + name}
	}
	if p.b.ChangeCRD(ctx, &d, 1, 1, patience) == nil {
		p.fail("the CRD was not acknowledged")
		return
	}
	p.await(ctx, "the CRD at replica 0", func() bool { return p.a.Get(ctx, at(0, "none"), "").Reason == "NotFound" })
	s := p.stall(slow)
	var wg sync.WaitGroup
	wg.Go(func() {
		o := s.create(ctx, at(0, "late"))
		p.note("the late create: %d %s %s", o.Code, o.Reason, o.Message)
	})
	time.Sleep(300 * time.Millisecond) // it is on its way
	gone := p.b.DeleteCRD(ctx, &d, 1, 1, patience)
	s.end()
	wg.Wait()
	if gone == nil {
		p.fail("the CRD was not deleted in %v", patience)
		return
	}
	if data := p.stored(ctx, d.Resource, "late"); data != nil {
		p.fail("stored below a CRD that is gone: %.120s", data)
	}
	d.Schema++
	if p.b.ChangeCRD(ctx, &d, 1, 1, patience) == nil {
		p.fail("the CRD was not acknowledged again")
	}
	for i := range 2 {
		if o := p.b.List(ctx, load.Listing{Replica: i, Resource: d.Resource, Version: "v1", Namespace: p.Namespace()}); len(o.Items) > 0 {
			p.fail("replica %d: the new CRD has objects of the old one: %+v", i, o.Items)
		}
	}
	p.b.DeleteCRD(ctx, &d, 1, 1, patience)
}

// schemaWatch: a client writes right after an acknowledgement. The checker of schemas looks at what the watches show.
func (p *play) schemaWatch(ctx context.Context) {
	last := int64(0)
	for i := range 30 {
		replica := 1 + i%(len(p.environment.Replicas)-1)
		if p.ChangeSchema(ctx, p.b, replica, patience) == nil {
			p.fail("schema not acknowledged in %v", patience)
			return
		}
		name := fmt.Sprintf("k%d", i)
		last = max(last, p.b.Create(ctx, p.Thing(replica, name), load.Traits{}).Got.Revision)
		p.b.Get(ctx, p.Thing(0, name), "")
	}
	p.Sync(last)
}

// schemaLease: replica 0 is out for longer than its lease and the schema changes; then it comes back, and is asked all the while.
func (p *play) schemaLease(ctx context.Context, begin, end func()) {
	p.b.Create(ctx, p.Thing(1, "old"), load.Traits{})
	p.b.Get(ctx, p.Thing(0, "old"), "")
	begin()
	p.note("replica 0 is out")
	ack := p.ChangeSchema(ctx, p.b, 1, patience)
	if ack == nil {
		end()
		p.fail("the schema was not acknowledged in %v", patience)
		return
	}
	p.note("acknowledged after %.2f s", float64(ack.At-ack.Sent)/1e9)
	for i := range 10 {
		p.b.Create(ctx, p.Thing(1, fmt.Sprintf("new%d", i)), load.Traits{})
	}
	var wg sync.WaitGroup
	for i := range 4 {
		c, err := p.Client(15 * time.Second)
		if err != nil {
			p.fail("%v", err)
			continue
		}
		wg.Go(func() {
			for n := range 40 {
				l := load.Listing{Replica: 0, Resource: load.Things, Version: "v1", Namespace: p.Namespace()}
				switch (n + i) % 4 {
				case 0:
					c.Get(ctx, p.Thing(0, "old"), "")
				case 1:
					l.Mode = "0"
					c.List(ctx, l)
				case 2:
					c.List(ctx, l)
				case 3:
					c.Patch(ctx, p.Thing(0, "old"))
				}
				time.Sleep(20 * time.Millisecond)
			}
		})
	}
	time.Sleep(500 * time.Millisecond) // requests wait for it
	end()
	p.note("replica 0 is back")
	last := int64(0)
	for i := range 20 {
		last = max(last, p.b.Create(ctx, p.Thing(1, fmt.Sprintf("late%d", i)), load.Traits{}).Got.Revision)
		time.Sleep(20 * time.Millisecond)
	}
	wg.Wait()
	p.Sync(last)
}

// longCut: how long a replica takes to come back when etcd has been unreachable for long.
func (p *play) longCut(ctx context.Context) {
	c, err := p.Client(time.Second)
	if err != nil {
		p.fail("%v", err)
		return
	}
	c.Create(ctx, p.Thing(0, "k"), load.Traits{})
	end := p.Fault("cut")
	p.replica(0).Etcd.Each((*environment.Link).Cut)
	launch.Pause(ctx, 100*time.Second)
	p.replica(0).Etcd.Each((*environment.Link).Heal)
	end()
	healed := time.Now()
	for !p.await(ctx, "an answer of replica 0", func() bool { return c.Get(ctx, p.Thing(0, "k"), "").Outcome == history.Done }) {
		return
	}
	took := time.Since(healed)
	p.note("the first answer came %.2f s after the healing", took.Seconds())
	if took > 3*time.Second {
		p.fail("the first answer came %.2f s after the healing", took.Seconds())
	}
}

// frozen: a create is in the buffer of a follower that is frozen. It is tried again elsewhere, deleted; then the follower goes on.
func (p *play) frozen(ctx context.Context) {
	follower := p.environment.Follower(ctx)
	p.replica(1).Etcd[follower.ID].Cut()
	for i, link := range p.replica(0).Etcd {
		if i != follower.ID {
			link.Cut() // so that the write goes to the follower
		}
	}
	p.await(ctx, "an answer of replica 0 by the follower", func() bool {
		return p.a.Get(ctx, p.Thing(0, "k"), "").Code == http.StatusNotFound
	})
	follower.Freeze()
	p.note("member %d is frozen", follower.ID)
	var wg sync.WaitGroup
	wg.Go(func() {
		o := p.a.Create(ctx, p.Thing(0, "k"), load.Traits{})
		p.note("the create: %d %s %s", o.Code, o.Reason, o.Message)
	})
	time.Sleep(700 * time.Millisecond) // the request is in the buffer of its socket
	for i, link := range p.replica(0).Etcd {
		if i != follower.ID {
			link.Heal()
		}
	}
	// The replica gives this connection up, but the member does not learn of it: what is in its buffer stays a request.
	p.replica(0).Etcd[follower.ID].Hold()
	p.note("its link is half-open, and the others are healed")
	wg.Wait()
	p.b.Get(ctx, p.Thing(1, "k"), "")
	p.b.Delete(ctx, p.Thing(1, "k"), load.Preconditions{})
	if o := p.b.Get(ctx, p.Thing(1, "k"), ""); o.Code != http.StatusNotFound {
		p.fail("it was not deleted: %d %s", o.Code, o.Message)
	}
	follower.Thaw()
	p.note("member %d goes on", follower.ID)
	time.Sleep(time.Second) // what it had in its buffers is done, if it is
	for i := range 2 {
		p.replica(i).Etcd.Each((*environment.Link).Heal)
	}
	if o := p.b.Get(ctx, p.Thing(1, "k"), ""); o.Code != http.StatusNotFound {
		p.fail("it was deleted and is there again: %d %s", o.Code, o.Message)
	}
}

// frozenLong: one member of three, a follower, is frozen. Two are a quorum.
func (p *play) frozenLong(ctx context.Context) {
	p.b.Create(ctx, p.Thing(1, "k"), load.Traits{})
	follower := p.environment.Follower(ctx)
	m, err := newMeter(p)
	if err != nil {
		p.fail("%v", err)
		return
	}
	follower.Freeze()
	m.begin(ctx)
	launch.Pause(ctx, 55*time.Second)
	follower.Thaw()
	launch.Pause(ctx, 5*time.Second)
	for i, gap := range m.end(m.began) {
		p.note("replica %d: longest time without an answer: reads %.2f s, writes %.2f s", i, gap.reads.Seconds(), gap.writes.Seconds())
		if gap.reads > 5*time.Second || gap.writes > 5*time.Second {
			p.fail("replica %d: longest time without an answer: reads %.2f s, writes %.2f s", i, gap.reads.Seconds(), gap.writes.Seconds())
		}
	}
}

// restore: etcd stops, and starts again from an earlier backup.
func (p *play) restore(ctx context.Context, bump int64) {
	if err := p.Inform(); err != nil {
		p.fail("%v", err)
		return
	}
	p.b.Create(ctx, p.Thing(1, "before"), load.Traits{})
	file := filepath.Join(p.environment.Dir, fmt.Sprintf("backup%d", p.Number))
	if err := p.environment.Save(ctx, file); err != nil {
		p.fail("%v", err)
		return
	}
	after := p.b.Create(ctx, p.Thing(1, "after"), load.Traits{})
	p.Sync(after.Got.Revision)
	if err := p.environment.Restore(ctx, file, bump); err != nil {
		p.fail("%v", err)
		return
	}
	p.note("restored")
	if bump == 0 {
		// Revisions come twice: no process that has seen the first ones can know. Operators have to restart the servers.
		for _, r := range p.environment.Replicas {
			r.Kill()
			if err := r.Start(); err != nil {
				p.fail("%v", err)
			}
		}
	}
	for _, r := range p.environment.Replicas {
		if err := r.AwaitReady(ctx, environment.Patience); err != nil {
			p.fail("%v", err)
		}
	}
	for i := range p.environment.Replicas {
		p.await(ctx, fmt.Sprintf("replica %d to serve what was restored", i), func() bool {
			l := load.Listing{Replica: i, Resource: load.Things, Version: "v1", Namespace: p.Namespace()}
			now := p.b.List(ctx, l)
			l.Mode = "0"
			cached := p.b.List(ctx, l)
			return restored(now) && restored(cached)
		})
		if o := p.b.Create(ctx, p.Thing(i, fmt.Sprintf("later%d", i)), load.Traits{}); o.Outcome != history.Done {
			p.fail("replica %d does not write after the restore: %d %s", i, o.Code, o.Message)
		} else if bump > 0 && o.Got.Revision <= after.Got.Revision {
			p.fail("replica %d wrote revision %d, which is not after %d", i, o.Got.Revision, after.Got.Revision)
		}
	}
	if bump == 0 {
		return // an informer that has seen revisions which come twice cannot know, either
	}
	for i := range p.environment.Replicas {
		p.await(ctx, fmt.Sprintf("the informer at replica %d to have what was restored", i), func() bool {
			return p.Holds(i, "before") && !p.Holds(i, "after") && p.Holds(i, "later0")
		})
	}
}

// restored reports whether a list has what was in the backup, and not what came later.
func restored(o *history.Operation) bool {
	before, after := false, false
	for _, it := range o.Items {
		before = before || strings.HasSuffix(it.Name, "/before")
		after = after || strings.HasSuffix(it.Name, "/after")
	}
	return before && !after
}
