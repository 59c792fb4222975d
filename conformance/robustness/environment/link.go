package environment

import (
	"net"
	"sync"
	"time"
)

// A Link is a TCP proxy in front of one listener. Up is the direction towards it.
type Link struct {
	Addr   string
	target string
	listen net.Listener
	// origin tells who has opened a connection, if that matters; see Peers.
	origin func(net.Conn) int

	mu    sync.Mutex
	moved *sync.Cond // state has changed
	state state
	open  map[*pair]bool
}

// state is what is done to the bytes of a link.
type state struct {
	cut              bool
	from             int // cut only connections of this origin, unless it is unknown
	holdUp, holdDown bool
	delay            time.Duration
}

// unknown is the origin of connections without a known one.
const unknown = -1

// pair is a connection through the link.
type pair struct {
	in, out net.Conn
	origin  int
}

func (p *pair) close() {
	_ = p.in.Close()
	_ = p.out.Close()
}

// newLink listens on a free port of 127.0.0.1.
func newLink(target string) (*Link, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	k := &Link{Addr: l.Addr().String(), target: target, listen: l, open: map[*pair]bool{}, state: state{from: unknown}}
	k.moved = sync.NewCond(&k.mu)
	go k.accept()
	return k, nil
}

func (k *Link) accept() {
	for {
		in, err := k.listen.Accept()
		if err != nil {
			return
		}
		go k.serve(in)
	}
}

// cuts reports whether connections of an origin are refused. The lock is held.
func (s *state) cuts(origin int) bool { return s.cut && (s.from == unknown || s.from == origin) }

func (k *Link) serve(in net.Conn) {
	origin := unknown
	if k.origin != nil {
		origin = k.origin(in)
	}
	out, err := net.DialTimeout("tcp", k.target, 2*time.Second)
	if err != nil {
		_ = in.Close()
		return
	}
	p := &pair{in, out, origin}
	k.mu.Lock()
	cut := k.state.cuts(origin)
	if !cut {
		k.open[p] = true
	}
	k.mu.Unlock()
	if cut {
		p.close()
		return
	}
	go k.pass(p, in, out, true)
	k.pass(p, out, in, false)
	k.mu.Lock()
	delete(k.open, p)
	k.mu.Unlock()
}

// chunk is what was read at once, and when.
type chunk struct {
	at   time.Time
	data []byte
}

// pass copies one direction. Reading goes on while the link holds the bytes, as in the buffers of a network.
func (k *Link) pass(p *pair, from, to net.Conn, up bool) {
	chunks := make(chan chunk, 4096)
	go func() {
		defer close(chunks)
		for {
			data := make([]byte, 32<<10)
			n, err := from.Read(data)
			if n > 0 {
				chunks <- chunk{time.Now(), data[:n]}
			}
			if err != nil {
				return
			}
		}
	}()
	for c := range chunks {
		if !k.wait(p, up, c.at) {
			break
		}
		if _, err := to.Write(c.data); err != nil {
			break
		}
	}
	k.wait(p, up, time.Now()) // the end of a connection does not pass a link that is held, either
	p.close()
	for range chunks {
		continue // until the reader has seen that the connection is closed
	}
}

// wait returns when a chunk may go on; false if it never may.
func (k *Link) wait(p *pair, up bool, at time.Time) bool {
	k.mu.Lock()
	for (up && k.state.holdUp || !up && k.state.holdDown) && k.open[p] {
		k.moved.Wait()
	}
	delay, open := k.state.delay, k.open[p]
	k.mu.Unlock()
	if delay > 0 {
		time.Sleep(time.Until(at.Add(delay)))
	}
	return open
}

// sever ends the connections of an origin, or all. What they hold is lost. The lock is held.
func (k *Link) sever(from int) {
	for p := range k.open {
		if from == unknown || p.origin == from {
			delete(k.open, p)
			p.close()
		}
	}
}

func (k *Link) change(f func(*state)) {
	k.mu.Lock()
	f(&k.state)
	if k.state.cut {
		k.sever(k.state.from)
	}
	k.mu.Unlock()
	k.moved.Broadcast()
}

// Cut ends all connections, and new ones are closed at once. What was held is lost.
func (k *Link) Cut() { k.change(func(s *state) { s.cut, s.from = true, unknown }) }

// cutFrom is Cut for connections of one origin.
func (k *Link) cutFrom(origin int) { k.change(func(s *state) { s.cut, s.from = true, origin }) }

// Reset ends all connections; new ones pass.
func (k *Link) Reset() {
	k.mu.Lock()
	k.sever(unknown)
	k.mu.Unlock()
	k.moved.Broadcast()
}

// Hold lets nothing through, and keeps connections open: a half-open link.
func (k *Link) Hold() { k.change(func(s *state) { s.holdUp, s.holdDown = true, true }) }

// HoldUp lets no requests through.
func (k *Link) HoldUp() { k.change(func(s *state) { s.holdUp = true }) }

// HoldDown lets no answers through. Followed by Cut or Reset, the answers are lost while the requests have been carried out.
func (k *Link) HoldDown() { k.change(func(s *state) { s.holdDown = true }) }

// Delay has each byte arrive later.
func (k *Link) Delay(d time.Duration) { k.change(func(s *state) { s.delay = d }) }

// Heal undoes everything. What is held goes on.
func (k *Link) Heal() { k.change(func(s *state) { *s = state{from: unknown} }) }

func (k *Link) close() {
	_ = k.listen.Close()
	k.Cut()
}

// Links are several links that have the same done to them.
type Links []*Link

// Each calls f for each link.
func (ks Links) Each(f func(*Link)) {
	for _, k := range ks {
		f(k)
	}
}
