package server

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/healthz"
)

// checkEvery is how often the server checks etcd, at most. The health paths are open to
// unauthenticated clients, which must not load etcd.
const checkEvery = time.Second

// addHealthChecks makes /readyz and /healthz depend on etcd, on current CRDs and on known
// roles. /livez does not: restarting the server does not bring etcd back.
func addHealthChecks(c *genericapiserver.Config, etcd func(context.Context) error, unsynced func() error, ready func() bool) {
	limited := &rareCheck{check: etcd}
	checks := []healthz.HealthChecker{
		healthz.NamedCheck("etcd", func(req *http.Request) error { return limited.result(req.Context()) }),
		healthz.NamedCheck("definitions", func(*http.Request) error { return unsynced() }),
		healthz.NamedCheck("access", func(*http.Request) error {
			if !ready() {
				return errors.New("roles, bindings and default objects have not been read or created yet")
			}
			return nil
		}),
	}
	c.AddReadyzChecks(checks...)
	c.AddHealthzChecks(checks...)
}

// rareCheck gives all who ask within checkEvery the same result.
type rareCheck struct {
	check func(context.Context) error

	mu  sync.Mutex
	at  time.Time
	err error
}

func (r *rareCheck) result(ctx context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if time.Since(r.at) >= checkEvery {
		// Of the first to ask; that one going away says nothing about etcd.
		r.err = r.check(context.WithoutCancel(ctx))
		r.at = time.Now()
	}
	return r.err
}

// etcdWarnings are what an operator should know of an etcd that answers.
func (s *signals) etcdWarnings() string {
	var out string
	if s.outOfSpace != nil && s.outOfSpace() {
		out += "[!]etcd warning: out of space; writes are refused with 507, reads and deletes go on\n"
	}
	if s.members != nil {
		if text := s.members(); text != "" {
			out += "[!]etcd warning: " + text + "\n"
		}
	}
	return out
}
