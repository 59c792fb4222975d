package flood

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/client-go/rest"

	"github.com/espalier-dev/espalier/conformance/launch"
	"github.com/espalier-dev/espalier/server/endpoints/limit/limittest"
)

const (
	deafWatches  = 30               // that do not read
	deafWriters  = 4                // that patch objects of 1 MB meanwhile
	deafTime     = 60 * time.Second // for so long
	manyWatches  = 6000             // of one user; the default of --max-watches-per-user is 5,000
	manyConns    = 5000             // of one address; the default of --max-connections-per-address is 4096
	connsAtATime = 8
)

// Watches has clients hold watches and connections: watchers that do not read while objects of 1 MB are patched, more watches of one user
// than are allowed, and more connections of one address. It returns an error if the server's memory reaches 1 GB or another user's requests
// take a second.
func Watches(ctx context.Context, s *launch.Server, report func(format string, args ...any)) error {
	w, err := newWatching(ctx, s)
	if err != nil {
		return err
	}
	var errs []error
	for _, scenario := range []struct {
		name string
		run  func(context.Context) (string, error)
	}{
		{"watches that are not read", w.deaf},
		{"watches of one user", w.many},
		{"connections of one address", w.connections},
	} {
		began := time.Now()
		before, err := launch.RSS(s.Pid)
		if err != nil {
			return err
		}
		stop := look(ctx, s, w.other, 25*time.Millisecond, func(int) []request {
			return []request{{http.MethodGet, configMaps + "/bystander", ""}}
		})
		result, err := scenario.run(ctx)
		if f := stop(); err == nil {
			report("%s: %s; memory %d → %d MB, another user's p99 %v of %d requests, %d failed; %v", scenario.name, result,
				before>>20, f.Memory>>20, f.P99.Round(time.Millisecond), f.Requests, f.Failures, time.Since(began).Round(time.Second))
			err = f.check(scenario.name, 0)
		} else {
			err = fmt.Errorf("%s: %w", scenario.name, err)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// watching is a server with a resource of large objects.
type watching struct {
	server *launch.Server
	admin  *http.Client
	other  *http.Client // of a user who has nothing to do with the flood
	user   *rest.Config // sends the flood
}

const (
	largePath = "/apis/flood.example.com/v1/namespaces/default/larges"
	largeCRD  = `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"larges.flood.example.com"},
"spec":{"group":"flood.example.com","scope":"Namespaced","names":{"plural":"larges","kind":"Large"},"versions":[{"name":"v1","served":true,"storage":true,
"schema":{"openAPIV3Schema":{"type":"object","properties":{"text":{"type":"string"}}}}}]}}`
	viewers = `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","metadata":{"name":"flood-viewer"},
"rules":[{"apiGroups":["flood.example.com",""],"resources":["larges","configmaps"],"verbs":["get","list","watch"]}]}`
	viewersBinding = `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRoleBinding","metadata":{"name":"flood-viewer"},
"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"flood-viewer"},
"subjects":[{"apiGroup":"rbac.authorization.k8s.io","kind":"Group","name":"flood-viewers"}]}`
)

func newWatching(ctx context.Context, s *launch.Server) (*watching, error) {
	w := &watching{server: s}
	var err error
	if w.admin, err = s.HTTP(); err != nil {
		return nil, err
	}
	if w.user, err = s.Client("flooder", "flood-viewers"); err != nil {
		return nil, err
	}
	if w.other, err = clientOf(s, "bystander", "flood-viewers"); err != nil {
		return nil, err
	}
	for _, object := range [][2]string{
		{crds, largeCRD},
		{"/apis/rbac.authorization.k8s.io/v1/clusterroles", viewers},
		{"/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", viewersBinding},
		{configMaps, configMap("bystander")},
	} {
		if err := until(ctx, w.admin, http.MethodPost, s.URL+object[0], object[1], http.StatusCreated, http.StatusConflict); err != nil {
			return nil, err
		}
	}
	for i := range deafWriters {
		object := fmt.Sprintf(`{"apiVersion":"flood.example.com/v1","kind":"Large","metadata":{"name":"large-%d"}}`, i)
		if err := until(ctx, w.admin, http.MethodPost, s.URL+largePath, object, http.StatusCreated, http.StatusConflict); err != nil {
			return nil, err
		}
	}
	return w, until(ctx, w.other, http.MethodGet, s.URL+configMaps+"/bystander", "", http.StatusOK)
}

// deaf has clients watch and not read while objects of 1 MB are patched.
func (w *watching) deaf(ctx context.Context) (string, error) {
	config, err := rest.TLSConfigFor(w.user)
	if err != nil {
		return "", err
	}
	u, err := url.Parse(w.server.URL)
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, deafTime)
	defer cancel()
	var wg sync.WaitGroup
	var opened, ended, patches atomic.Int64
	for i := range deafWatches {
		kind := limittest.Kinds[i%len(limittest.Kinds)]
		wg.Go(func() {
			for ctx.Err() == nil {
				c, err := limittest.Dial(ctx, kind, u.Host, config)
				if err != nil {
					return
				}
				// Every watch begins with all objects, and is opened anew as soon as it is ended.
				if errors.Join(c.Get(largePath+"?watch=true"), c.Begun(ctx)) == nil {
					opened.Add(1)
					if kind == limittest.Stream {
						if _, err := c.Ended(ctx); err == nil {
							ended.Add(1)
						}
					} else {
						<-ctx.Done() // reading would spoil it
					}
				}
				_ = c.Close()
			}
		})
	}
	text := strings.Repeat("x", 1<<20)
	for i := range deafWriters {
		wg.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				code, err := send(ctx, w.admin, http.MethodPatch, fmt.Sprintf("%s%s/large-%d", w.server.URL, largePath, i),
					fmt.Sprintf(`{"text":"%d%s"}`, n, text), "application/merge-patch+json", "application/json")
				if err == nil && code == http.StatusOK {
					patches.Add(1)
				}
			}
		})
	}
	wg.Wait()
	return fmt.Sprintf("%d watches opened, %d seen to end, %d patches of 1 MB", opened.Load(), ended.Load(), patches.Load()), nil
}

