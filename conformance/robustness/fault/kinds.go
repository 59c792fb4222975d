package fault

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/espalier-dev/espalier/conformance/launch"
	"github.com/espalier-dev/espalier/conformance/robustness/environment"
)

// SkewVariable has the seconds by which the clock of a program built with Skew is wrong.
const SkewVariable = "ROBUSTNESS_SKEW"

func (t *Step) replica(s *Scene) *environment.Replica {
	return s.Environment.Replicas[t.Target%len(s.Environment.Replicas)]
}
func (t *Step) member(s *Scene) *environment.Member {
	return s.Environment.Members[t.Target%len(s.Environment.Members)]
}

// milliseconds is the dose as a time.
func (t *Step) milliseconds(from, to int) time.Duration {
	return time.Duration(from+(to-from)*t.Dose/100) * time.Millisecond
}

func three(s *Scene) bool { return len(s.Environment.Members) >= 3 }

// etcd is for what kine does not have. It has no members that vote, either, and so none of the faults that need three.
func etcd(s *Scene) bool { return !s.Environment.Engine.Kine() }

// replica, member, etcdLinks, oneLink and peer make a fault of what is done to one.
func replica(f func(*environment.Replica)) func(context.Context, *Scene, *Step) error {
	return func(_ context.Context, s *Scene, t *Step) error { f(t.replica(s)); return nil }
}

func member(f func(*environment.Member)) func(context.Context, *Scene, *Step) error {
	return func(_ context.Context, s *Scene, t *Step) error { f(t.member(s)); return nil }
}

func etcdLinks(f func(*environment.Link)) func(context.Context, *Scene, *Step) error {
	return replica(func(r *environment.Replica) { r.Etcd.Each(f) })
}

func oneLink(f func(*environment.Link)) func(context.Context, *Scene, *Step) error {
	return func(_ context.Context, s *Scene, t *Step) error {
		r := t.replica(s)
		f(r.Etcd[t.Dose%len(r.Etcd)])
		return nil
	}
}

func clientLink(f func(*environment.Link)) func(context.Context, *Scene, *Step) error {
	return replica(func(r *environment.Replica) { f(r.Client) })
}

func peer(f func(*environment.Link)) func(context.Context, *Scene, *Step) error {
	return member(func(m *environment.Member) { f(m.Peers) })
}

// start starts a child again and wants it alive.
func startReplica(_ context.Context, s *Scene, t *Step) error { return t.replica(s).Start() }
func startMember(_ context.Context, s *Scene, t *Step) error  { return t.member(s).Start() }

// leading is the member that leads when the fault begins.
func leading(f func(*environment.Member)) func(context.Context, *Scene, *Step) error {
	return func(ctx context.Context, s *Scene, t *Step) error {
		m := s.Environment.Leader(ctx)
		t.Target = m.ID
		f(m)
		return nil
	}
}

