package espaliertest

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/client-go/rest"

	"github.com/espalier-dev/espalier/internal/install"
	"github.com/espalier-dev/espalier/server"
	"github.com/espalier-dev/espalier/server/local"
)

// startTime is how long a world may take to become ready. It takes a fraction of
// a second, and more on a machine that has a hundred other things to do.
const startTime = time.Minute

// A World is a server with everything that is in it.
type World struct {
	plane  *local.Plane
	prefix string                      // of its keys in etcd
	world  func(context.Context) error // gives back its part of etcd
	faults *interposer                 // nil without Faults
}

// An Option says what a world is to have.
type Option func(*settings)

type settings struct {
	paths       []string
	definitions []*apiextensions.CustomResourceDefinition
	configure   []func(*server.Options)
	faults      *plan // nil: none
	loud        bool  // klog stays as it is
}

// CRDs has the CustomResourceDefinitions of files, folders and patterns in the
// world. Start returns when they are served.
func CRDs(paths ...string) Option {
	return func(s *settings) { s.paths = append(s.paths, paths...) }
}

// Definitions has CustomResourceDefinitions in the world. Start returns when they
// are served.
func Definitions(definitions ...*apiextensions.CustomResourceDefinition) Option {
	return func(s *settings) { s.definitions = append(s.definitions, definitions...) }
}

// Configure changes the options of the server, which are those of `espalier
// serve`. By default, a world differs from it in that requests are not shared out
// by priority.
func Configure(change func(*server.Options)) Option {
	return func(s *settings) { s.configure = append(s.configure, change) }
}

// Start runs a world for a test, and returns the configuration of an
// administrator's client. The test fails if it cannot. The world ends with the
// test.
func Start(tb testing.TB, options ...Option) *rest.Config {
	tb.Helper()
	return New(tb, options...).Config()
}

// New is Start for tests that want more of a world than a client's configuration.
func New(tb testing.TB, options ...Option) *World {
	tb.Helper()
	ctx, cancel := context.WithTimeoutCause(tb.Context(), startTime, fmt.Errorf("it takes more than %v", startTime))
	defer cancel()
	w, err := start(ctx, options...)
	if err != nil {
		tb.Fatalf("espaliertest: %v", err)
	}
	tb.Cleanup(func() {
		w.report(tb)
		if err := w.stop(); err != nil {
			tb.Errorf("espaliertest: %v", err)
		}
	})
	return w
}

// start runs a world. Reading definitions and starting a server go on side by
// side.
func start(ctx context.Context, options ...Option) (_ *World, err error) {
	s := &settings{}
	for _, option := range options {
		option(s)
	}
	if !s.loud {
		quiet()
	}
	read := make(chan result, 1)
	go func() {
		definitions, err := s.read()
		read <- result{definitions, err}
	}()
	endpoint, prefix, release, err := claim(ctx)
	if err != nil {
		return nil, err
	}
	w := &World{prefix: prefix, world: release}
	defer func() {
		if err != nil {
			err = errors.Join(err, w.stop())
		}
	}()
	w.plane, err = local.Start(ctx, local.Options{Etcd: endpoint, Prefix: prefix, Configure: s.apply})
	definitions := <-read
	if err := errors.Join(err, definitions.err); err != nil {
		return nil, err
	}
	if len(definitions.all) > 0 {
		client, err := install.NewClient(w.plane.Config())
		if err != nil {
			return nil, err
		}
		if err := client.Apply(ctx, definitions.all); err != nil {
			return nil, err
		}
	}
	return w, w.misbehave(s.faults)
}

type result struct {
	all []install.Definition
	err error
}

// read collects the definitions of the options.
func (s *settings) read() ([]install.Definition, error) {
	var all []install.Definition
	if len(s.paths) > 0 {
		var err error
		if all, err = install.Read(s.paths...); err != nil {
			return nil, err
		}
	}
	for _, d := range s.definitions {
		one, err := install.FromObject(d)
		if err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return all, nil
}

// apply configures the server of a world: it does what servers do, at the pace of
// tests.
func (s *settings) apply(o *server.Options) {
	o.Feature.EnablePriorityAndFairness = false
	o.Run.ShutdownWatchTerminationGracePeriod = 0
	for _, change := range s.configure {
		change(o)
	}
}

func (w *World) stop() error {
	var err error
	w.behave()
	if w.plane != nil {
		err = w.plane.Stop()
	}
	ctx, cancel := context.WithTimeout(context.Background(), startTime)
	defer cancel()
	return errors.Join(err, w.world(ctx))
}

// Config returns the configuration of an administrator's client. It is the
// caller's to change. Requests are not limited in their rate.
func (w *World) Config() *rest.Config { return w.interposed(unlimited(w.plane.Config())) }

// User returns the configuration of a client with a certificate of its own. What
// the user may do is what roles and bindings in the world say.
func (w *World) User(name string, groups ...string) (*rest.Config, error) {
	c, err := w.plane.User(name, groups...)
	if err != nil {
		return nil, err
	}
	return w.interposed(unlimited(c)), nil
}

// Kubeconfig returns what kubectl needs to look at the world, as administrator.
func (w *World) Kubeconfig() ([]byte, error) { return local.Kubeconfig(w.plane.Config()) }

func unlimited(c *rest.Config) *rest.Config {
	c.QPS = -1
	return c
}
