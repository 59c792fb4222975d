package espaliertest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/espalier-dev/espalier/server"
	"github.com/espalier-dev/espalier/server/kubebuilder"
	"github.com/espalier-dev/espalier/server/local"
)

// Variables that envtest looks at, and Environment does, too.
const (
	envUseExistingCluster = "USE_EXISTING_CLUSTER"
	envStartTimeout       = "KUBEBUILDER_CONTROLPLANE_START_TIMEOUT"
	envAttachOutput       = "KUBEBUILDER_ATTACH_CONTROL_PLANE_OUTPUT"
)

// An Environment is a test server in the form of controller-runtime's
// envtest.Environment: a suite that uses that one changes an import and nothing else.
//
//	import envtest "github.com/espalier-dev/espalier/server/espaliertest"
//
//	env := &envtest.Environment{CRDDirectoryPaths: []string{"config/crd/bases"}}
//	config, err := env.Start()
//	…
//	err = env.Stop()
//
// New tests have it easier with Start, which ends by itself. The two go together:
// they share the etcd of the process.
//
// As in envtest, a CustomResourceDefinition that is deleted takes its objects with
// it (`espalier serve` refuses to delete one that has any).
type Environment struct {
	// ControlPlane takes flags for the server: ControlPlane.GetAPIServer().Configure().
	ControlPlane ControlPlane

	// Scheme has the types that decide which CRDs get a conversion webhook:
	// those whose versions are a hub and spokes. Nil is client-go's scheme.Scheme.
	Scheme *runtime.Scheme

	// Config is the configuration of an administrator's client. Start fills it in.
	// With UseExistingCluster it may be given.
	Config *rest.Config

	// KubeConfig is the same as a file for kubectl. Start fills it in.
	KubeConfig []byte

	// CRDInstallOptions say which CRDs there are to be.
	CRDInstallOptions CRDInstallOptions

	// WebhookInstallOptions say which webhooks there are to be. Start fills in where
	// the test has to serve them.
	WebhookInstallOptions WebhookInstallOptions

	// ErrorIfCRDPathMissing has Start fail if one of the paths does not exist.
	ErrorIfCRDPathMissing bool

	// CRDs are CRDs to install, beside those of CRDInstallOptions. Start
	// replaces them by all that it has installed.
	CRDs []*apiextensions.CustomResourceDefinition

	// CRDDirectoryPaths are folders and files of CRDs, beside those of
	// CRDInstallOptions. Folders in folders are not looked into.
	CRDDirectoryPaths []string

	// UseExistingCluster uses the cluster of Config or of the user's kubeconfig
	// instead of a test server. Nil asks the variable USE_EXISTING_CLUSTER.
	UseExistingCluster *bool

	// ControlPlaneStartTimeout is how long Start may take. Zero asks the variable
	// KUBEBUILDER_CONTROLPLANE_START_TIMEOUT, and is a minute without it.
	ControlPlaneStartTimeout time.Duration

	// AttachControlPlaneOutput leaves the server's log as klog has it, as
	// ESPALIERTEST_LOGS does, unless another test server of the process was started without it.
	// The variable KUBEBUILDER_ATTACH_CONTROL_PLANE_OUTPUT does the same.
	AttachControlPlaneOutput bool

	// The following fields have no effect: there are no programs to find, and Stop
	// waits for nothing. They exist for suites that set them.

	// DownloadBinaryAssets is ignored.
	DownloadBinaryAssets bool
	// DownloadBinaryAssetsVersion is ignored.
	DownloadBinaryAssetsVersion string
	// DownloadBinaryAssetsIndexURL is ignored.
	DownloadBinaryAssetsIndexURL string
	// BinaryAssetsDirectory is ignored.
	BinaryAssetsDirectory string
	// ControlPlaneStopTimeout is ignored.
	ControlPlaneStopTimeout time.Duration

	server *TestServer // nil: there is none, or an existing cluster is used
}

// Start runs a test server, and returns the configuration of an administrator's
// client when its CRDs are served and its webhooks are known. If Start fails, Stop
// need not be called.
func (e *Environment) Start() (_ *rest.Config, err error) {
	if e.server != nil {
		return nil, errors.New("the environment is running: Stop it first")
	}
	limit, err := e.startTimeout()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeoutCause(context.Background(), limit, fmt.Errorf("starting takes more than %v", limit))
	defer cancel()
	defer func() {
		if err != nil {
			// Not every function that gives up returns the cause.
			err = errors.Join(err, context.Cause(ctx), e.end())
		}
	}()
	e.merge()
	// The addresses of webhooks are in CRDs, too.
	if err := e.WebhookInstallOptions.PrepWithoutInstalling(); err != nil {
		return nil, fmt.Errorf("webhooks: %w", err)
	}
	e.CRDInstallOptions.WebhookOptions = e.WebhookInstallOptions
	var group errgroup.Group
	group.Go(func() (err error) {
		if e.CRDs, err = e.CRDInstallOptions.read(); err != nil {
			err = fmt.Errorf("CRDs: %w", err)
		}
		return err
	})
	group.Go(func() error { return e.connect(ctx) })
	if err := group.Wait(); err != nil {
		return nil, err
	}
	if err := installCRDs(ctx, e.Config, e.CRDs); err != nil {
		return nil, fmt.Errorf("CRDs: %w", err)
	}
	if err := e.WebhookInstallOptions.install(ctx, e.Config); err != nil {
		return nil, fmt.Errorf("webhooks: %w", err)
	}
	return e.Config, nil
}

