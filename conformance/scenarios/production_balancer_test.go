package scenarios

import (
	"errors"
	"io"
	"net"
	"sync"
	"time"
)

// asksEvery is how often the balancer asks replicas whether they are ready.
const asksEvery = 200 * time.Millisecond

// A balancer does what load balancers do that know nothing of HTTP: new connections go in turn to the replicas that say they are ready;
// those that there are stay until one of the two sides closes them. It does not try another replica if one does not answer.
type balancer struct {
	url      string
	listener net.Listener
	closing  chan struct{}
	running  sync.WaitGroup

	mu       sync.Mutex
	backends []*backend
	turn     int
	open     map[net.Conn]bool
	lost     []string // connections that came to nothing, and why
}

type backend struct {
	addr  string
	ready bool
	taken int // connections so far
}

func newBalancer(s *estate) *balancer {
	s.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		s.Fatal(err)
	}
	b := &balancer{url: "https://" + listener.Addr().String(), listener: listener, closing: make(chan struct{}), open: map[net.Conn]bool{}}
	for _, r := range s.replicas {
		backend := &backend{addr: r.addr, ready: true}
		b.backends = append(b.backends, backend)
		b.running.Go(func() { b.watch(s, backend) })
	}
	b.running.Go(b.accept)
	s.Cleanup(b.close)
	return b
}

func (b *balancer) close() {
	close(b.closing)
	_ = b.listener.Close()
	b.mu.Lock()
	for c := range b.open {
		_ = c.Close()
	}
	b.mu.Unlock()
	b.running.Wait()
}

// watch asks one replica whether it is ready, again and again.
func (b *balancer) watch(s *estate, to *backend) {
	client, ticker := probing(), time.NewTicker(asksEvery)
	defer ticker.Stop()
	for {
		ready := probe(s.Context(), client, to.addr) == nil
		b.mu.Lock()
		to.ready = ready
		b.mu.Unlock()
		select {
		case <-b.closing:
			return
		case <-ticker.C:
		}
	}
}

// knows reports whether the balancer takes a replica for ready.
func (b *balancer) knows(addr string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, to := range b.backends {
		if to.addr == addr {
			return to.ready
		}
	}
	return false
}

func (b *balancer) accept() {
	for {
		conn, err := b.listener.Accept()
		if err != nil {
			return
		}
		b.running.Go(func() { b.serve(conn) })
	}
}

// pick returns the next replica that is ready.
func (b *balancer) pick() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	for range b.backends {
		b.turn++
		if to := b.backends[b.turn%len(b.backends)]; to.ready {
			to.taken++
			return to.addr
		}
	}
	return ""
}

func (b *balancer) serve(conn net.Conn) {
	defer conn.Close()
	addr := b.pick()
	if addr == "" {
		b.loses(errors.New("no replica is ready"))
		return
	}
	server, err := net.DialTimeout("tcp", addr, 5*time.Second)
	if err != nil {
		b.loses(err)
		return
	}
	defer server.Close()
	if !b.holds(conn, server) {
		return
	}
	defer b.drops(conn, server)
	var both sync.WaitGroup
	both.Go(func() { forward(conn, server) })
	both.Go(func() { forward(server, conn) })
	both.Wait()
}

// forward copies one direction, and tells the other end when it is over.
func forward(from, to net.Conn) {
	if _, err := io.Copy(to, from); err != nil {
		_ = from.Close()
		_ = to.Close()
		return
	}
	if half, ok := to.(*net.TCPConn); ok {
		_ = half.CloseWrite()
	}
}

func (b *balancer) holds(conns ...net.Conn) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	select {
	case <-b.closing:
		return false
	default:
	}
	for _, c := range conns {
		b.open[c] = true
	}
	return true
}

func (b *balancer) drops(conns ...net.Conn) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, c := range conns {
		delete(b.open, c)
	}
}

func (b *balancer) loses(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.lost = append(b.lost, err.Error())
}

// losses are the connections that came to nothing, and why.
func (b *balancer) losses() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.lost
}
