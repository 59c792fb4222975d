package loopback

import (
	"context"
	"errors"
	"net"
	"net/http"
	"time"

	"google.golang.org/grpc/test/bufconn"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/rest"
)

const (
	// bufferSize is of one direction of a connection. All requests share one
	// connection.
	bufferSize = 64 << 10
	// idleTime is how long an idle connection is kept: at the start, many clients ask at
	// once, and each of them gets one.
	idleTime = 10 * time.Second
	// maxStreams is how many requests and watches there may be at a time.
	maxStreams = 10000
	// headerTimeout is how long a request may take to say what it wants.
	headerTimeout = 30 * time.Second
)

// Loopback is a way into a server that only the process itself has. It is safe
// for concurrent use.
type Loopback struct {
	listener *bufconn.Listener
	client   *http.Transport
}

// New returns a loopback that does not serve yet: requests wait until Serve is called,
// as long as their contexts allow.
func New() *Loopback {
	l := &Loopback{listener: bufconn.Listen(bufferSize)}
	l.client = &http.Transport{
		Protocols: protocols(),
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return l.listener.DialContext(ctx)
		},
		DisableCompression: true,
		IdleConnTimeout:    idleTime,
	}
	return l
}

// protocols is HTTP/2 without TLS: connections in memory cannot be intercepted.
func protocols() *http.Protocols {
	var p http.Protocols
	p.SetUnencryptedHTTP2(true)
	return &p
}

// Config is the configuration of clients. They have no rate limit: code in this process
// that wants to overload the server does not need its API.
func (l *Loopback) Config() *rest.Config {
	return &rest.Config{Host: "http://loopback", Transport: l.client, UserAgent: "espalier/loopback", QPS: -1}
}

// Serve answers requests by the handler until the context ends.
func (l *Loopback) Serve(ctx context.Context, handler http.Handler) error {
	server := &http.Server{
		Handler:           handler,
		Protocols:         protocols(),
		HTTP2:             &http.HTTP2Config{MaxConcurrentStreams: maxStreams},
		ReadHeaderTimeout: headerTimeout,
		ConnContext:       func(ctx context.Context, _ net.Conn) context.Context { return context.WithValue(ctx, within{}, l) },
	}
	stop := context.AfterFunc(ctx, func() {
		_ = server.Close() // its connections are in memory
		l.client.CloseIdleConnections()
	})
	defer stop()
	if err := server.Serve(l.listener); ctx.Err() == nil && !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return ctx.Err()
}

// within is the key of the loopback that a request came through.
type within struct{}

// User is who requests through a loopback are from.
var User = &user.DefaultInfo{
	Name:   user.APIServerUser,
	Groups: []string{user.SystemPrivilegedGroup, user.AllAuthenticated},
}

// Has reports whether a request came through this loopback.
func (l *Loopback) Has(req *http.Request) bool {
	from, ok := req.Context().Value(within{}).(*Loopback)
	return ok && from == l
}

// AuthenticateRequest implements authenticator.Request: it knows what came
// through this loopback, and nothing else.
func (l *Loopback) AuthenticateRequest(req *http.Request) (*authenticator.Response, bool, error) {
	if !l.Has(req) {
		return nil, false, nil
	}
	return &authenticator.Response{User: User}, true, nil
}