// many opens watches as one user until one is refused.
func (w *watching) many(ctx context.Context) (string, error) {
	client, err := rest.HTTPClientFor(w.user)
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var open, refused atomic.Int64
	var bodies sync.Map
	defer bodies.Range(func(body, _ any) bool { return body.(io.Closer).Close() == nil })
	err = each(ctx, manyWatches, connsAtATime, func(context.Context, int) error {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, w.server.URL+configMaps+"?watch=true", nil)
		if err != nil {
			return err
		}
		resp, err := client.Do(req)
		switch {
		case err != nil:
			refused.Add(1)
		case resp.StatusCode == http.StatusOK:
			bodies.Store(resp.Body, nil)
			open.Add(1)
		default:
			_ = resp.Body.Close()
			refused.Add(1)
		}
		return nil
	})
	return fmt.Sprintf("%d open, %d refused", open.Load(), refused.Load()), err
}

// connections opens connections that send nothing.
func (w *watching) connections(ctx context.Context) (string, error) {
	config, err := rest.TLSConfigFor(&rest.Config{Host: w.server.URL, TLSClientConfig: rest.TLSClientConfig{CAData: w.server.Config.CAData}})
	if err != nil {
		return "", err
	}
	config.ServerName = "127.0.0.1"
	address := strings.TrimPrefix(w.server.URL, "https://")
	var open, refused atomic.Int64
	var conns sync.Map
	defer conns.Range(func(c, _ any) bool { return c.(net.Conn).Close() == nil })
	err = each(ctx, manyConns, connsAtATime, func(ctx context.Context, _ int) error {
		c, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
		if err == nil {
			conns.Store(c, nil)
			err = tls.Client(c, config).HandshakeContext(ctx)
		}
		if err == nil {
			open.Add(1)
		} else {
			refused.Add(1)
		}
		return nil
	})
	return fmt.Sprintf("%d open, %d refused", open.Load(), refused.Load()), err
}
