package limit

import (
	"errors"
	"maps"
	"net"
	"net/netip"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/klog/v2"
)

const (
	// keepAlive is how often a connection without traffic is probed, as
	// k8s.io/apiserver has it.
	keepAlive = 3 * time.Minute
	// hurriedWrite is how long a write may be blocked while the server ends.
	hurriedWrite = 2 * time.Second
	// tellEvery is how often a refused connection is logged, at most.
	tellEvery = 10 * time.Second
)

// The limits of connections, as metrics call them.
const (
	byAddress = "address"
	inAll     = "total"
)

// Connections says how many connections clients may have.
type Connections struct {
	// PerAddress is for connections of one client address: one IPv4 address, or
	// one IPv6 network of 64 bits, which one client has as a rule. 0 is no limit.
	PerAddress int
	// Total is for all connections. 0 is no limit.
	Total int
	// WriteTimeout is how long a write may be blocked before the connection is
	// closed; it may be closed after half of that. 0 is no limit.
	WriteTimeout time.Duration
}

// Listener closes connections that are too many as soon as they are accepted:
// before TLS there is no way to say why. It is safe for concurrent use.
type Listener struct {
	net.Listener
	limits Connections
	write  atomic.Int64 // nanoseconds that a write may be blocked

	mu   sync.Mutex
	open map[*conn]struct{}
	from map[netip.Addr]int
	told time.Time
}

// Listen wraps a listener.
func Listen(l net.Listener, limits Connections) *Listener {
	register()
	wrapped := &Listener{Listener: l, limits: limits, open: map[*conn]struct{}{}, from: map[netip.Addr]int{}}
	wrapped.write.Store(int64(limits.WriteTimeout))
	return wrapped
}

// Accept implements net.Listener.
func (l *Listener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		tcp, ok := c.(*net.TCPConn)
		if ok {
			_ = tcp.SetKeepAlive(true) // without it, dead clients are noticed by the write timeout
			_ = tcp.SetKeepAlivePeriod(keepAlive)
		}
		one := &conn{Conn: c, of: l, address: client(c.RemoteAddr())}
		limit := l.admit(one)
		if limit == "" {
			connectionsOpen.Inc()
			return one, nil
		}
		connectionsRefused.WithLabelValues(limit).Inc()
		if ok {
			_ = tcp.SetLinger(0) // a reset: the kernel keeps nothing of it
		}
		_ = c.Close()
	}
}

// client returns the address that a connection is counted for.
func client(addr net.Addr) netip.Addr {
	tcp, ok := addr.(*net.TCPAddr)
	if !ok {
		return netip.Addr{}
	}
	a := tcp.AddrPort().Addr().Unmap().WithZone("")
	if a.Is6() {
		if p, err := a.Prefix(64); err == nil {
			return p.Addr()
		}
	}
	return a
}

// admit counts a connection, or returns the limit that is against it.
func (l *Listener) admit(c *conn) (limit string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	flag := ""
	switch {
	case l.limits.Total > 0 && len(l.open) >= l.limits.Total:
		limit, flag = inAll, "--max-connections"
	case l.limits.PerAddress > 0 && c.address.IsValid() && l.from[c.address] >= l.limits.PerAddress:
		limit, flag = byAddress, "--max-connections-per-address"
	default:
		l.open[c] = struct{}{}
		l.from[c.address]++
		return ""
	}
	if now := time.Now(); now.Sub(l.told) >= tellEvery {
		l.told = now
		klog.InfoS("Closed a new connection: too many are open", "address", c.address, "connectionsOfAddress", l.from[c.address], "connections", len(l.open), "flag", flag)
	}
	return limit
}

func (l *Listener) forget(c *conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.open, c)
	if l.from[c.address]--; l.from[c.address] == 0 {
		delete(l.from, c.address)
	}
}

// all returns the connections that are open.
func (l *Listener) all() []*conn {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Collect(maps.Keys(l.open))
}

// Hurry makes writes that are blocked, and later ones, end soon: the server ends.
func (l *Listener) Hurry() {
	if l.limits.WriteTimeout > 0 && l.limits.WriteTimeout <= hurriedWrite {
		return
	}
	l.write.Store(int64(hurriedWrite))
	for _, c := range l.all() {
		c.hurry()
	}
}

// Cut closes all connections that are open.
func (l *Listener) Cut() {
	for _, c := range l.all() {
		_ = c.Close() // reads and writes on it fail from now on
	}
}

// conn is a connection whose writes may be blocked only for so long.
//
// A write is one TLS record, 16 KB at most: a client that takes less than that
// within the time loses the connection.
type conn struct {
	net.Conn
	of      *Listener
	address netip.Addr
	closed  atomic.Bool

	mu    sync.Mutex
	asked time.Time // the deadline that others have set
	set   time.Time // the one in force
}

// Write implements net.Conn.
func (c *conn) Write(p []byte) (int, error) {
	own := c.arm()
	n, err := c.Conn.Write(p)
	if err != nil && own && errors.Is(err, os.ErrDeadlineExceeded) {
		answersEnded.WithLabelValues("connection").Inc()
		if tcp, ok := c.Conn.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0) // or the kernel keeps megabytes for a client that does not read
		}
	}
	return n, err
}

// arm sets the deadline of a write, and reports whether it is our own. One that
// has at least half of its time left is left alone.
func (c *conn) arm() (own bool) {
	timeout := time.Duration(c.of.write.Load())
	if timeout <= 0 {
		return false
	}
	now := time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	deadline := now.Add(timeout)
	if !c.asked.IsZero() && c.asked.Before(deadline) {
		if !c.set.Equal(c.asked) {
			c.put(c.asked)
		}
		return false
	}
	if c.set.Before(now.Add(timeout/2)) || c.set.After(deadline) {
		c.put(deadline)
	}
	return true
}

// put sets the deadline. The caller holds the lock.
func (c *conn) put(deadline time.Time) {
	c.set = deadline
	_ = c.Conn.SetWriteDeadline(deadline) // fails if the connection is closed, which the write tells
}

func (c *conn) hurry() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if soon := time.Now().Add(hurriedWrite); c.set.IsZero() || c.set.After(soon) {
		c.put(soon)
	}
}

// SetWriteDeadline implements net.Conn.
func (c *conn) SetWriteDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked = t
	if t.IsZero() && c.of.write.Load() > 0 {
		return nil // the next write sets its own
	}
	c.set = t
	return c.Conn.SetWriteDeadline(t)
}

// SetDeadline implements net.Conn.
func (c *conn) SetDeadline(t time.Time) error {
	return errors.Join(c.SetReadDeadline(t), c.SetWriteDeadline(t))
}

// Close implements net.Conn.
func (c *conn) Close() error {
	if c.closed.CompareAndSwap(false, true) {
		c.of.forget(c)
		connectionsOpen.Dec()
	}
	return c.Conn.Close()
}
