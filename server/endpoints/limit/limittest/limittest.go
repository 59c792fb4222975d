package limittest

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
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
	begun chan struct{} // closed when the first answer has begun
}

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
	if err := c.preface(); err != nil {
		return nil, errors.Join(err, raw.Close())
	}
	if kind != HTTP2 {
		go c.read()
	}
	return c, nil
}

// preface is what an HTTP/2 client sends first.
func (c *Client) preface() error {
	if _, err := c.conn.Write([]byte(http2.ClientPreface)); err != nil {
		return err
	}
	frames := http2.NewFramer(c.conn, nil)
	window := func(n uint32) http2.Setting { return http2.Setting{ID: http2.SettingInitialWindowSize, Val: n} }
	switch c.kind {
	case HTTP2: // all may be sent, so that only the connection blocks
		return errors.Join(frames.WriteSettings(window(1<<31-1)), frames.WriteWindowUpdate(0, 1<<31-1-1<<16))
	case NoWindow:
		return frames.WriteSettings(window(0))
	default:
		return frames.WriteSettings()
	}
}

// Get sends a request. An HTTP/1 connection has one.
func (c *Client) Get(path string) error {
	if c.kind == HTTP1 {
		_, err := fmt.Fprintf(c.conn, "GET %s HTTP/1.1\r\nHost: server\r\nAccept: application/json\r\n\r\n", path)
		return err
	}
	var block bytes.Buffer
	encoder := hpack.NewEncoder(&block)
	for _, h := range [][2]string{{":method", "GET"}, {":scheme", "https"}, {":authority", "server"}, {":path", path}, {"accept", "application/json"}} {
		// The peer's table stays empty, so that every request has a new encoder.
		if err := encoder.WriteField(hpack.HeaderField{Name: h[0], Value: h[1], Sensitive: true}); err != nil {
			return err
		}
	}
	stream := c.next
	c.next += 2
	frames := http2.NewFramer(c.conn, nil) // not that of read, which writes at the same time
	return frames.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: block.Bytes(), EndStream: true, EndHeaders: true})
}

// read takes frames until an answer or the connection ends.
func (c *Client) read() {
	defer close(c.over)
	frames := http2.NewFramer(c.conn, c.conn)
	begun := sync.OnceFunc(func() { close(c.begun) })
	for {
		got, err := frames.ReadFrame()
		if err != nil {
			return
		}
		switch got := got.(type) {
		case *http2.RSTStreamFrame:
			return
		case *http2.HeadersFrame:
			begun()
		case *http2.SettingsFrame:
			if !got.IsAck() {
				_ = frames.WriteSettingsAck() // a broken connection is seen by reading
			}
		case *http2.PingFrame:
			if !got.IsAck() {
				_ = frames.WritePing(true, got.Data)
			}
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
