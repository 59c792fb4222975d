package store

import (
	"context"
	"slices"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/klog/v2"
)

// probing asks one member for its status, each second, over a connection of its own.
// Status needs no leader and no disk, but the lock that reads need, so that a member
// that is being defragmented does not answer either; and it says whether the member
// knows a leader, and which version it has. HTTP/2's own pings would be cheaper, but
// etcd ends connections that ping more often than every 5 s.
//
// A request without an answer for a second gets company: one more on a new connection,
// which is replaced each second. The old one stays. Which of both answers tells what
// was wrong:
//
//	the old one ▶ the member was slow or stopped: what was sent to it is being answered
//	the new one ▶ what was sent before is lost, and TCP sends it again only after as long
//	              a pause as the link was cut; or a proxy has forgotten the old connection
//
// The old one is also for slow machines: new connections that are given up after a
// second would never finish a handshake that takes longer.
type probing struct {
	*links
	*link
	attempts []*attempt // that are not answered, the oldest first
	kept     *grpc.ClientConn
	asking   bool // there is no answer yet, whether or not there is an attempt
	looked   time.Time
	pause    time.Duration // until the next look
}

// attempt is one request for the status of a member.
type attempt struct {
	conn   *grpc.ClientConn
	cancel context.CancelFunc
	began  time.Time
	age    time.Duration
	status *pb.StatusResponse
	err    error
}

const (
	// attemptTime is how long the newest attempt stays the newest.
	attemptTime = time.Second
	// After longOutage attempts are made less often: every one is a connection that a
	// stopped member finds in its queue when it goes on.
	longOutage      = time.Minute
	attemptTimeLong = 3 * attemptTime / 2
	// lostGrace is how long an old connection has to show that it works.
	lostGrace = 500 * time.Millisecond
)

// probe runs until the context ends.
func (l *links) probe(ctx context.Context, one *link) {
	p := &probing{links: l, link: one, looked: time.Now()}
	defer p.end()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case a := <-one.done:
			if i := slices.Index(p.attempts, a); i >= 0 {
				p.attempts = slices.Delete(p.attempts, i, i+1)
				p.finished(a)
			}
		case <-timer.C:
			p.look(ctx)
		}
		timer.Reset(p.pause)
	}
}

// end gives up all attempts.
func (p *probing) end() {
	p.giveUp(p.attempts...)
	p.attempts = nil
	if p.kept != nil {
		_ = p.kept.Close()
		p.kept = nil
	}
}

func (p *probing) giveUp(attempts ...*attempt) {
	for _, a := range attempts {
		a.cancel()
		_ = a.conn.Close()
	}
}

// elapsed counts the time since the last look.
func (p *probing) elapsed(now time.Time) {
	d := ran(now.Sub(p.looked), p.pause)
	p.looked = now
	for _, a := range p.attempts {
		a.age += d
	}
	if p.asking {
		p.links.mu.Lock()
		p.waiting += d
		p.links.mu.Unlock()
	}
}

// look begins to ask, or sees what has become of asking.
func (p *probing) look(ctx context.Context) {
	now := time.Now()
	p.elapsed(now)
	p.pause = probeTick
	if !p.asking {
		p.asking = true
		p.links.mu.Lock()
		p.since, p.waiting = now, 0
		p.links.mu.Unlock()
		p.try(ctx, p.kept)
		return
	}
	p.links.mu.Lock()
	limit := attemptTime
	if p.waiting > longOutage {
		limit = attemptTimeLong
	}
	p.decide()
	p.links.mu.Unlock()
	if len(p.attempts) > 0 && p.attempts[0].age > connectTimeout {
		p.giveUp(p.attempts[0])
		p.attempts = p.attempts[1:]
	}
	if n := len(p.attempts); n == 0 || p.attempts[n-1].age >= limit {
		if n > 1 {
			p.giveUp(p.attempts[1:]...)
			p.attempts = p.attempts[:1]
		}
		p.try(ctx, nil)
	}
}

// try asks over a connection; over a new one if that is nil.
func (p *probing) try(ctx context.Context, conn *grpc.ClientConn) {
	p.kept = nil
	if conn == nil {
		var err error
		if conn, err = p.connect(p.address); err != nil {
			klog.ErrorS(err, "Failed to prepare a connection to an etcd member, retrying", "endpoint", p.endpoint)
			return
		}
	}
	life := ctx
	ctx, cancel := context.WithCancel(ctx)
	a := &attempt{conn: conn, cancel: cancel, began: time.Now()}
	p.attempts = append(p.attempts, a)
	go func() {
		defer cancel()
		a.status, a.err = pb.NewMaintenanceClient(a.conn).Status(ctx, &pb.StatusRequest{})
		select {
		case p.done <- a:
		case <-life.Done():
		}
	}()
}