// kinds are all faults.
var kinds = []kind{
	{name: "none", help: "nothing happens", from: 0.1, to: 0.2, begin: func(context.Context, *Scene, *Step) error { return nil }},

	{name: "kill-replica", help: "SIGKILL of a replica, then a start", from: 0, to: 0.6, begin: replica(func(r *environment.Replica) { r.Kill() }), end: startReplica},
	{name: "kill-replicas", help: "SIGKILL of all replicas at once, then a start", from: 0, to: 0.3, alone: true, begin: eachReplica(func(r *environment.Replica) error { r.Kill(); return nil }), end: eachReplica(func(r *environment.Replica) error { return r.Start() })},
	{name: "stop-replica", help: "SIGSTOP of a replica", from: 0.2, to: 2, long: true, begin: replica(func(r *environment.Replica) { r.Freeze() }), end: replica(func(r *environment.Replica) { r.Thaw() })},
	{name: "kill-etcd", help: "SIGKILL of a member of etcd, then a start", from: 0, to: 1.5, begin: member(func(m *environment.Member) { m.Kill() }), end: startMember},
	{name: "stop-etcd", help: "SIGSTOP of a member of etcd", from: 0.2, to: 2.5, long: true, begin: member(func(m *environment.Member) { m.Freeze() }), end: member(func(m *environment.Member) { m.Thaw() })},
	{name: "kill-leader", help: "SIGKILL of the leader of etcd, then a start", from: 0.5, to: 2, needs: three, begin: leading(func(m *environment.Member) { m.Kill() }), end: startMember},
	{name: "stop-leader", help: "SIGSTOP of the leader of etcd", from: 0.5, to: 3, needs: three, long: true, begin: leading(func(m *environment.Member) { m.Freeze() }), end: member(func(m *environment.Member) { m.Thaw() })},

	{name: "cut", help: "a replica has no connection to etcd", from: 0.1, to: 2, long: true, begin: etcdLinks((*environment.Link).Cut), end: etcdLinks((*environment.Link).Heal)},
	{name: "cut-one", help: "a replica has no connection to one member of etcd", from: 0.3, to: 2, needs: three, begin: oneLink((*environment.Link).Cut), end: etcdLinks((*environment.Link).Heal)},
	{name: "flap", help: "connections of a replica to etcd break, again and again", from: 0, to: 0.1, begin: flap},
	{name: "delay", help: "everything between a replica and etcd is late", from: 0.5, to: 2, begin: func(_ context.Context, s *Scene, t *Step) error {
		t.replica(s).Etcd.Each(func(k *environment.Link) { k.Delay(t.milliseconds(20, 400)) })
		return nil
	}, end: etcdLinks((*environment.Link).Heal)},
	{name: "lose-answers", help: "what a replica asks of etcd is done, and the answers are lost", from: 0.1, to: 0.6, begin: etcdLinks((*environment.Link).HoldDown), end: loseThenHeal},
	{name: "late-requests", help: "what a replica asks of etcd waits, and arrives after all", from: 0.3, to: 3, long: true, begin: etcdLinks((*environment.Link).HoldUp), end: etcdLinks((*environment.Link).Heal)},
	{name: "late-answers", help: "what etcd answers a replica waits, and arrives after all", from: 0.3, to: 3, begin: etcdLinks((*environment.Link).HoldDown), end: etcdLinks((*environment.Link).Heal)},
	{name: "half-open", help: "connections of a replica to etcd stay open, and nothing passes", from: 0.3, to: 3, long: true, begin: etcdLinks((*environment.Link).Hold), end: etcdLinks((*environment.Link).Heal)},
	{name: "half-open-one", help: "the connection of a replica to one member of etcd stays open, and nothing passes", from: 0.5, to: 3, needs: three, long: true, begin: oneLink((*environment.Link).Hold), end: etcdLinks((*environment.Link).Heal)},

	{name: "client-cut", help: "clients have no connection to a replica", from: 0.1, to: 1.5, begin: clientLink((*environment.Link).Cut), end: clientLink((*environment.Link).Heal)},
	{name: "client-lose", help: "what clients ask of a replica is done, and the answers are lost", from: 0.1, to: 0.6, begin: clientLink((*environment.Link).HoldDown), end: clientLink(func(k *environment.Link) { k.Reset(); k.Heal() })},
	{name: "client-half-open", help: "connections of clients to a replica stay open, and nothing passes", from: 0.3, to: 2, begin: clientLink((*environment.Link).Hold), end: clientLink((*environment.Link).Heal)},
	{name: "client-delay", help: "everything between clients and a replica is late", from: 0.5, to: 2, begin: func(_ context.Context, s *Scene, t *Step) error {
		t.replica(s).Client.Delay(t.milliseconds(20, 300))
		return nil
	}, end: clientLink((*environment.Link).Heal)},

	{name: "isolate", help: "a member of etcd has no connection to the others", from: 0.5, to: 3, needs: three, begin: func(_ context.Context, s *Scene, t *Step) error { s.Environment.Isolate(t.member(s)); return nil }, end: func(_ context.Context, s *Scene, _ *Step) error { s.Environment.Rejoin(); return nil }},
	{name: "isolate-leader", help: "the leader of etcd has no connection to the others", from: 1, to: 3, needs: three, begin: func(ctx context.Context, s *Scene, _ *Step) error {
		s.Environment.Isolate(s.Environment.Leader(ctx))
		return nil
	}, end: func(_ context.Context, s *Scene, _ *Step) error { s.Environment.Rejoin(); return nil }},
	{name: "peer-delay", help: "everything that others send a member of etcd is late", from: 0.5, to: 2, needs: three, begin: func(_ context.Context, s *Scene, t *Step) error {
		t.member(s).Peers.Delay(t.milliseconds(20, 500))
		return nil
	}, end: peer((*environment.Link).Heal)},
	{name: "peer-half-open", help: "connections of others to a member of etcd stay open, and nothing passes", from: 0.5, to: 3, needs: three, begin: peer((*environment.Link).Hold), end: peer((*environment.Link).Heal)},
	{name: "peer-lose", help: "what others ask of a member of etcd is done, and the answers are lost", from: 0.2, to: 1, needs: three, begin: peer((*environment.Link).HoldDown), end: peer(func(k *environment.Link) { k.Reset(); k.Heal() })},

	{name: "compact", help: "etcd's history is compacted, again and again", from: 0, to: 0.1, begin: compactOften},
	{name: "cut-compact", help: "a replica has no connection to etcd, whose history is compacted meanwhile", from: 0.2, to: 1.5, begin: etcdLinks((*environment.Link).Cut), end: compactThenHeal},
	{name: "defragment", help: "the members of etcd are defragmented, one after another", from: 0, to: 0.1, needs: etcd, begin: defragment},
	{name: "move-leader", help: "the leader of etcd hands over, again and again", from: 0, to: 0.1, needs: three, begin: moveOften},
	{name: "replace-member", help: "a member of etcd is removed and a new one takes its place", from: 0, to: 0.1, needs: three, alone: true, begin: func(ctx context.Context, s *Scene, t *Step) error { return s.Environment.Replace(ctx, t.member(s)) }},
	{name: "full", help: "etcd is full (quota) and refuses writes, until it is given room", from: 0.3, to: 1.2, needs: etcd, alone: true, begin: fill, end: drain},
	{name: "disk", help: "the file system of a member of etcd is full", from: 0.3, to: 1, needs: func(s *Scene) bool { return s.Environment.Disk > 0 && etcd(s) }, alone: true, begin: func(_ context.Context, s *Scene, t *Step) error { return t.member(s).FillDisk() }, end: freeDisk},

	{name: "webhook-slow", help: "conversion and admission webhooks take long", from: 0.3, to: 1.5, begin: func(_ context.Context, s *Scene, t *Step) error {
		s.Site.Webhook.Admission.Store(int64(t.milliseconds(300, 3000)))
		s.Site.Webhook.Conversion.Store(int64(t.milliseconds(50, 1000)))
		return nil
	}, end: func(_ context.Context, s *Scene, _ *Step) error { s.Site.Webhook.Heal(); return nil }},
	{name: "webhook-broken", help: "conversion and admission webhooks answer with 500", from: 0.3, to: 1.5, begin: func(_ context.Context, s *Scene, _ *Step) error { s.Site.Webhook.Broken.Store(true); return nil }, end: func(_ context.Context, s *Scene, _ *Step) error { s.Site.Webhook.Heal(); return nil }},

	{name: "upgrade", help: "replicas end one after another, and another program takes their place (needs -other)", from: 0, to: 0.1, needs: func(s *Scene) bool { return s.Other != "" }, alone: true, begin: upgrade},
	{name: "clock", help: "a replica starts again with a clock that is wrong by up to an hour (needs -skew)", from: 1, to: 2, needs: func(s *Scene) bool { return s.Skewed != "" }, alone: true, begin: skew, end: unskew},
}

