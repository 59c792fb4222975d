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

// checkEvery is how often etcd is asked whether it is there, at most: the
// health paths are open to everybody, and etcd is not to pay for that.
const checkEvery = time.Second

// addHealthChecks makes /readyz and /healthz depend on etcd, on the definitions
// being known for certain and on the roles being known. /livez does not: a server that is started anew does
// not bring etcd back.
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
