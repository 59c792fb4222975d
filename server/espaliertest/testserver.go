package espaliertest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/client-go/rest"

	"github.com/espalier-dev/espalier/server"
	"github.com/espalier-dev/espalier/server/crdinstall"
	"github.com/espalier-dev/espalier/server/kubebuilder"
	"github.com/espalier-dev/espalier/server/local"
)

// startTime is how long a test server may take to become ready. It takes a fraction of a
// second, and more on a busy machine.
const startTime = time.Minute

// A TestServer is an API server with its own data.
type TestServer struct {
	controlPlane *local.ControlPlane
	prefix       string                      // of its keys in etcd
	release      func(context.Context) error // gives back its part of etcd
	faults       *interposer                 // nil without Faults
}

// An Option configures a test server.
type Option func(*settings)

type settings struct {
	paths       []string
	definitions []*apiextensions.CustomResourceDefinition
	configure   []func(*server.Options)
	faults      *plan // nil: none
	loud        bool  // klog stays as it is
}

// CRDs installs the CustomResourceDefinitions of files, folders and patterns. Start
// returns when they are served.
func CRDs(paths ...string) Option {
	return func(s *settings) { s.paths = append(s.paths, paths...) }
}

// CRDObjects installs CustomResourceDefinitions that are Go objects. Start returns when they are served.
func CRDObjects(definitions ...*apiextensions.CustomResourceDefinition) Option {
	return func(s *settings) { s.definitions = append(s.definitions, definitions...) }
}

// Configure changes the options of the server, which are those of `espalier serve`.
// Unlike that command, a test server has all kinds (--kinds=all), deletes a CRD together with
// its objects (--protect-instances=false), and does not enable API Priority and Fairness.
func Configure(change func(*server.Options)) Option {
	return func(s *settings) { s.configure = append(s.configure, change) }
}

// Start runs a test server, and returns the configuration of an administrator's client.
// The test fails if the server does not start. The server stops at the end of the test.
func Start(tb testing.TB, options ...Option) *rest.Config {
	tb.Helper()
	return New(tb, options...).Config()
}

// New is Start for tests that need more than the configuration of a client.
func New(tb testing.TB, options ...Option) *TestServer {
	tb.Helper()
	ctx, cancel := context.WithTimeoutCause(tb.Context(), startTime, fmt.Errorf("starting takes more than %v", startTime))
	defer cancel()
	ts, err := start(ctx, options...)
	if err != nil {
		tb.Fatalf("espaliertest: %v", err)
	}
	tb.Cleanup(func() {
		ts.report(tb)
		if err := ts.stop(); err != nil {
			tb.Errorf("espaliertest: %v", err)
		}
	})
	return ts
}

// start runs a test server. It reads the CRDs while the server starts.
func start(ctx context.Context, options ...Option) (_ *TestServer, err error) {
	s := &settings{}
	for _, option := range options {
		option(s)
	}
	if !s.loud {
		quiet()
	}
	var definitions []crdinstall.Definition
	var reading errgroup.Group
	reading.Go(func() (err error) {
		definitions, err = s.read()
		return err
	})
	endpoint, prefix, release, err := claim(ctx)
	if err != nil {
		return nil, err
	}
	ts := &TestServer{prefix: prefix, release: release}
	defer func() {
		if err != nil {
			err = errors.Join(err, ts.stop())
		}
	}()
	ts.controlPlane, err = local.Start(ctx, local.Options{Etcd: endpoint, Prefix: prefix, Configure: s.apply})
	if err := errors.Join(err, reading.Wait()); err != nil {
		return nil, err
	}
	if err := applyCRDs(ctx, ts.controlPlane.Config(), definitions); err != nil {
		return nil, err
	}
	return ts, ts.misbehave(s.faults)
}

// applyCRDs installs CRDs, and returns when they are served.
func applyCRDs(ctx context.Context, config *rest.Config, definitions []crdinstall.Definition) error {
	if len(definitions) == 0 {
		return nil
	}
	client, err := crdinstall.NewClient(config)
	if err != nil {
		return err
	}
	return client.Apply(ctx, definitions)
}

// read collects the CRDs of the options.
func (s *settings) read() ([]crdinstall.Definition, error) {
	var all []crdinstall.Definition
	if len(s.paths) > 0 {
		var err error
		if all, err = crdinstall.Read(s.paths...); err != nil {
			return nil, err
		}
	}
	for _, d := range s.definitions {
		one, err := crdinstall.FromObject(d)
		if err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return all, nil
}

// apply configures a test server: all kinds, CRDs can be deleted with their objects, no
// API Priority and Fairness, no waiting for watches at the end. Controllers that write
// at a time of their own are off: a seed must repeat the order of all events. Pods need no
// service account, as in envtest.
func (s *settings) apply(o *server.Options) {
	o.Kinds = server.KindsAll
	o.ProtectInstances = false
	o.Controllers = []string{"*", "-root-ca-certificate-publisher-controller", "-kubernetes-service-controller"}
	o.Admission.DisablePlugins = slices.Clone(kubebuilder.DisabledPlugins)
	o.Feature.EnablePriorityAndFairness = false
	o.Run.ShutdownWatchTerminationGracePeriod = 0
	for _, change := range s.configure {
		change(o)
	}
}

func (ts *TestServer) stop() error {
	var err error
	ts.behave()
	if ts.controlPlane != nil {
		err = ts.controlPlane.Stop()
	}
	ctx, cancel := context.WithTimeout(context.Background(), startTime)
	defer cancel()
	return errors.Join(err, ts.release(ctx))
}

// Config returns the configuration of an administrator's client. It is the
// caller's to change. Requests are not limited in their rate.
func (ts *TestServer) Config() *rest.Config {
	return ts.interposed(unlimited(ts.controlPlane.Config()))
}

// User returns the configuration of a client with a certificate of its own. Roles and
// bindings on the test server decide what the user may do.
func (ts *TestServer) User(name string, groups ...string) (*rest.Config, error) {
	c, err := ts.controlPlane.User(name, groups...)
	if err != nil {
		return nil, err
	}
	return ts.interposed(unlimited(c)), nil
}

// Kubeconfig returns an administrator's kubeconfig for kubectl.
func (ts *TestServer) Kubeconfig() ([]byte, error) { return local.Kubeconfig(ts.controlPlane.Config()) }

func unlimited(c *rest.Config) *rest.Config {
	c.QPS = -1
	return c
}