// connect returns a connection that no other request uses, and that is not held.
func (l *links) connect(address string) (*grpc.ClientConn, error) {
	options := []grpc.DialOption{
		grpc.WithConnectParams(reconnect),
		grpc.WithTransportCredentials(l.creds),
		grpc.WithDisableServiceConfig(),
		grpc.WithReadBufferSize(1 << 10), grpc.WithWriteBufferSize(1 << 10), // a status has 200 bytes
	}
	if l.direct {
		options = append(options, grpc.WithContextDialer(l.dialPlain))
	}
	return grpc.NewClient("passthrough:///"+address, options...)
}

// finished takes note of what became of an attempt.
func (p *probing) finished(a *attempt) {
	p.elapsed(time.Now())
	p.links.mu.Lock()
	defer p.links.mu.Unlock()
	if !isAnswer(a.err) {
		p.err, p.inARow = a.err, 0
		_ = a.conn.Close()
		p.pause = probeTick
		return
	}
	took := min(time.Since(a.began), a.age+probeTick)
	lost := len(p.attempts) > 0 && quicker*took <= p.attempts[0].age
	p.giveUp(p.attempts...)
	p.attempts, p.kept = nil, a.conn
	p.asking, p.pause = false, probeEvery
	waited, since := p.waiting, p.since
	if p.condition() != fine {
		p.lastSince = since
		if p.condition() == leaderless {
			p.lastSince = p.leaderSince
		}
	}
	p.answered, p.waiting, p.err = true, 0, nil
	p.took = took
	if p.inARow++; waited >= attemptTime {
		p.inARow = 1
	}
	if s := a.status; s != nil {
		p.status = s
		p.follow(s.Leader, a.began)
		p.versions.note(p.endpoint, s.Version)
		p.elections.leads(s.RaftTerm, s.Leader)
	}
	p.decide()
	if p.troubled() {
		p.pause = probeTick
	}
	if waited >= attemptTime || lost {
		p.renew(p.link, a.began, since, lost)
	}
}

// follow counts for how long a member knows a leader, or none.
func (s *state) follow(leader uint64, asked time.Time) {
	// A little at once, so that the first answer counts.
	more := func(d time.Duration, since time.Time) time.Duration {
		return max(time.Millisecond, min(time.Since(since), d+probeEvery+probeTick))
	}
	if (leader != 0) != (s.led > 0) {
		s.leaderSince, s.led, s.adrift = asked, 0, 0
	}
	if leader != 0 {
		s.led = more(s.led, s.leaderSince)
	} else {
		s.adrift = more(s.adrift, s.leaderSince)
	}
}

// troubled reports whether a member does not answer as it should: the others are asked
// more often then, so that the next leader is known soon. The mutex is held.
func (l *links) troubled() bool {
	return slices.ContainsFunc(l.all, func(one *link) bool {
		return one.waiting < longOutage && (one.inARow == 0 || one.waiting >= probeTick || one.adrift > 0)
	})
}

// isAnswer reports whether a member has answered, with whatever words: a server
// without permissions has a member all the same.
func isAnswer(err error) bool {
	switch status.Code(err) {
	case codes.OK, codes.PermissionDenied, codes.Unauthenticated, codes.Unimplemented, codes.InvalidArgument, codes.FailedPrecondition, codes.ResourceExhausted:
		return true
	}
	return false
}

// decide acts on what is known of all links. The mutex is held.
func (l *links) decide() {
	var held []*state
	if l.direct {
		states := make([]*state, len(l.all))
		for i, one := range l.all {
			states[i] = &one.state
		}
		held = review(states)
	}
	for _, one := range l.all {
		if slices.Contains(held, &one.state) {
			one.cut(func(time.Time) bool { return true })
		}
		l.log(one)
	}
	l.publish()
}

// renew ends what waits on a link that works again. The mutex is held.
//
// Attempts of gRPC to connect that are older than one that was successful wait for
// nothing. Connections that were open before are closed only if the probe's own was
// lost, and if nothing came by them since. Lost is one that was silent for four times
// as long as a new one took: where all is slow, nothing is lost.
func (l *links) renew(one *link, began, since time.Time, lost bool) {
	for d := range one.dials {
		if d.began.Before(began) {
			d.cancel()
		}
	}
	for c := range one.conns {
		if c.began.Before(began) && c.read.Load() == 0 {
			one.drop(c)
		}
	}
	if !lost {
		return
	}
	time.AfterFunc(lostGrace, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if one.waiting < linkPatience {
			one.cut(func(read time.Time) bool { return read.Before(since) })
		}
	})
}
