package builtin

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apimachinery/pkg/util/validation/field"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// scaleKind is what the subresource scale shows.
var scaleKind = autoscalingv1.SchemeGroupVersion.WithKind("Scale")

// addScale gives a resource with replicas the subresource scale.
func addScale(r *Resource) {
	version := r.version().String()
	if r.Subresources == nil {
		r.Subresources = map[string]func(*genericregistry.Store) rest.Storage{}
	}
	r.Subresources["scale"] = func(s *genericregistry.Store) rest.Storage {
		return &scaleREST{store: s, version: r.version(), paths: managedfields.ResourcePathMappings{version: fieldpath.MakePathOrDie("spec", "replicas")}}
	}
}

// scaled is what a scale shows of an object.
type scaled struct {
	meta     *metav1.ObjectMeta
	desired  **int32
	actual   int32
	selector string
}

// scaledOf reads an object; ok is false if it has no replicas.
func scaledOf(obj runtime.Object) (s scaled, ok bool) {
	switch o := obj.(type) {
	case *appsv1.Deployment:
		return scaled{&o.ObjectMeta, &o.Spec.Replicas, o.Status.Replicas, selectorText(o.Spec.Selector)}, true
	case *appsv1.ReplicaSet:
		return scaled{&o.ObjectMeta, &o.Spec.Replicas, o.Status.Replicas, selectorText(o.Spec.Selector)}, true
	case *appsv1.StatefulSet:
		return scaled{&o.ObjectMeta, &o.Spec.Replicas, o.Status.Replicas, selectorText(o.Spec.Selector)}, true
	case *corev1.ReplicationController:
		return scaled{&o.ObjectMeta, &o.Spec.Replicas, o.Status.Replicas, labels.SelectorFromSet(o.Spec.Selector).String()}, true
	}
	return scaled{}, false
}

// selectorText is a selector as a string. One that is stored is valid.
func selectorText(s *metav1.LabelSelector) string {
	selector, err := metav1.LabelSelectorAsSelector(s)
	if err != nil {
		return ""
	}
	return selector.String()
}

// scaleREST is the subresource scale.
type scaleREST struct {
	store   *genericregistry.Store
	version schema.GroupVersion
	// paths is where the version of the resource has the replicas, for the translation
	// of managed fields.
	paths managedfields.ResourcePathMappings
}

var (
	_ rest.Patcher                  = (*scaleREST)(nil)
	_ rest.GroupVersionKindProvider = (*scaleREST)(nil)
)

// GroupVersionKind implements rest.GroupVersionKindProvider.
func (r *scaleREST) GroupVersionKind(schema.GroupVersion) schema.GroupVersionKind { return scaleKind }

// New implements rest.Storage.
func (r *scaleREST) New() runtime.Object { return &autoscalingv1.Scale{} }

// Destroy implements rest.Storage: the store is that of the resource.
func (r *scaleREST) Destroy() {}

// Get implements rest.Getter.
func (r *scaleREST) Get(ctx context.Context, name string, options *metav1.GetOptions) (runtime.Object, error) {
	obj, err := r.store.Get(ctx, name, options)
	if err != nil {
		return nil, err
	}
	return scaleOf(obj)
}

// Update implements rest.Updater. A subresource never creates.
func (r *scaleREST) Update(ctx context.Context, name string, info rest.UpdatedObjectInfo, create rest.ValidateObjectFunc,
	update rest.ValidateObjectUpdateFunc, _ bool, options *metav1.UpdateOptions,
) (runtime.Object, bool, error) {
	obj, _, err := r.store.Update(ctx, name, &scaleUpdate{info, r}, onScale(create), func(ctx context.Context, obj, old runtime.Object) error {
		before, err := scaleOf(old)
		if err != nil {
			return err
		}
		return onScale(func(ctx context.Context, scale runtime.Object) error { return update(ctx, scale, before) })(ctx, obj)
	}, false, options)
	if err != nil {
		return nil, false, err
	}
	scale, err := scaleOf(obj)
	return scale, false, err
}

// onScale shows admission the scale of an object.
func onScale(f rest.ValidateObjectFunc) rest.ValidateObjectFunc {
	return func(ctx context.Context, obj runtime.Object) error {
		scale, err := scaleOf(obj)
		if err != nil {
			return err
		}
		return f(ctx, scale)
	}
}

// scaleOf returns the scale of an object.
func scaleOf(obj runtime.Object) (*autoscalingv1.Scale, error) {
	s, ok := scaledOf(obj)
	if !ok {
		return nil, apierrors.NewInternalError(fmt.Errorf("an object of type %T has no scale", obj))
	}
	scale := &autoscalingv1.Scale{
		ObjectMeta: metav1.ObjectMeta{
			Name: s.meta.Name, Namespace: s.meta.Namespace, UID: s.meta.UID,
			ResourceVersion: s.meta.ResourceVersion, CreationTimestamp: s.meta.CreationTimestamp,
		},
		Status: autoscalingv1.ScaleStatus{Replicas: s.actual, Selector: s.selector},
	}
	if *s.desired != nil {
		scale.Spec.Replicas = **s.desired
	}
	return scale, nil
}

// scaleUpdate turns a change of a scale into one of the object.
type scaleUpdate struct {
	rest.UpdatedObjectInfo // of the scale
	scale                  *scaleREST
}

// UpdatedObject implements rest.UpdatedObjectInfo.
func (u *scaleUpdate) UpdatedObject(ctx context.Context, old runtime.Object) (runtime.Object, error) {
	obj := old.DeepCopyObject()
	s, ok := scaledOf(obj)
	if !ok {
		return nil, apierrors.NewInternalError(fmt.Errorf("an object of type %T has no scale", old))
	}
	before, err := scaleOf(obj)
	if err != nil {
		return nil, err
	}
	fields := managedfields.NewScaleHandler(s.meta.ManagedFields, u.scale.version, u.scale.paths)
	if before.ManagedFields, err = fields.ToSubresource(); err != nil {
		return nil, err
	}
	changed, err := u.UpdatedObjectInfo.UpdatedObject(ctx, before)
	if err != nil {
		return nil, err
	}
	scale, ok := changed.(*autoscalingv1.Scale)
	if !ok {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("expected input object type to be Scale, but %T", changed))
	}
	if scale.UID != "" && scale.UID != s.meta.UID {
		resource := u.scale.store.DefaultQualifiedResource
		resource.Resource += "/scale"
		return nil, apierrors.NewConflict(resource, s.meta.Name, fmt.Errorf("Precondition failed: UID in precondition: %v, UID in object meta: %v", scale.UID, s.meta.UID)) //nolint:revive,staticcheck // clients know the text
	}
	if errs := validateScale(scale); len(errs) > 0 {
		return nil, apierrors.NewInvalid(scaleKind.GroupKind(), s.meta.Name, errs)
	}
	if scale.ResourceVersion != "" {
		s.meta.ResourceVersion = scale.ResourceVersion // a precondition of the client's
	}
	*s.desired = &scale.Spec.Replicas
	s.meta.ManagedFields, err = fields.ToParent(scale.ManagedFields)
	return obj, err
}

// validateScale validates a scale.
func validateScale(s *autoscalingv1.Scale) field.ErrorList {
	errs := apivalidation.ValidateObjectMeta(&s.ObjectMeta, true, apivalidation.NameIsDNSSubdomain, field.NewPath("metadata"))
	if s.Spec.Replicas < 0 {
		errs = append(errs, field.Invalid(field.NewPath("spec", "replicas"), s.Spec.Replicas, "must be greater than or equal to 0"))
	}
	return errs
}
