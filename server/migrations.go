package server

import (
	"context"

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
		Etcd: s.backend.Client(), Prefix: o.Etcd.StorageConfig.Prefix, Transformers: c.ResourceTransformers, Client: s.controlPlane.client,
		UpdateCRD: definitions.UpdateStatus, Load: s.signals.requests.Load,
		Lookup: func(ctx context.Context, name schema.GroupResource) (*migration.Resource, error) {
			if name == restmapping.CustomResourceDefinitions.Resource.GroupResource() {
				return definitions.Migration(), nil
			}
			if r := resources.Migration(name); r != nil {
				return r, nil
			}
			if err := index.CatchUp(ctx); err != nil {
				return nil, err
			}
			e := index.Resource(name.Group, name.Resource)
			if e == nil || !e.Established || e.Accepted.Plural != name.Resource {
				return nil, nil
			}
			return objects.Migration(e), nil
		},
	}
	if o.Kinds.has(corev1.Resource("events")) {
		config.Events = s.controlPlane.client
	}
	return migration.New(config)
}
