package main

import (
	"context"
	"fmt"
	"strings"
	"syscall"
	"time"

	"github.com/espalier-dev/espalier/conformance/launch"
)

// A fault happens once a move is in a phase, and is repaired by what it returns.
type fault struct {
	name string
	do   func(ctx context.Context, s *site, m *moving) (repair func() error, err error)
}

// moving is a move with a fault.
type moving struct {
	name, from, to string
	server         int // that a fault is for
}

// outage is how long what was killed or stopped stays away.
func (s *site) outage() time.Duration {
	return time.Duration(200+s.random.IntN(4000)) * time.Millisecond
}

var faults = []fault{
	{"kill the source etcd", func(ctx context.Context, s *site, m *moving) (func() error, error) {
		return s.kill(ctx, s.etcds[m.from])
	}},
	{"kill the target etcd", func(ctx context.Context, s *site, m *moving) (func() error, error) { return s.kill(ctx, s.etcds[m.to]) }},
	{"kill the etcd of the servers", func(ctx context.Context, s *site, m *moving) (func() error, error) { return s.kill(ctx, s.root) }},
	{"kill a server", func(ctx context.Context, s *site, m *moving) (func() error, error) {
		server := s.servers[m.server]
		server.Kill()
		launch.Pause(ctx, s.outage())
		return nil, server.Restart(ctx)
	}},
	{"kill all servers", func(ctx context.Context, s *site, m *moving) (func() error, error) {
		for _, server := range s.servers {
			server.Kill()
		}
		for _, server := range s.servers {
			if err := server.Restart(ctx); err != nil {
				return nil, err
			}
		}
		return nil, nil
	}},
	{"stop the source etcd", func(ctx context.Context, s *site, m *moving) (func() error, error) {
		return s.freeze(ctx, s.etcds[m.from].Process)
	}},
	{"stop the target etcd", func(ctx context.Context, s *site, m *moving) (func() error, error) {
		return s.freeze(ctx, s.etcds[m.to].Process)
	}},
	{"stop a server for a while", func(ctx context.Context, s *site, m *moving) (func() error, error) {
		return s.freeze(ctx, s.servers[m.server].Process)
	}},
	{"stop a server until the tenant has moved", func(ctx context.Context, s *site, m *moving) (func() error, error) {
		p := s.servers[m.server].Process
		return func() error { return p.Signal(syscall.SIGCONT) }, p.Signal(syscall.SIGSTOP)
	}},
	{"cancel", func(ctx context.Context, s *site, m *moving) (func() error, error) {
		err := s.place(ctx, m.name, m.from)
		launch.Pause(ctx, time.Duration(s.random.IntN(500))*time.Millisecond)
		return nil, err
	}},
	{"move elsewhere meanwhile", func(ctx context.Context, s *site, m *moving) (func() error, error) {
		for name := range s.etcds {
			if name != m.from && name != m.to {
				err := s.place(ctx, m.name, name)
				launch.Pause(ctx, time.Duration(s.random.IntN(500))*time.Millisecond)
				return nil, err
			}
		}
		return nil, nil
	}},
}

// kill kills an etcd, and starts it again with its data.
func (s *site) kill(ctx context.Context, etcd *launch.Etcd) (func() error, error) {
	etcd.Kill()
	launch.Pause(ctx, s.outage())
	return nil, etcd.Restart(ctx)
}

// freeze stops a process for a while.
func (s *site) freeze(ctx context.Context, p *launch.Process) (func() error, error) {
	if err := p.Signal(syscall.SIGSTOP); err != nil {
		return nil, err
	}
	launch.Pause(ctx, s.outage())
	return nil, p.Signal(syscall.SIGCONT)
}

// phases are when a fault happens: at once, or as soon as the phase is seen.
var phases = []string{"", "Copying", "Switching", "moved"}

// faults moves tenants with faults, and returns for how long clients had to wait each time.
func (s *site) faults(ctx context.Context) (waits []time.Duration, err error) {
	var chosen []fault
	for _, f := range faults {
		if strings.Contains(f.name, *only) {
			chosen = append(chosen, f)
		}
	}
	if len(chosen) == 0 {
		return nil, fmt.Errorf("there is no fault %q", *only)
	}
	for i := range *faulty {
		f, phase := chosen[i%len(chosen)], phases[s.random.IntN(len(phases))]
		load := s.loads[i%*number]
		m := &moving{name: tenant(i % *number), server: s.random.IntN(replicas)}
		if m.from, m.to, err = s.another(ctx, m.name); err != nil {
			return waits, err
		}
		load.Longest()
		began := time.Now()
		if err := s.fault(ctx, m, f, phase); err != nil {
			return waits, fmt.Errorf("move %d with %q in the phase %q: %w", i, f.name, phase, err)
		}
		launch.Pause(ctx, settle)
		wait := load.Longest()
		waits = append(waits, wait)
		fmt.Printf("move %d of %s from %s to %s, %s (%q): %v, without a write for %d ms\n", i, m.name, m.from, m.to, f.name, phase, time.Since(began).Round(100*time.Millisecond), wait.Milliseconds())
	}
	return waits, nil
}

// fault moves a tenant with a fault.
func (s *site) fault(ctx context.Context, m *moving, f fault, phase string) error {
	if err := s.place(ctx, m.name, m.to); err != nil {
		return err
	}
	for end := time.Now().Add(5 * time.Second); phase != "" && time.Now().Before(end); {
		now, err := s.status(ctx, m.name, moveTime)
		if err != nil {
			return err
		}
		if now.phase == phase || now.etcd == m.to {
			break
		}
	}
	repair, err := f.do(ctx, s, m)
	if err != nil {
		return err
	}
	if repair != nil {
		if err := s.arrives(ctx, m.name, m.to, faultTime); err != nil {
			return err
		}
		if err := repair(); err != nil {
			return err
		}
	}
	// After a cancel it may be wherever it was when it was canceled.
	if err := s.place(ctx, m.name, m.to); err != nil {
		return err
	}
	return s.arrives(ctx, m.name, m.to, faultTime)
}
