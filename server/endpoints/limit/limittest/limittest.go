package limittest

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"time"
)

// A Kind is a way not to read.
type Kind string

const (
	// HTTP1 does not read from the connection, which has one request.
	HTTP1 Kind = "HTTP1"
	// HTTP2 does not read from the connection.
	HTTP2 Kind = "HTTP2"
	// Stream reads from the connection, and never allows the server to send more of
	// an answer than the 64 KB that it may send at first.
	Stream Kind = "HTTP2 stream"
	// NoWindow reads from the connection, and does not allow any bytes of an answer.
	NoWindow Kind = "HTTP2 stream without window"
)

// Kinds are all of them that read some of an answer.
var Kinds = []Kind{HTTP1, HTTP2, Stream}

// Client is a connection with requests whose answers are not read.
type Client struct {
	kind  Kind
	conn  *tls.Conn
	over  chan struct{} // closed when the server has ended the connection or an answer
	next  uint32        // number of an HTTP/2 stream
	first uint32        // number of an answer that has begun
	begun chan struct{} // closed when the first answer has begun
}

// Frames of HTTP/2, and their flags.
const (
	frameHeaders   = 1
	frameReset     = 3
	frameSettings  = 4
	framePing      = 6
	frameWindow    = 8
	flagEndStream  = 1
	flagEndHeaders = 4
	flagAck        = 1
	initialWindow  = 4 // the setting
)

// Dial connects. config has the certificates.
func Dial(ctx context.Context, kind Kind, address string, config *tls.Config) (*Client, error) {
	config = config.Clone()
	config.NextProtos = []string{"h2"}
	if kind == HTTP1 {
		config.NextProtos = []string{"http/1.1"}
	}
	raw, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	if kind == HTTP1 || kind == HTTP2 {
		if tcp, ok := raw.(*net.TCPConn); ok {
			_ = tcp.SetReadBuffer(16 << 10) // only to be blocked sooner
		}
	}
	if config.ServerName == "" {
		if config.ServerName, _, err = net.SplitHostPort(address); err != nil {
			return nil, errors.Join(err, raw.Close())
		}
	}
	c := &Client{kind: kind, conn: tls.Client(raw, config), over: make(chan struct{}), begun: make(chan struct{}), next: 1}
	if err := c.conn.HandshakeContext(ctx); err != nil {
		return nil, errors.Join(err, raw.Close())
	}
	if kind == HTTP1 {
		return c, nil
	}
	if _, err := c.conn.Write(c.preface()); err != nil {
		return nil, errors.Join(err, raw.Close())
	}
	if kind != HTTP2 {
		go c.read()
	}
	return c, nil
}

// preface is what an HTTP/2 client sends first.
func (c *Client) preface() []byte {
	window := func(n uint32) []byte { return binary.BigEndian.AppendUint32([]byte{0, initialWindow}, n) }
	b := []byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
	switch c.kind {
	case HTTP2: // all may be sent, so that only the connection blocks
		b = append(b, frame(frameSettings, 0, 0, window(1<<31-1))...)
		return append(b, frame(frameWindow, 0, 0, binary.BigEndian.AppendUint32(nil, 1<<31-1-1<<16))...)
	case NoWindow:
		return append(b, frame(frameSettings, 0, 0, window(0))...)
	default:
		return append(b, frame(frameSettings, 0, 0, nil)...)
	}
}

// frame returns one of HTTP/2.
func frame(kind, flags byte, stream uint32, payload []byte) []byte {
	n := len(payload)
	b := []byte{byte(n >> 16), byte(n >> 8), byte(n), kind, flags}
	return append(binary.BigEndian.AppendUint32(b, stream), payload...)
}

// field is a header of HTTP/2 that is not compressed.
func field(name, value string) []byte {
	b := append([]byte{0, byte(len(name))}, name...)
	// Lengths of 127 and more take further bytes.
	if n := len(value); n < 127 {
		b = append(b, byte(n))
	} else {
		b = append(b, 127)
		for n -= 127; n >= 128; n >>= 7 {
			b = append(b, byte(n)|128)
		}
		b = append(b, byte(n))
	}
	return append(b, value...)
}

// Get sends a request. An HTTP/1 connection has one.
func (c *Client) Get(path string) error {
	if c.kind == HTTP1 {
		_, err := fmt.Fprintf(c.conn, "GET %s HTTP/1.1\r\nHost: server\r\nAccept: application/json\r\n\r\n", path)
		return err
	}
	var block []byte
	for _, h := range [][2]string{{":method", "GET"}, {":scheme", "https"}, {":authority", "server"}, {":path", path}, {"accept", "application/json"}} {
		block = append(block, field(h[0], h[1])...)
	}
	stream := c.next
	c.next += 2
	_, err := c.conn.Write(frame(frameHeaders, flagEndStream|flagEndHeaders, stream, block))
	return err
}

// read takes frames until an answer or the connection ends.
func (c *Client) read() {
	defer close(c.over)
	r := bufio.NewReader(c.conn)
	for {
		var head [9]byte
		if _, err := io.ReadFull(r, head[:]); err != nil {
			return
		}
		payload := make([]byte, int(head[0])<<16|int(head[1])<<8|int(head[2]))
		if _, err := io.ReadFull(r, payload); err != nil {
			return
		}
		switch kind, flags := head[3], head[4]; {
		case kind == frameReset:
			return
		case kind == frameHeaders && c.first == 0:
			c.first = binary.BigEndian.Uint32(head[5:])
			close(c.begun)
		case kind == frameSettings && flags&flagAck == 0:
			_, _ = c.conn.Write(frame(frameSettings, flagAck, 0, nil)) // a broken connection is seen by reading
		case kind == framePing && flags&flagAck == 0:
			_, _ = c.conn.Write(frame(framePing, flagAck, 0, payload))
		}
	}
}

// Begun waits until the first answer has begun, as far as this kind can tell.
func (c *Client) Begun(ctx context.Context) error {
	if c.kind == HTTP1 || c.kind == HTTP2 {
		// Nothing is read from the connection: what is there already tells nothing.
		select {
		case <-time.After(500 * time.Millisecond):
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	select {
	case <-c.begun:
		return nil
	case <-c.over:
		return errors.New("the server has ended the connection")
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Ended returns when the server has ended the connection or an answer, with how
// many bytes came before that. Those that do not read begin to do so: it must not
// be called before the answer had time to be blocked.
func (c *Client) Ended(ctx context.Context) (n int64, err error) {
	if c.kind != HTTP1 && c.kind != HTTP2 {
		select {
		case <-c.over:
			return 0, nil
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
	stop := context.AfterFunc(ctx, func() { _ = c.conn.SetReadDeadline(time.Now()) })
	defer stop()
	n, err = io.Copy(io.Discard, c.conn)
	if ctx.Err() != nil {
		return n, ctx.Err()
	}
	return n, nil // however it ends
}

// Close closes the connection.
func (c *Client) Close() error { return c.conn.NetConn().Close() }
