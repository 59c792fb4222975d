package customresource

import (
	"context"
	"errors"
	"maps"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/endpoints/request"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/storage"

	"github.com/espalier-dev/espalier/internal/object"
)

// TenantAnnotation names the tenant of an object where those of several are listed. It is set when
// the object is read. It can be selected by as a field, too.
const TenantAnnotation = "espalier.dev/tenant"

// View has a Server show the objects of several tenants, which can be listed and watched only.
// Objects without TenantAnnotation are not shown.
type View interface {
	// Key is the key of an object, below the prefix of the backend.
	Key(r schema.GroupResource, o *object.Object) (string, error)
}

var errManyTenants = errors.New("an object has a name within a tenant, and this is of several")

// viewKeys has a store list and watch whole resources: neither a name nor a namespace is a part of what
// is read.
func viewKeys(s *genericregistry.Store, r schema.GroupResource) {
	folder := "/" + r.Group + "/" + r.Resource
	s.KeyRootFunc = func(context.Context) string { return folder }
	s.KeyFunc = func(context.Context, string) (string, error) { return "", errManyTenants }
}

// ofTenants restricts a predicate to objects with a tenant.
func (s *selection) ofTenants(label labels.Selector, field fields.Selector) storage.SelectionPredicate {
	return s.predicate(label, fields.AndSelectors(field, fields.OneTermNotEqualSelector(TenantAnnotation, "")))
}

// withoutTenant takes TenantAnnotation off an object that is written: clients send what they have read.
func withoutTenant(o *object.Object) {
	annotations := o.GetAnnotations()
	if _, ok := annotations[TenantAnnotation]; !ok {
		return
	}
	annotations = maps.Clone(annotations)
	delete(annotations, TenantAnnotation)
	if len(annotations) == 0 {
		annotations = nil
	}
	o.SetAnnotations(annotations)
}

// Await is for Options: see there.
type Await func(ctx context.Context, r schema.GroupResource) error

// await waits for a resource that another replica may have told a client of.
func (s *Server) await(ctx context.Context, info *request.RequestInfo) error {
	if s.options.Await == nil {
		return nil
	}
	return s.options.Await(ctx, schema.GroupResource{Group: info.APIGroup, Resource: info.Resource})
}
