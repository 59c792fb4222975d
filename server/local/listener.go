package local

import (
	"net"
	"sync"
)

// listener knows the connections that it has accepted. Clients keep theirs open,
// and a server that asks them politely to close waits a second for each of them:
// tests do not have that second.
type listener struct {
	net.Listener

	mu   sync.Mutex
	open map[*conn]struct{}
}

type conn struct {
	net.Conn
	of *listener
}

func listen(address string) (*listener, error) {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, err
	}
	return &listener{Listener: l, open: map[*conn]struct{}{}}, nil
}

// Accept implements net.Listener.
func (l *listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	one := &conn{c, l}
	l.open[one] = struct{}{}
	return one, nil
}

// Close implements net.Conn.
func (c *conn) Close() error {
	c.of.mu.Lock()
	delete(c.of.open, c)
	c.of.mu.Unlock()
	return c.Conn.Close()
}

// cut closes the connections that are open.
func (l *listener) cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for c := range l.open {
		_ = c.Conn.Close() // its reader gets an error
	}
}
