package webhook

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// Options say how to serve.
type Options struct {
	Address           string // host:port
	CertFile, KeyFile string
	Log               *slog.Logger
	// Delay is how long requests are still served when the context ends. /readyz fails at once.
	Delay time.Duration
}

const (
	readTimeout   = 30 * time.Second
	writeTimeout  = 60 * time.Second
	idleTimeout   = 2 * time.Minute
	finishTimeout = 30 * time.Second
	maxHeader     = 16 << 10
)

// Serve serves a handler until the context ends. It calls ready with the address when it listens.
func Serve(ctx context.Context, h *Handler, o Options, ready func(net.Addr)) error {
	certs := &certificates{certFile: o.CertFile, keyFile: o.KeyFile, log: o.Log}
	if err := certs.load(); err != nil {
		return err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", o.Address)
	if err != nil {
		return fmt.Errorf("listen on %s: %w", o.Address, err)
	}
	var ending atomic.Bool
	mux := http.NewServeMux()
	mux.Handle("/{$}", h)
	mux.Handle("/convert", h)
	fine := func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok\n") }
	mux.HandleFunc("/healthz", fine)
	mux.HandleFunc("/readyz", func(w http.ResponseWriter, r *http.Request) {
		if ending.Load() {
			http.Error(w, "shutting down", http.StatusServiceUnavailable)
			return
		}
		fine(w, r)
	})
	server := &http.Server{
		Handler: mux, ReadTimeout: readTimeout, WriteTimeout: writeTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeader,
		TLSConfig: &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: certs.get},
		ErrorLog:  log.New(errorWriter{o.Log}, "", 0),
	}
	ready(listener.Addr())
	failed := make(chan error, 1)
	go func() { failed <- server.ServeTLS(listener, "", "") }()
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	ending.Store(true)
	o.Log.Info("Shutting down", "delay", o.Delay)
	select {
	case err := <-failed:
		return err
	case <-time.After(o.Delay):
	}
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), finishTimeout)
	defer cancel()
	if err := server.Shutdown(end); err != nil {
		return fmt.Errorf("shut down: %w", err)
	}
	if err := <-failed; !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// errorWriter logs what the HTTP server writes about connections.
type errorWriter struct{ log *slog.Logger }

func (w errorWriter) Write(p []byte) (int, error) {
	w.log.Warn("Connection failed", "error", string(p[:max(0, len(p)-1)]))
	return len(p), nil
}

// certificates are those of the files, as they are now.
type certificates struct {
	certFile, keyFile string
	log               *slog.Logger

	mu      sync.Mutex
	current *tls.Certificate
	state   [2]fileState
	checked time.Time
}

type fileState struct {
	modified time.Time
	size     int64
}

// checkInterval is how often the files are looked at.
const checkInterval = time.Second

func (c *certificates) states() (s [2]fileState, err error) {
	for i, name := range []string{c.certFile, c.keyFile} {
		info, err := os.Stat(name)
		if err != nil {
			return s, err
		}
		s[i] = fileState{info.ModTime(), info.Size()}
	}
	return s, nil
}

func (c *certificates) load() error {
	state, err := c.states()
	if err != nil {
		return fmt.Errorf("read the certificate: %w", err)
	}
	pair, err := tls.LoadX509KeyPair(c.certFile, c.keyFile)
	if err != nil {
		return fmt.Errorf("read the certificate: %w", err)
	}
	c.current, c.state = &pair, state
	return nil
}

// get returns the certificate for a connection.
func (c *certificates) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := time.Now(); now.Sub(c.checked) >= checkInterval {
		c.checked = now
		if state, err := c.states(); err != nil || state != c.state {
			// The two files may be written one after the other: until they fit, the old pair stays.
			if err := c.load(); err != nil {
				c.log.Error("Keeping the old certificate", "error", err)
			} else {
				c.log.Info("Read a new certificate")
			}
		}
	}
	return c.current, nil
}
