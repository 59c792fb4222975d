package server

import (
	"context"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/endpoints/request"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/klog/v2"

	apiregistrationv1 "github.com/espalier-dev/espalier/crd/apiregistration/v1"
	"github.com/espalier-dev/espalier/internal/object"
	"github.com/espalier-dev/espalier/server/admission/flowcontrol"
	"github.com/espalier-dev/espalier/server/apis/apiservices"
	"github.com/espalier-dev/espalier/server/apis/builtin"
	"github.com/espalier-dev/espalier/server/apis/customresource"
	"github.com/espalier-dev/espalier/server/apis/customresourcedefinition"
	"github.com/espalier-dev/espalier/server/catalog"
	"github.com/espalier-dev/espalier/server/catalog/restmapping"
	"github.com/espalier-dev/espalier/server/controllers/crdcontroller"
	"github.com/espalier-dev/espalier/server/endpoints"
	"github.com/espalier-dev/espalier/server/endpoints/discovery"
	"github.com/espalier-dev/espalier/server/endpoints/openapihandler"
	"github.com/espalier-dev/espalier/server/endpoints/requestinfo"
	"github.com/espalier-dev/espalier/server/replica"
	"github.com/espalier-dev/espalier/server/storage/converter"
	"github.com/espalier-dev/espalier/server/tenants"
	"github.com/espalier-dev/espalier/server/webhook"
)

// wire builds the handlers of requests, from the CRDs outwards, and their tasks.
func (s *Server) wire(ctx context.Context, o *Options, c *genericapiserver.Config) (*router, error) {
	resources, err := s.resources(o, c)
	if err != nil {
		return nil, err
	}
	s.builtin = resources
	conversion, err := converter.NewFactory(webhook.NoServices{}, s.controlPlane.webhooks)
	if err != nil {
		return nil, err
	}
	definitions, err := s.crds(o, c, conversion)
	if err != nil {
		return nil, err
	}
	index := catalog.New(definitions.Store().Storage.Storage)
	if err := s.lendFixed(index); err != nil {
		return nil, err
	}
	s.controlPlane.kinds.Store(restmapping.New(index, append(resources.Kinds(), restmapping.CustomResourceDefinitions)...))
	s.knowledge = &knowledge{index: index}
	objects, err := s.objects(o, c, index, conversion)
	if err != nil {
		return nil, err
	}
	s.knowledge.adopted = objects.Adopted
	s.signals.counts = &flowcontrol.Counts{Resource: keys(resources, index), Count: s.count}
	s.share(o, c, index, objects, conversion)
	c.StorageObjectCountTracker = s.signals.counts
	member, err := s.member(ctx, o, index, objects)
	if err != nil {
		return nil, err
	}
	controller := crdcontroller.New(index, definitions, objects, crdcontroller.Options{
		Barrier: func(ctx context.Context, entry *catalog.Entry) error { return member.Wait(ctx, entry.Revision) },
	})
	answerWhenSettled(definitions, controller)
	s.tasks = append(s.tasks,
		task{name: "crd-catalog", run: index.Run},
		task{name: "crd-controller", run: controller.Run},
		task{name: "custom-resources", run: objects.Run},
		s.controllers(o, c, index, s.migrator(o, c, index, resources, objects, definitions)),
	)
	s.tasks = append(s.tasks, s.controlPlane.tasks(s)...)
	groups := append(resources.Discovery(), discovery.APIExtensions())
	if store := resources.Store(schema.GroupResource{Group: apiregistrationv1.SchemeGroupVersion.Group, Resource: "apiservices"}); store != nil {
		s.tasks = append(s.tasks, task{name: "local-apiservices", run: apiservices.NewLocal(store, index, groups...).Run})
	}
	publish := openapihandler.New(index, append(resources.OpenAPI(), openapihandler.APIExtensions()...)...)
	if s.tenant != nil {
		publish = publish.Within(s.openAPI, tenants.Path(s.tenant.Name))
	}
	s.openAPI = publish
	return &router{
		validation:  endpoints.FieldValidations[o.FieldValidation],
		builtin:     resources,
		discovery:   s.knowledge.discoverable(discovery.New(index, groups...)),
		definitions: s.knowledge.read(serveDefinitions(definitions)),
		custom:      s.knowledge.known(objects),
		publish:     s.knowledge.discoverable(publish),
		transfer:    s.transfer,
	}, nil
}

// keys returns what knows the keys of resources in etcd.
func keys(builtIn *builtin.Resources, index *catalog.Catalog) func(schema.GroupResource) (string, bool) {
	definitions := schema.GroupResource{Group: definitionGroup, Resource: "customresourcedefinitions"}
	fixed := map[schema.GroupResource]string{definitions: catalog.Key}
	for _, r := range builtIn.All() {
		if key, ok := r.Key(); ok {
			fixed[schema.GroupResource{Group: r.Group, Resource: r.Plural}] = key
		}
	}
	for _, r := range builtIn.All() {
		if key, ok := fixed[r.Alias]; ok {
			fixed[schema.GroupResource{Group: r.Group, Resource: r.Plural}] = key
		}
	}
	return func(r schema.GroupResource) (string, bool) {
		if key, ok := fixed[r]; ok {
			return key, true
		}
		e := index.Resource(r.Group, r.Resource)
		return "/" + r.Group + "/" + r.Resource, e != nil && e.Established
	}
}

