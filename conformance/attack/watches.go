package attack

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/client-go/rest"

	"github.com/espalier-dev/espalier/conformance/launch"
	"github.com/espalier-dev/espalier/server/endpoints/limit/limittest"
)

// watches hold what a server has to keep for its clients.
var watches = []Attack{{
	ID: "C4-unread-watch", What: "keep events in memory by not reading a watch",
	Run: func(ctx context.Context, s *Site) (Result, error) { return s.unreadWatches(ctx) },
}, {
	ID: "watches-of-one-user", What: "open any number of watches as one user",
	Run: func(ctx context.Context, s *Site) (Result, error) { return s.manyWatches(ctx) },
}, {
	ID: "connections-of-one-address", What: "open any number of connections without credentials",
	Run: func(ctx context.Context, s *Site) (Result, error) { return s.manyConnections(ctx) },
}}

// unreadFor is how long an attacker does not read. The default of --client-write-timeout is 30 s.
const unreadFor = 45 * time.Second

// watcher returns a user who may watch config maps in a namespace.
func (s *Site) watcher(ctx context.Context) (user *Client, namespace string, err error) {
	if namespace, err = s.Namespace(ctx); err != nil {
		return nil, "", err
	}
	user, err = s.UserWith(ctx, "watcher", namespace, rbacv1.PolicyRule{Verbs: []string{"watch"}, APIGroups: []string{""}, Resources: []string{"configmaps"}})
	return user, namespace, err
}

// dialed connects a client that does not read.
func dialed(ctx context.Context, c *rest.Config, kind limittest.Kind) (*limittest.Client, error) {
	config, err := rest.TLSConfigFor(c)
	if err != nil {
		return nil, err
	}
	u, err := url.Parse(c.Host)
	if err != nil {
		return nil, err
	}
	return limittest.Dial(ctx, kind, u.Host, config)
}

// unreadWatches has a user open watches and not read them while 60 MB are written, and looks whether the server still keeps them.
func (s *Site) unreadWatches(ctx context.Context) (Result, error) {
	user, namespace, err := s.watcher(ctx)
	if err != nil {
		return Result{}, err
	}
	path := "/api/v1/namespaces/" + namespace + "/configmaps"
	object := `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"large"},"data":{"fill":%q}}`
	if _, err := s.admin.Must(ctx, http.MethodPost, path, "application/json", fmt.Sprintf(object, "")); err != nil {
		return Result{}, err
	}
	var clients []*limittest.Client
	for _, kind := range limittest.Kinds {
		c, err := dialed(ctx, user.Config, kind)
		if err != nil {
			return Result{}, err
		}
		defer c.Close()
		if err := errors.Join(c.Get(path+"?watch=true"), c.Begun(ctx)); err != nil {
			return Result{}, err
		}
		clients = append(clients, c)
	}
	before, err := launch.RSS(s.Server.Pid)
	if err != nil {
		return Result{}, err
	}
	for i := range 120 {
		if _, err := s.admin.Must(ctx, http.MethodPut, path+"/large", "application/json", fmt.Sprintf(object, fmt.Sprint(i, strings.Repeat("x", 512<<10)))); err != nil {
			return Result{}, err
		}
	}
	after, err := launch.RSS(s.Server.Pid)
	if err != nil {
		return Result{}, err
	}
	select {
	case <-time.After(unreadFor):
	case <-ctx.Done():
		return Result{}, ctx.Err()
	}
	kept := 0
	for _, c := range clients {
		soon, cancel := context.WithTimeout(ctx, 10*time.Second)
		if _, err := c.Ended(soon); err != nil {
			kept++
		}
		cancel()
	}
	if kept > 0 {
		return Succeeded("%d of %d watches not read for %v go on, resident memory %d → %d MB", kept, len(clients), unreadFor, before>>20, after>>20), nil
	}
	return Refused("all watches ended within %v", unreadFor), nil
}

// small is a server with small limits, where it has any: attacks must not take thousands of connections.
func (s *Site) small(ctx context.Context, flags ...string) (*Site, func(), error) {
	if s.IsKubernetes() {
		return s, func() {}, nil
	}
	other, err := s.Another(ctx, flags...)
	if err != nil {
		return nil, nil, err
	}
	return other, other.Close, nil
}

// manyWatches opens 150 watches.
func (s *Site) manyWatches(ctx context.Context) (Result, error) {
	const limit, attempts = 50, 150
	s, done, err := s.small(ctx, fmt.Sprint("--max-watches-per-user=", limit))
	if err != nil {
		return Result{}, err
	}
	defer done()
	user, namespace, err := s.watcher(ctx)
	if err != nil {
		return Result{}, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // and with it all watches
	for open := range attempts {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, user.Config.Host+"/api/v1/namespaces/"+namespace+"/configmaps?watch=true", nil)
		if err != nil {
			return Result{}, err
		}
		resp, err := user.http.Do(req)
		if err != nil {
			return Result{}, err
		}
		defer resp.Body.Close()
		if resp.StatusCode == http.StatusTooManyRequests {
			return Refused("%d after %d watches", resp.StatusCode, open), nil
		}
		if resp.StatusCode != http.StatusOK {
			text, err := io.ReadAll(io.LimitReader(resp.Body, answerLimit))
			return Result{}, errors.Join(fmt.Errorf("watch: %s: %s", resp.Status, text), err)
		}
	}
	return Succeeded("%d watches open", attempts), nil
}

// manyConnections opens 300 connections that send nothing.
func (s *Site) manyConnections(ctx context.Context) (Result, error) {
	const limit, attempts = 100, 300
	s, done, err := s.small(ctx, fmt.Sprint("--max-connections-per-address=", limit))
	if err != nil {
		return Result{}, err
	}
	defer done()
	config, err := rest.TLSConfigFor(&rest.Config{Host: s.Server.URL, TLSClientConfig: rest.TLSClientConfig{CAData: s.Server.Config.CAData}})
	if err != nil {
		return Result{}, err
	}
	config.ServerName = "127.0.0.1"
	address := strings.TrimPrefix(s.Server.URL, "https://")
	open := 0
	for range attempts {
		raw, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
		if err != nil {
			continue // refused
		}
		defer raw.Close()
		_ = raw.SetDeadline(time.Now().Add(10 * time.Second))
		switch err := tls.Client(raw, config).HandshakeContext(ctx); {
		case err == nil:
			open++
		case errors.Is(err, os.ErrDeadlineExceeded):
			return Result{}, err
		}
	}
	if open > limit {
		return Succeeded("%d connections open", open), nil
	}
	return Refused("%d of %d connections open", open, attempts), nil
}
