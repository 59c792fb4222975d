package server

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	genericapiserver "k8s.io/apiserver/pkg/server"

	"github.com/espalier-dev/espalier/server/apis/builtin"
	"github.com/espalier-dev/espalier/server/apis/customresource"
	"github.com/espalier-dev/espalier/server/apis/customresourcedefinition"
	"github.com/espalier-dev/espalier/server/catalog"
	"github.com/espalier-dev/espalier/server/catalog/restmapping"
	"github.com/espalier-dev/espalier/server/controllers/migration"
)

// migrator makes the controller of StorageVersionMigrations.
func (s *Server) migrator(o *Options, c *genericapiserver.Config, index *catalog.Catalog,
	resources *builtin.Resources, objects *customresource.Server, definitions *customresourcedefinition.Resource,
) *migration.Controller {
	config := migration.Config{
		Etcd: s.backend.Client(), Endpoints: s.backend.Endpoints(), Prefix: o.Etcd.StorageConfig.Prefix, Transformers: c.ResourceTransformers, Client: s.controlPlane.client,
		UpdateCRD: definitions.UpdateStatus, Begun: s.signals.begun.Load,
		Lookup: func(ctx context.Context, name schema.GroupResource) (*migration.Resource, error) {
			if s.backend.Bounded() {
				return nil, errors.New("the engine that --etcd-servers names does not have the transactions that migrations need: use etcd")
			}
			if name == restmapping.CustomResourceDefinitions.Resource.GroupResource() {
				return definitions.Migration(), nil
			}
			if r := resources.Migration(name); r != nil {
				if s.backendOf(r.Resource) != s.backend {
					return nil, fmt.Errorf("%s is in an etcd of its own (--etcd-servers-overrides), where nothing is migrated: its objects are rewritten when they change", r.Resource)
				}
				return r, nil
			}
			if err := index.CatchUp(ctx); err != nil {
				return nil, err
			}
			e := index.Resource(name.Group, name.Resource)
			if e == nil || e.Loan != nil || !e.Established || e.Accepted.Plural != name.Resource {
				return nil, nil
			}
			if err := s.unboundByOthers(ctx, name); err != nil {
				return nil, err
			}
			return objects.Migration(e), nil
		},
	}
	if s.controlPlane.fed {
		config.Informers = s.controlPlane.informers
	}
	if o.Kinds.has(corev1.Resource("events")) {
		config.Events = s.controlPlane.client
	}
	return migration.New(config)
}
