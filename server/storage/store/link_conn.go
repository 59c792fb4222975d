package store

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/credentials"
)

// dialFunc is how an egress selector connects.
type dialFunc func(ctx context.Context, network, address string) (net.Conn, error)

// linkConn is a connection of gRPC over a link.
type linkConn struct {
	net.Conn
	links *links
	link  *link
	began time.Time
	read  atomic.Int64 // how long after began something was last read
}

// Read implements net.Conn.
func (c *linkConn) Read(data []byte) (int, error) {
	n, err := c.Conn.Read(data)
	if n > 0 {
		c.read.Store(int64(time.Since(c.began)))
	}
	return n, err
}

// Close implements net.Conn.
func (c *linkConn) Close() error {
	c.links.mu.Lock()
	delete(c.link.conns, c)
	c.links.mu.Unlock()
	return c.Conn.Close()
}

// dialing is an attempt of gRPC to connect.
type dialing struct {
	began  time.Time
	cancel context.CancelFunc
}

// cut closes the connections that were last read from at such a time, and ends
// attempts to connect. The mutex is held.
func (one *link) cut(since func(read time.Time) bool) {
	for c := range one.conns {
		if since(c.began.Add(time.Duration(c.read.Load()))) {
			one.drop(c)
		}
	}
	if one.held {
		for d := range one.dials {
			d.cancel()
		}
	}
}

// drop closes a connection. gRPC is told by its next read. The mutex is held.
func (one *link) drop(c *linkConn) {
	delete(one.conns, c)
	go c.Conn.Close() // may wait for what an egress selector does
}

// heldError is why gRPC is not connected.
type heldError struct {
	endpoint string
	since    time.Time
}

// Error implements error.
func (e *heldError) Error() string {
	return fmt.Sprintf("etcd at %s has not answered since %s: other members are used", e.endpoint, e.since.UTC().Format(time.RFC3339))
}

// Temporary has gRPC try again.
func (e *heldError) Temporary() bool { return true }

// refuse returns why a link must not be used now.
func (one *link) refuse() error {
	if !one.held {
		return nil
	}
	since := one.since
	if one.condition() == leaderless {
		since = one.leaderSince
	}
	return &heldError{one.endpoint, since}
}

// of returns the link to an address, nil if there is none.
func (l *links) of(address string) *link {
	for _, one := range l.all {
		if one.address == address {
			return one
		}
	}
	return nil
}

// linkCredentials see every connection of gRPC before anything is sent over it,
// independent of its dialer. They wrap the chosen credentials and watch the bytes. A
// dialer that returned connections of its own would do, but gRPC sets TCP_USER_TIMEOUT
// only on connections of the kernel.
type linkCredentials struct {
	credentials.TransportCredentials
	links *links
}

// ClientHandshake implements credentials.TransportCredentials.
func (c *linkCredentials) ClientHandshake(ctx context.Context, authority string, raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	one := c.links.of(authority)
	if one == nil {
		return c.TransportCredentials.ClientHandshake(ctx, authority, raw)
	}
	tracked := &linkConn{Conn: raw, links: c.links, link: one, began: time.Now()}
	c.links.mu.Lock()
	err := one.refuse()
	if err == nil {
		one.conns[tracked] = struct{}{}
	}
	c.links.mu.Unlock()
	if err != nil {
		return nil, nil, err
	}
	conn, info, err := c.TransportCredentials.ClientHandshake(ctx, authority, tracked)
	if err != nil {
		_ = tracked.Close()
	}
	return conn, info, err
}

// Clone implements credentials.TransportCredentials.
func (c *linkCredentials) Clone() credentials.TransportCredentials {
	return &linkCredentials{c.TransportCredentials.Clone(), c.links}
}

// dialTracked connects for gRPC. It can be ended by what a probe finds out.
func (l *links) dialTracked(ctx context.Context, address string) (net.Conn, error) {
	one := l.of(address)
	if one == nil {
		return l.dialPlain(ctx, address)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	d := &dialing{time.Now(), cancel}
	l.mu.Lock()
	err := one.refuse()
	if err == nil {
		one.dials[d] = struct{}{}
	}
	l.mu.Unlock()
	if err != nil {
		return nil, err
	}
	defer func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(one.dials, d)
	}()
	return l.dialPlain(ctx, address)
}

// dialPlain connects.
func (l *links) dialPlain(ctx context.Context, address string) (net.Conn, error) {
	if l.dial != nil {
		return l.dial(ctx, "tcp", address)
	}
	if path, ok := strings.CutPrefix(address, "unix:"); ok {
		return new(net.Dialer).DialContext(ctx, "unix", strings.TrimPrefix(path, "//"))
	}
	return new(net.Dialer).DialContext(ctx, "tcp", address)
}