// merge puts what is said in two places into one.
func (e *Environment) merge() {
	if e.Scheme == nil {
		e.Scheme = scheme.Scheme
	}
	o := &e.CRDInstallOptions
	if o.Scheme == nil {
		o.Scheme = e.Scheme
	}
	o.CRDs = mergeCRDs(o.CRDs, e.CRDs)
	o.Paths = mergePaths(o.Paths, e.CRDDirectoryPaths)
	o.ErrorIfPathMissing = o.ErrorIfPathMissing || e.ErrorIfCRDPathMissing
}

// connect finds a server, or makes one.
func (e *Environment) connect(ctx context.Context) (err error) {
	if e.useExistingCluster() {
		if e.Config == nil {
			if e.Config, err = userConfig(); err != nil {
				return fmt.Errorf("the existing cluster: %w", err)
			}
		}
		e.KubeConfig, err = local.Kubeconfig(e.Config)
		return err
	}
	flags, err := e.ControlPlane.flags()
	if err != nil {
		return err
	}
	loud := func(s *settings) { s.loud = e.AttachControlPlaneOutput || os.Getenv(envAttachOutput) == "true" }
	controllers := Configure(func(o *server.Options) { o.Controllers = slices.Clone(kubebuilder.Controllers) })
	e.server, err = start(ctx, controllers, Configure(flags), loud)
	if err != nil {
		return err
	}
	e.Config = e.server.Config()
	e.KubeConfig, err = local.Kubeconfig(e.Config)
	return err
}

// Stop stops the test server. Stopping one that does not run is no error.
func (e *Environment) Stop() error {
	var err error
	if e.CRDInstallOptions.CleanUpAfterUse && e.Config != nil && (e.server != nil || e.useExistingCluster()) {
		err = UninstallCRDs(e.Config, CRDInstallOptions{CRDs: e.CRDs})
	}
	return errors.Join(err, e.end())
}

func (e *Environment) end() error {
	err := e.WebhookInstallOptions.Cleanup()
	if e.server != nil {
		err = errors.Join(err, e.server.stop())
		e.server = nil
	}
	return err
}

// A User is the user of requests.
type User struct {
	Name   string
	Groups []string
}

// An AuthenticatedUser has what a user needs to make requests.
type AuthenticatedUser struct{ config *rest.Config }

// Config returns the configuration of a client of the user.
func (u *AuthenticatedUser) Config() *rest.Config { return u.config }

// KubeConfig returns the same as a file for kubectl.
func (u AuthenticatedUser) KubeConfig() ([]byte, error) { return local.Kubeconfig(u.config) }

// AddUser returns a user with a client certificate. Roles and bindings decide what the
// user may do. Other settings of base are kept; it may be nil.
//
// In an existing cluster, AddUser cannot sign certificates: there the administrator
// impersonates the user.
func (e *Environment) AddUser(user User, base *rest.Config) (*AuthenticatedUser, error) {
	switch {
	case e.server == nil && (e.Config == nil || !e.useExistingCluster()):
		return nil, errors.New("the environment does not run: Start it first")
	case e.server == nil:
		config := rest.CopyConfig(e.Config)
		config.Impersonate = rest.ImpersonationConfig{UserName: user.Name, Groups: user.Groups}
		return &AuthenticatedUser{config}, nil
	}
	own, err := e.server.User(user.Name, user.Groups...)
	if err != nil {
		return nil, err
	}
	if base != nil {
		config := rest.CopyConfig(base)
		config.Host, config.TLSClientConfig = own.Host, own.TLSClientConfig
		own = config
	}
	return &AuthenticatedUser{own}, nil
}

func (e *Environment) useExistingCluster() bool {
	if e.UseExistingCluster != nil {
		return *e.UseExistingCluster
	}
	return strings.EqualFold(os.Getenv(envUseExistingCluster), "true")
}

func (e *Environment) startTimeout() (time.Duration, error) {
	text := os.Getenv(envStartTimeout)
	if e.ControlPlaneStartTimeout != 0 || text == "" {
		return cmp.Or(e.ControlPlaneStartTimeout, startTime), nil
	}
	limit, err := time.ParseDuration(text)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", envStartTimeout, err)
	}
	return limit, nil
}
