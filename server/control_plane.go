package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/request/union"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/klog/v2"

	"github.com/espalier-dev/espalier/server/admission/chain"
	"github.com/espalier-dev/espalier/server/admission/flowcontrol"
	"github.com/espalier-dev/espalier/server/admission/priority"
	"github.com/espalier-dev/espalier/server/auth/authentication"
	"github.com/espalier-dev/espalier/server/auth/rbac"
	"github.com/espalier-dev/espalier/server/auth/token"
	"github.com/espalier-dev/espalier/server/catalog/restmapping"
	"github.com/espalier-dev/espalier/server/loopback"
	"github.com/espalier-dev/espalier/server/tenants"
	"github.com/espalier-dev/espalier/server/webhook"
)

// controlPlane has what a control plane needs besides storage: authentication,
// authorization and admission. They read their configuration through the server's own
// API.
type controlPlane struct {
	loop      *loopback.Loopback
	client    kubernetes.Interface
	dynamic   dynamic.Interface
	metadata  metadata.Interface
	informers informers.SharedInformerFactory
	kinds     atomic.Pointer[restmapping.Kinds] // set when the resources are built, after what admits to them

	roles         *rbac.Authorizer
	rules         authorizer.RuleResolver
	authorization *authorization
	identity      *authentication.Authentication
	accounts      token.Stores
	admission     *chain.Chain
	webhooks      *webhook.Client

	// service, if not nil, creates the Service default/kubernetes: when a server is ready,
	// it is there, as with kube-apiserver.
	service func(context.Context, kubernetes.Interface) error

	served   Kinds       // the built-in resources that are on
	fed      bool        // informers are those of a feed
	tenants  bool        // their CRD is installed
	fair     bool        // requests are shared out by flow schemas
	prepared atomic.Bool // the default objects exist
}

// newControlPlane returns a plane whose informers are not started.
//
// The informers of a tenant are those of a feed, which register puts into the factory.
func newControlPlane(served Kinds, register func(informers.SharedInformerFactory)) (*controlPlane, error) {
	p := &controlPlane{loop: loopback.New(), served: served}
	typed := p.loop.Config()
	typed.ContentType = runtime.ContentTypeProtobuf
	typed.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	var err error
	if p.client, err = kubernetes.NewForConfig(typed); err != nil {
		return nil, err
	}
	if p.dynamic, err = dynamic.NewForConfig(p.loop.Config()); err != nil {
		return nil, err
	}
	if p.metadata, err = metadata.NewForConfig(p.loop.Config()); err != nil {
		return nil, err
	}
	p.informers = informers.NewSharedInformerFactory(p.client, 0)
	if register != nil {
		register(p.informers)
		p.fed = true
	}
	p.roles, err = rbac.Start(p.informers)
	return p, err
}

// access configures authentication and authorization.
func (p *controlPlane) access(ctx context.Context, o *Options, c *genericapiserver.Config) (err error) {
	p.identity, err = o.Identity.Build(ctx, authentication.Parts{
		Directory:       o.Serving.ServerCert.CertDirectory,
		ExternalAddress: net.JoinHostPort(c.PublicAddress.String(), strconv.Itoa(o.Serving.BindPort)),
		ServerID:        c.APIServerID,
		Cached:          p.accounts.Cached(),
		Live:            p.accounts.Live(),
	})
	if err != nil {
		return err
	}
	if p.identity.ClientCA != nil {
		if err := c.Authentication.ApplyClientCert(p.identity.ClientCA, c.SecureServing); err != nil {
			return err
		}
	}
	if proxy := p.identity.RequestHeader; proxy != nil {
		c.Authentication.RequestHeaderConfig = proxy
		if err := c.Authentication.ApplyClientCert(proxy.CAContentProvider, c.SecureServing); err != nil {
			return err
		}
	}
	c.Authentication.APIAudiences = p.identity.Audiences
	c.Authentication.Authenticator = union.New(p.loop, p.identity.Authenticator)
	if p.authorization, err = o.Authorization.build(p.roles, c.APIServerID); err != nil {
		return err
	}
	c.Authorization.Authorizer, p.rules = p.authorization, p.authorization
	return nil
}

// admit makes the chain of admission plugins.
func (p *controlPlane) admit(ctx context.Context, o *Options, c *genericapiserver.Config) (err error) {
	if p.webhooks, err = webhook.New(*o.Webhooks); err != nil {
		return err
	}
	p.admission, err = chain.New(ctx, chain.Options{
		Flags: o.Admission, Client: p.client, Dynamic: p.dynamic, Informers: p.informers,
		Authorizer: c.Authorization.Authorizer, ServerID: c.APIServerID, Kinds: p.kinds.Load, Webhooks: p.webhooks, Lazy: p.fed, Anonymous: p.fed,
	})
	return err
}