func eachReplica(f func(*environment.Replica) error) func(context.Context, *Scene, *Step) error {
	return func(_ context.Context, s *Scene, _ *Step) error {
		for _, r := range s.Environment.Replicas {
			if err := f(r); err != nil {
				return err
			}
		}
		return nil
	}
}

func flap(ctx context.Context, s *Scene, t *Step) error {
	for range 6 {
		t.replica(s).Etcd.Each((*environment.Link).Reset)
		launch.Pause(ctx, t.milliseconds(20, 300))
	}
	return nil
}

// loseThenHeal drops what is held, and lets the replica connect again a moment later.
func loseThenHeal(ctx context.Context, s *Scene, t *Step) error {
	t.replica(s).Etcd.Each((*environment.Link).Cut)
	launch.Pause(ctx, t.milliseconds(0, 700))
	t.replica(s).Etcd.Each((*environment.Link).Heal)
	return nil
}

// compact compacts what the record of the run has read.
func compact(ctx context.Context, s *Scene) {
	revision := s.Site.Recorded(ctx)
	if revision == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	// It fails if that is compacted already, or if etcd is away: both are as good.
	_, _ = s.Environment.Etcd.Compact(ctx, revision)
}

func compactOften(ctx context.Context, s *Scene, t *Step) error {
	for range 3 {
		compact(ctx, s)
		launch.Pause(ctx, t.milliseconds(50, 500))
	}
	return nil
}