// crds builds the resource customresourcedefinitions.
func (s *Server) crds(o *Options, c *genericapiserver.Config, conversion *converter.Factory) (*customresourcedefinition.Resource, error) {
	return customresourcedefinition.New(customresourcedefinition.Options{
		Backend: s.backend, Authorizer: c.Authorization.Authorizer, Admission: s.controlPlane.admission, ProtectInstances: o.ProtectInstances,
		MaxRequestBodyBytes: c.MaxRequestBodyBytes, MinRequestTimeout: minRequestTimeout(c),
		Conversion: conversion, RequirePlan: o.RequirePlan, Deletable: s.unboundByOthers,
	})
}

// settleTime is how long the server may delay the answer to a change of a CRD; mostly
// it takes milliseconds.
const settleTime = time.Second

// answerWhenSettled delays the answer to a change of a CRD until the CRD's status reflects
// the change. Otherwise the controller writes the status between two changes of a client,
// and the second one fails with a conflict.
func answerWhenSettled(d *customresourcedefinition.Resource, c *crdcontroller.Controller) {
	wait := func(obj runtime.Object, dryRun []string) {
		o, ok := obj.(*object.Object)
		if !ok || len(dryRun) > 0 {
			return
		}
		ctx, cancel := context.WithTimeout(context.Background(), settleTime)
		defer cancel()
		if err := c.WaitFor(ctx, o); err != nil {
			klog.V(2).InfoS("The CRD controller did not update a CRD in time", "name", o.GetName(), "err", err)
		}
	}
	s := d.Store()
	s.AfterCreate = func(obj runtime.Object, o *metav1.CreateOptions) { wait(obj, o.DryRun) }
	s.AfterUpdate = func(obj runtime.Object, o *metav1.UpdateOptions) { wait(obj, o.DryRun) }
}

// serveDefinitions answers requests to customresourcedefinitions.
func serveDefinitions(d *customresourcedefinition.Resource) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		info, ok := request.RequestInfoFrom(req.Context())
		if !ok || info.Resource != "customresourcedefinitions" || !requestinfo.InScope(info, false) {
			http.NotFound(w, req)
			return
		}
		endpoint := d.Endpoint(info.APIVersion, info.Subresource)
		if endpoint == nil {
			http.NotFound(w, req)
			return
		}
		endpoints.Serve(w, req, info, endpoint)
	})
}

// objects are the custom resources.
func (s *Server) objects(o *Options, c *genericapiserver.Config, index *catalog.Catalog, conversion *converter.Factory) (*customresource.Server, error) {
	return customresource.New(customresource.Options{
		Catalog: index, Backend: s.backend, Conversion: conversion, NotFound: http.NotFoundHandler(),
		Admission: s.controlPlane.admission, Authorizer: c.Authorization.Authorizer, FieldValidation: endpoints.FieldValidations[o.FieldValidation],
		MaxRequestBodyBytes: c.MaxRequestBodyBytes, RequestTimeout: c.RequestTimeout, MinRequestTimeout: minRequestTimeout(c),
		Idle: o.IdleTimeout, Uncached: !o.Etcd.EnableWatchCache, Current: s.knowledge.current, Await: s.awaitBound,
	}), nil
}

// member registers this replica with the others on the same etcd. It joins before the
// CRDs are read. It is built last, so that it reports a change after everything that
// serves by the change has received it.
func (s *Server) member(ctx context.Context, o *Options, index *catalog.Catalog, objects *customresource.Server) (*replica.Member, error) {
	options := replica.Options{Prefix: o.Etcd.StorageConfig.Prefix, CatchUp: s.knowledge.catchUp}
	if s.agreed != nil {
		s.agreed.keys = s.controlPlane.identity.Issuer.KeyIDs
		s.agreed.authorization = s.controlPlane.authorization.inForce
		s.agreed.fixed.Replica = replicaName(s.Address())
		options.Settings, options.Conflict = s.agreed.bytes, s.agreed.conflict
	}
	join := s.join
	if join == nil {
		join = func() (*replica.Member, error) { return replica.Join(ctx, s.backend.Client(), options) }
	}
	member, err := join()
	if err != nil {
		return nil, fmt.Errorf("joining the other replicas on this etcd: %w", err)
	}
	s.joined = member
	s.knowledge.member.Store(member)
	if s.agreed != nil {
		s.agreed.warn(member.Met())
	}
	s.tasks = append(s.tasks,
		task{name: "replica-membership", run: func(ctx context.Context) error {
			member.Run(ctx)
			return ctx.Err()
		}},
		task{name: "replica-progress", run: reports(index, objects, member)},
	)
	return member, nil
}

// reports tells other replicas up to which revision this one knows the CRDs. A change
// alone does not show that: a new list delivers CRDs in the order of their names.
func reports(index *catalog.Catalog, objects *customresource.Server, member *replica.Member) func(context.Context) error {
	var latest atomic.Uint64
	wake := make(chan struct{}, 1)
	index.Subscribe(func(_, updated *catalog.Entry) {
		if updated == nil {
			return
		}
		if updated.Revision > latest.Load() {
			latest.Store(updated.Revision) // one call at a time
		}
		select {
		case wake <- struct{}{}:
		default:
		}
	})
	return func(ctx context.Context) error {
		select {
		case <-index.Synced():
		case <-ctx.Done():
			return ctx.Err()
		}
		for {
			if err := index.WaitFor(ctx, latest.Load()); err != nil {
				return err
			}
			revision := index.Revision()
			if err := objects.Adopted(ctx); err != nil {
				return err
			}
			member.Saw(revision)
			select {
			case <-wake:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	}
}

// minRequestTimeout is how long watches last at least.
func minRequestTimeout(c *genericapiserver.Config) time.Duration {
	return time.Duration(c.MinRequestTimeout) * time.Second
}