// resourceOf returns the resource of a kind in a version that is served.
func (p *controlPlane) resourceOf(gvk schema.GroupVersionKind) (schema.GroupVersionResource, bool) {
	all := p.kinds.Load()
	if all == nil {
		return schema.GroupVersionResource{}, false
	}
	kind, ok := all.ByVersionKind(gvk)
	return kind.Resource, ok
}

// ready reports whether the server can authorize requests: roles and bindings are known.
func (p *controlPlane) ready() bool { return p.prepared.Load() && p.roles.HasSynced() }

// tasks are what runs beside requests. handler is that of all requests.
func (p *controlPlane) tasks(s *Server) []task {
	tasks := []task{
		{name: "loopback", run: func(ctx context.Context) error { return p.loop.Serve(ctx, s.Handler()) }},
		// The last requests go by what is known by then.
		{name: "informers", early: true, run: func(ctx context.Context) error {
			p.informers.Start(ctx.Done())
			<-ctx.Done()
			p.informers.Shutdown()
			return ctx.Err()
		}},
		{name: "authentication-files", run: func(ctx context.Context) error {
			p.identity.Run(ctx)
			<-ctx.Done()
			return ctx.Err()
		}},
		{name: "authorization-configuration", run: p.authorization.Run},
	}
	if s.tenant == nil { // a tenant does so in its own way
		tasks = append(tasks, task{name: "default-objects", run: p.prepare})
	}
	return tasks
}

// systemNamespaces are there from the beginning and cannot be deleted.
var systemNamespaces = []string{metav1.NamespaceDefault, metav1.NamespaceSystem, metav1.NamespacePublic}

// preparationTime is how long requests wait for default objects that cannot be written,
// for example because a webhook rejects every write. After that the server accepts
// requests, so that an administrator can fix the webhook. While no write has failed,
// requests wait longer: the machine is slow.
const preparationTime = 10 * time.Second

// prepare creates and repairs the default objects before the server accepts requests.
func (p *controlPlane) prepare(ctx context.Context) error {
	var failed, late atomic.Bool
	letIn := func() {
		if failed.Load() && late.Load() {
			p.prepared.Store(true)
		}
	}
	enough := time.AfterFunc(preparationTime, func() { late.Store(true); letIn() })
	defer enough.Stop()
	if err := p.ensure(ctx, func() { failed.Store(true); letIn() }); err != nil {
		return err
	}
	p.prepared.Store(true)
	<-ctx.Done()
	return ctx.Err()
}

// ensure creates and repairs the default objects. failed is called when a write fails; it is
// tried again.
func (p *controlPlane) ensure(ctx context.Context, failed func()) error {
	steps := map[string]func(context.Context, kubernetes.Interface) error{"namespaces": p.ensureNamespaces, "default roles": rbac.EnsureDefaults}
	if p.served == KindsAll {
		steps["default roles"] = rbac.EnsureKubernetesDefaults
		steps["system priority classes"] = priority.EnsureSystem
	}
	if p.tenants {
		steps["the CRD of tenants"] = func(ctx context.Context, _ kubernetes.Interface) error { return tenants.Install(ctx, p.dynamic) }
	}
	if p.fair {
		steps["default flow schemas"] = flowcontrol.EnsureDefaults
	}
	var group errgroup.Group
	for what, ensure := range steps {
		group.Go(func() error {
			return persist(ctx, what, func() error {
				err := ensure(ctx, p.client)
				if err != nil {
					failed()
				}
				return err
			})
		})
	}
	return group.Wait()
}

func (p *controlPlane) ensureNamespaces(ctx context.Context, client kubernetes.Interface) error {
	var errs []error
	for _, name := range p.served.namespaces() {
		_, err := client.CoreV1().Namespaces().Get(ctx, name, metav1.GetOptions{})
		if !apierrors.IsNotFound(err) {
			errs = append(errs, err)
			continue
		}
		_, err = client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
		if !apierrors.IsAlreadyExists(err) {
			errs = append(errs, err)
		}
	}
	if p.service != nil {
		errs = append(errs, p.service(ctx, client)) // it is in a namespace
	}
	return errors.Join(errs...)
}

// persist tries until it succeeds or the context ends.
func persist(ctx context.Context, what string, try func() error) error {
	for pause := 50 * time.Millisecond; ; pause = min(2*pause, 5*time.Second) {
		err := try()
		if err == nil || ctx.Err() != nil {
			return ctx.Err()
		}
		klog.ErrorS(err, "Failed to create default objects, retrying", "what", what)
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s: %w", what, ctx.Err())
		case <-time.After(pause):
		}
	}
}
