package customresource

import (
	"context"
	"fmt"
	"math"

	autoscaling "k8s.io/api/autoscaling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/espalier-dev/espalier/crd/request"
	"github.com/espalier-dev/espalier/internal/object"
)

// notSet stands for the replicas of an object that has none, while a request
// is about to set them.
const notSet = math.MinInt32

// scaleKind is what the scale subresource shows.
var scaleKind = autoscaling.SchemeGroupVersion.WithKind("Scale")

// scaleREST is the scale subresource.
type scaleREST struct {
	store   *genericregistry.Store
	paths   *request.Scale
	version schema.GroupVersion
	// managed is where the versions of the resource have the replicas, for the
	// translation of managed fields.
	managed managedfields.ResourcePathMappings
}

var (
	_ rest.Patcher                  = (*scaleREST)(nil)
	_ rest.GroupVersionKindProvider = (*scaleREST)(nil)
)

// GroupVersionKind implements rest.GroupVersionKindProvider.
func (r *scaleREST) GroupVersionKind(schema.GroupVersion) schema.GroupVersionKind { return scaleKind }

// New implements rest.Storage.
func (r *scaleREST) New() runtime.Object { return &autoscaling.Scale{} }

// Destroy implements rest.Storage: the store is that of the resource.
func (r *scaleREST) Destroy() {}

// Get implements rest.Getter.
func (r *scaleREST) Get(ctx context.Context, name string, options *metav1.GetOptions) (runtime.Object, error) {
	obj, err := r.store.Get(ctx, name, options)
	if err != nil {
		return nil, err
	}
	scale, found, err := scaleOf(r.paths, obj)
	if err != nil {
		return nil, err
	}
	if !found {
		return nil, apierrors.NewInternalError(fmt.Errorf("the spec replicas field %q does not exist", r.paths.SpecReplicas))
	}
	return scale, nil
}

// Update implements rest.Updater. A subresource never creates.
func (r *scaleREST) Update(ctx context.Context, name string, info rest.UpdatedObjectInfo, create rest.ValidateObjectFunc,
	update rest.ValidateObjectUpdateFunc, _ bool, options *metav1.UpdateOptions,
) (runtime.Object, bool, error) {
	obj, _, err := r.store.Update(ctx, name, &scaleUpdate{UpdatedObjectInfo: info, scaleREST: r},
		r.createValidation(create), r.updateValidation(update), false, options)
	if err != nil {
		return nil, false, err
	}
	scale, _, err := scaleOf(r.paths, obj)
	if err != nil {
		return nil, false, apierrors.NewBadRequest(err.Error())
	}
	return scale, false, nil
}

// createValidation converts the object to a scale for admission.
func (r *scaleREST) createValidation(f rest.ValidateObjectFunc) rest.ValidateObjectFunc {
	return func(ctx context.Context, obj runtime.Object) error {
		scale, _, err := scaleOf(r.paths, obj)
		if err != nil {
			return err
		}
		return f(ctx, scale)
	}
}

// updateValidation converts the objects to scales for admission. The stored object
// grows by managed fields, and a quota of bytes must see that.
func (r *scaleREST) updateValidation(f rest.ValidateObjectUpdateFunc) rest.ValidateObjectUpdateFunc {
	return func(ctx context.Context, obj, old runtime.Object) error {
		scale, _, err := scaleOf(r.paths, obj)
		if err != nil {
			return err
		}
		before, _, err := scaleOf(r.paths, old)
		if err != nil {
			return err
		}
		return f(object.WithStored(ctx, obj.(*object.Object), old.(*object.Object)), scale, before)
	}
}

// scaleOf returns the scale of an object, and whether it has replicas.
func scaleOf(p *request.Scale, obj runtime.Object) (*autoscaling.Scale, bool, error) {
	o, ok := obj.(*object.Object)
	if !ok {
		return nil, false, fmt.Errorf("an object of type %T has no scale", obj)
	}
	desired, found, err := p.Desired(o)
	if err != nil {
		return nil, false, err
	}
	actual, err := p.Actual(o)
	if err != nil {
		return nil, false, err
	}
	selector, err := p.LabelSelector(o)
	if err != nil {
		return nil, false, err
	}
	return &autoscaling.Scale{
		TypeMeta: metav1.TypeMeta{APIVersion: scaleKind.GroupVersion().String(), Kind: scaleKind.Kind},
		ObjectMeta: metav1.ObjectMeta{
			Name: o.GetName(), Namespace: o.GetNamespace(), UID: o.GetUID(),
			ResourceVersion: o.GetResourceVersion(), CreationTimestamp: o.GetCreationTimestamp(),
		},
		Spec:   autoscaling.ScaleSpec{Replicas: int32(desired)},
		Status: autoscaling.ScaleStatus{Replicas: int32(actual), Selector: selector},
	}, found, nil
}

// scaleUpdate turns a request for a scale into one for the object.
type scaleUpdate struct {
	rest.UpdatedObjectInfo // of the scale
	*scaleREST
}

// UpdatedObject implements rest.UpdatedObjectInfo.
func (u *scaleUpdate) UpdatedObject(ctx context.Context, old runtime.Object) (runtime.Object, error) {
	o := old.(*object.Object).DeepCopy()
	fields := managedfields.NewScaleHandler(o.GetManagedFields(), u.version, u.managed)
	before, found, err := scaleOf(u.paths, o)
	if err != nil {
		return nil, err
	}
	if !found {
		before.Spec.Replicas = notSet
	}
	if before.ManagedFields, err = fields.ToSubresource(); err != nil {
		return nil, err
	}
	obj, err := u.UpdatedObjectInfo.UpdatedObject(ctx, before)
	if err != nil {
		return nil, err
	}
	if obj == nil {
		return nil, apierrors.NewBadRequest("nil update passed to Scale")
	}
	scale, ok := obj.(*autoscaling.Scale)
	if !ok {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("wrong object passed to Scale update: %v", obj))
	}
	if scale.Spec.Replicas == notSet {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("the spec replicas field %q cannot be empty", u.paths.SpecReplicas))
	}
	if err := u.paths.SetDesired(o, int64(scale.Spec.Replicas)); err != nil {
		return nil, err
	}
	if scale.ResourceVersion != "" {
		o.SetResourceVersion(scale.ResourceVersion) // a precondition of the client's
	}
	managed, err := fields.ToParent(scale.ManagedFields)
	if err != nil {
		return nil, err
	}
	o.SetManagedFields(managed)
	return o, nil
}

// replicasPaths says where each version has the replicas that its scale sets.
func replicasPaths(group string, d *details) managedfields.ResourcePathMappings {
	mappings := managedfields.ResourcePathMappings{}
	for name, v := range d.versions {
		version := schema.GroupVersion{Group: group, Version: name}.String()
		mappings[version] = nil
		if v.scale == nil {
			continue
		}
		var p fieldpath.Path
		for _, member := range request.Steps(v.scale.SpecReplicas) {
			p = append(p, fieldpath.PathElement{FieldName: &member})
		}
		mappings[version] = p
	}
	return mappings
}
