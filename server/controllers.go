package server

import (
	"context"
	"net"
	"os"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apimachinery/pkg/util/wait"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	genericapiserver "k8s.io/apiserver/pkg/server"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/espalier-dev/espalier/server/admission/quota"
	"github.com/espalier-dev/espalier/server/apis/builtin"
	"github.com/espalier-dev/espalier/server/apis/certificates"
	"github.com/espalier-dev/espalier/server/auth/accessreview"
	"github.com/espalier-dev/espalier/server/auth/rbac"
	"github.com/espalier-dev/espalier/server/catalog"
	"github.com/espalier-dev/espalier/server/catalog/restmapping"
	"github.com/espalier-dev/espalier/server/controllers/garbagecollector"
	"github.com/espalier-dev/espalier/server/controllers/leaderelection"
	"github.com/espalier-dev/espalier/server/controllers/migration"
	namespacecontroller "github.com/espalier-dev/espalier/server/controllers/namespace"
	"github.com/espalier-dev/espalier/server/controllers/rollout"
	"github.com/espalier-dev/espalier/server/controllers/rootca"
	"github.com/espalier-dev/espalier/server/controllers/serviceaccount"
	"github.com/espalier-dev/espalier/server/tenants"
)

// resources are those that are built in.
func (s *Server) resources(o *Options, c *genericapiserver.Config) (*builtin.Resources, error) {
	p, authorizer := s.controlPlane, c.Authorization.Authorizer
	list := builtin.Standard()
	for i := range list {
		if list[i].Plural == "serviceaccounts" {
			list[i].Subresources = map[string]func(*genericregistry.Store) rest.Storage{"token": p.identity.Issuer.Storage}
		}
	}
	list = append(list, builtin.Events(o.EventTTL)...)
	list = append(list, builtin.Policies(builtin.PolicyOptions{Authorizer: authorizer, Resource: p.resourceOf})...)
	list = append(list, rbac.Resources(p.roles, authorizer)...)
	list = append(list, certificates.Resource(authorizer))
	list = append(list, accessreview.Resources(authorizer, p.rules, p.identity.Authenticator)...)
	list = o.Kinds.of(list, func(ctx context.Context) error {
		_, err := s.backend.Client().Get(ctx, o.Etcd.StorageConfig.Prefix+"/health")
		return err
	})
	certificates.GuardPodRequests(list, authorizer)
	if err := s.allocate(o, list); err != nil {
		return nil, err
	}
	if o.runs(serviceKeeper) && s.tenant == nil {
		p.service = func(ctx context.Context, client kubernetes.Interface) error { return s.createService(ctx, client, c) }
	}
	resources, err := builtin.New(builtin.Options{
		Backend: s.backend, BackendOf: s.backendOf, Like: s.builtin, Admission: p.admission, Authorizer: authorizer,
		MaxRequestBodyBytes: c.MaxRequestBodyBytes, MinRequestTimeout: minRequestTimeout(c),
	}, list...)
	if err != nil {
		return nil, err
	}
	p.accounts.Bind(getter(resources, corev1.Resource("serviceaccounts")), getter(resources, corev1.Resource("secrets")))
	return resources, nil
}

// getter returns the store of a resource, or one without objects if the resource is off.
func getter(resources *builtin.Resources, resource schema.GroupResource) rest.Getter {
	if store := resources.Store(resource); store != nil {
		return store
	}
	return noObjects{resource}
}

// controllersTask is the name of the task that runs controllers.
const controllersTask = "controllers"

// controllers is what one of several servers does for all of them.
func (s *Server) controllers(o *Options, c *genericapiserver.Config, index *catalog.Catalog, migrator *migration.Controller) task {
	p, all, etcd, prefix := s.controlPlane, s.controlPlane.kinds.Load(), s.backend.Client(), o.Etcd.StorageConfig.Prefix
	routed := s.backend.Routed(s.routes())
	collecting := garbagecollector.Config{
		Etcd: etcd, Prefix: prefix, Transformers: c.ResourceTransformers, Kinds: all, Client: p.metadata,
	}
	if o.Kinds.has(corev1.Resource("events")) {
		collecting.Events = p.client
	}
	collector := garbagecollector.New(collecting)
	namespaces := p.informers.Core().V1().Namespaces()
	namespaces.Informer() // asked for before the informers are started
	namespaceController := namespacecontroller.New(namespacecontroller.Config{
		Etcd: routed, Prefix: prefix, Kinds: all, Client: p.client, Metadata: p.metadata, Namespaces: namespaces, Unreadable: s.unreadable,
		Off: sync.OnceValue(o.Kinds.off),
	})
	quotas := quota.New(quota.Config{
		Etcd: routed, Prefix: prefix, Transformers: c.ResourceTransformers, Kinds: all, Client: p.client,
		Quotas: p.informers.Core().V1().ResourceQuotas(), RequestTimeout: c.RequestTimeout,
	})
	tasks := o.running(map[string]func(context.Context) error{
		garbageCollector: collector.Run,
		namespaceEmptier: namespaceController.Run,
		quotaCounter:     quotas.Run,
		roleAggregator:   func(ctx context.Context) error { return rbac.Aggregate(ctx, p.informers, p.client) },
		accountCreator: func(ctx context.Context) error {
			return serviceaccount.Run(ctx, p.client, namespaces, p.accountInformer())
		},
		requestSigner:   certificates.New(p.client, o.Signing).Run,
		storageMigrator: migrator.Run,
		crdRoller: func(ctx context.Context) error {
			return rollout.Run(ctx, rollout.Config{
				Client: p.dynamic, REST: p.client.Discovery().RESTClient(),
				Installed: func() bool { return index.Get(rollout.Resource.GroupResource().String()) != nil },
			})
		},
		tenantRemover: func(ctx context.Context) error { return tenants.Remove(ctx, p.dynamic, s.etcds, prefix) },
		serviceKeeper: func(ctx context.Context) error { return s.publishService(ctx, c) },
		rootPublisher: func(ctx context.Context) error {
			return rootca.Run(ctx, p.client, namespaces, o.rootCA(c.SecureServing))
		},
	})
	return task{name: controllersTask, early: true, run: func(ctx context.Context) error {
		known := func(context.Context) (bool, error) { return p.ready() && index.HasSynced(), nil }
		if err := wait.PollUntilContextCancel(ctx, 10*time.Millisecond, true, known); err != nil {
			return err
		}
		return leaderelection.Run(ctx, leaderelection.Config{Client: p.client, Name: "espalier-controllers", Identity: name()}, tasks...)
	}}
}

// accountInformer is the informer of service accounts, if it costs nothing but the objects.
func (p *controlPlane) accountInformer() coreinformers.ServiceAccountInformer {
	if !p.fed {
		return nil
	}
	return p.informers.Core().V1().ServiceAccounts()
}

// replicaName is how others name this replica in errors and logs.
func replicaName(address net.Addr) string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown host"
	}
	return host + " at " + address.String()
}

// name is different for every server.
func name() string {
	host, err := os.Hostname()
	if err != nil {
		host = "server"
	}
	return host + "_" + string(uuid.NewUUID())
}

// unreadable names the objects of a kind in a namespace that cannot be read.
func (s *Server) unreadable(ctx context.Context, k restmapping.Kind, namespace string) error {
	_, err := s.backendOf(k.Resource.GroupResource()).UnreadableError(ctx, k.Resource.GroupResource(), k.Prefix+"/"+namespace)
	return err
}
