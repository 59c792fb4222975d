package load

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"github.com/espalier-dev/espalier/conformance/launch"
	"github.com/espalier-dev/espalier/conformance/robustness/environment"
)

// A Site is an environment with the harness's CRDs and webhooks.
type Site struct {
	Environment *environment.Environment
	Webhook     *Webhook
	// Full is whether the servers have namespaces, their deletion, a garbage collector, quotas and acknowledgements of schemas.
	Full   bool
	things CRD
	coins  CRD
	crates CRD
	runs   int
	log    atomic.Pointer[etcdLog] // of the current run
}

// Recorded is the revision up to which the record of the current run is complete: what is before it may be compacted. It is 0 if
// there is none.
func (s *Site) Recorded(ctx context.Context) int64 {
	if l := s.log.Load(); l != nil {
		return l.progress(ctx)
	}
	return 0
}

// Tidy removes what the last run has left, behind the servers' back, and compacts etcd.
func (s *Site) Tidy(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	s.log.Store(nil)
	for _, suffix := range []string{"", "-quota", "-gone"} {
		ns := fmt.Sprintf("run%d%s", s.runs, suffix)
		for _, prefix := range []string{groupPrefix + Things, groupPrefix + Coins, groupPrefix + Crates, environment.Prefix + "/resourcequotas", environment.Prefix + "/leases"} {
			if err := s.Environment.Remove(ctx, prefix+"/"+ns+"/"); err != nil {
				return err
			}
		}
		if err := s.Environment.Remove(ctx, environment.Prefix+"/namespaces/"+ns); err != nil {
			return err
		}
	}
	now, err := s.Environment.Revision(ctx)
	if err != nil {
		return err
	}
	if _, err := s.Environment.Etcd.Compact(ctx, now); err != nil && !errors.Is(err, rpctypes.ErrCompacted) {
		return err
	}
	if s.Environment.Engine.Kine() {
		return nil // it gives space back when it starts
	}
	for _, m := range s.Environment.Members {
		status, err := s.Environment.Etcd.Status(ctx, m.URL)
		if err != nil {
			return err
		}
		if status.DbSize > 24<<20 {
			if err := m.Defragment(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

// Setup creates what all runs need.
func Setup(ctx context.Context, w *environment.Environment) (*Site, error) {
	hook, err := StartWebhook()
	if err != nil {
		return nil, err
	}
	s := &Site{Environment: w, Webhook: hook, Full: w.Kind == launch.Espalier,
		things: CRD{Resource: Things, Versions: []string{"v1"}, Storage: "v1"},
		coins:  CRD{Resource: Coins, Schema: -1, Versions: []string{"v1", "v2"}, Storage: "v1", Webhook: hook},
		crates: CRD{Resource: Crates, Schema: -1, Versions: []string{"v1"}, Storage: "v1"},
	}
	if err := s.setup(ctx); err != nil {
		hook.Close()
		return nil, err
	}
	return s, nil
}

// Close ends the webhook. The environment stays.
func (s *Site) Close() { s.Webhook.Close() }

func (s *Site) setup(ctx context.Context) error {
	c, err := newClient(s.Environment, newRecord(0), 0, 10*time.Second)
	if err != nil {
		return err
	}
	defer c.Close()
	for _, d := range []*CRD{&s.things, &s.coins, &s.crates} {
		if err := s.establish(ctx, c, d); err != nil {
			return err
		}
	}
	if s.Full {
		return s.make(ctx, c, "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations", s.Webhook.configuration())
	}
	return nil
}

// establish creates a CRD, and waits until every replica serves it.
func (s *Site) establish(ctx context.Context, c *Client, d *CRD) error {
	if err := s.make(ctx, c, crdsPath, d.body("")); err != nil {
		return err
	}
	for i := range s.Environment.Replicas {
		if err := s.await(ctx, "replica "+fmt.Sprint(i)+" to serve "+d.Resource, func() bool {
			return c.Ask(ctx, i, http.MethodGet, collection(d.Resource, d.Storage, "default"), "", nil).OK()
		}); err != nil {
			return err
		}
	}
	return nil
}

// make creates an object, at any replica that answers.
func (s *Site) make(ctx context.Context, c *Client, path string, content []byte) error {
	var a *Answer
	err := s.await(ctx, "creating in "+path, func() bool {
		for i := range s.Environment.Replicas {
			if a = c.Ask(ctx, i, http.MethodPost, path, asJSON, bytes.NewReader(content)); a.OK() || a.Code == http.StatusConflict {
				return true
			}
		}
		return false
	})
	if err != nil {
		return fmt.Errorf("%w: %v", err, a)
	}
	return nil
}

// await waits until something is true.
func (s *Site) await(ctx context.Context, what string, ready func() bool) error {
	for end := time.Now().Add(environment.Patience); time.Now().Before(end); launch.Pause(ctx, 10*time.Millisecond) {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if ready() {
			return nil
		}
	}
	return fmt.Errorf("waiting for %s failed: it took more than %v", what, environment.Patience)
}

// namespace creates a namespace, unless the servers have none.
func (s *Site) namespace(ctx context.Context, c *Client, name string) error {
	if s.Environment.Kind == launch.Upstream {
		return nil
	}
	return s.make(ctx, c, "/api/v1/namespaces", encode(map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": name}}))
}