func compactThenHeal(ctx context.Context, s *Scene, t *Step) error {
	compact(ctx, s)
	t.replica(s).Etcd.Each((*environment.Link).Heal)
	return nil
}

func defragment(ctx context.Context, s *Scene, _ *Step) error {
	compact(ctx, s)
	for _, m := range s.Environment.Members {
		_ = m.Defragment(ctx) // another fault may have it ended
	}
	return nil
}

func moveOften(ctx context.Context, s *Scene, t *Step) error {
	for i := range 2 {
		_ = s.Environment.MoveLeader(ctx, s.Environment.Members[(t.Target+i)%len(s.Environment.Members)]) // it may be away, or lead already
		launch.Pause(ctx, t.milliseconds(100, 600))
	}
	return nil
}

// filler is below no prefix that a server reads.
const filler = "/filler/"

// fill writes until etcd refuses.
func fill(ctx context.Context, s *Scene, _ *Step) error {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	megabyte := string(make([]byte, 1<<20))
	for i := range 4096 {
		if _, err := s.Environment.Etcd.Put(ctx, fmt.Sprintf("%s%d", filler, i), megabyte); err != nil {
			return nil // full, or away
		}
	}
	return fmt.Errorf("etcd takes 4 GB: start it with a smaller quota")
}

// drain gives etcd room.
func drain(ctx context.Context, s *Scene, _ *Step) error {
	var err error
	for end := time.Now().Add(time.Minute); time.Now().Before(end) && ctx.Err() == nil; launch.Pause(ctx, 100*time.Millisecond) {
		if err = drainOnce(ctx, s); err == nil {
			return nil
		}
	}
	return err
}

func drainOnce(ctx context.Context, s *Scene) error {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	if _, err := s.Environment.Etcd.Delete(ctx, filler, clientv3.WithPrefix()); err != nil {
		return err
	}
	now, err := s.Environment.Revision(ctx)
	if err != nil {
		return err
	}
	// What the record of the run has not read must stay.
	revision := s.Site.Recorded(ctx)
	if revision == 0 {
		revision = now
	}
	if _, err := s.Environment.Etcd.Compact(ctx, revision, clientv3.WithCompactPhysical()); err != nil && !errors.Is(err, rpctypes.ErrCompacted) {
		return err
	}
	for _, m := range s.Environment.Members {
		if err := m.Defragment(ctx); err != nil {
			return err
		}
	}
	_, err = s.Environment.Etcd.AlarmDisarm(ctx, &clientv3.AlarmMember{})
	return err
}

// freeDisk gives a member its space back. Without space it may have ended.
func freeDisk(_ context.Context, s *Scene, t *Step) error {
	return errors.Join(t.member(s).FreeDisk(), t.member(s).Start())
}

// upgrade replaces the replicas one after another by the other program, and then back, so that the next run begins as this one.
func upgrade(ctx context.Context, s *Scene, _ *Step) error {
	for _, program := range []string{s.Other, s.Environment.Binary} {
		for _, r := range s.Environment.Replicas {
			r.End()
			if err := r.Use(program); err != nil {
				return err
			}
			if err := r.Start(); err != nil {
				return err
			}
			if err := r.AwaitReady(ctx, environment.Patience); err != nil {
				return err
			}
		}
	}
	return nil
}

func skew(_ context.Context, s *Scene, t *Step) error {
	r := t.replica(s)
	r.Kill()
	if err := r.Use(s.Skewed, fmt.Sprintf("%s=%d", SkewVariable, (t.Dose-50)*72)); err != nil {
		return err
	}
	return r.Start()
}

func unskew(_ context.Context, s *Scene, t *Step) error {
	r := t.replica(s)
	r.Kill()
	if err := r.Use(s.Environment.Binary); err != nil {
		return err
	}
	return r.Start()
}

// Fill fills etcd until it refuses writes. undo gives it room again.
func Fill(ctx context.Context, s *Scene) (undo func(context.Context) error, err error) {
	return func(ctx context.Context) error { return drain(ctx, s, nil) }, fill(ctx, s, nil)
}
