package builtin

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage"
	storageerr "k8s.io/apiserver/pkg/storage/errors"
	"k8s.io/apiserver/pkg/util/dryrun"

	"github.com/espalier-dev/espalier/crd/kinds"
)

// bindingREST is the subresource binding of pods: a scheduler assigns a pod to a node.
type bindingREST struct{ pods *genericregistry.Store }

var (
	_ rest.NamedCreater                   = (*bindingREST)(nil)
	_ rest.SubresourceObjectMetaPreserver = (*bindingREST)(nil)
)

// PreserveRequestObjectMetaSystemFieldsOnSubresourceCreate implements
// rest.SubresourceObjectMetaPreserver: the UID and the resource version are those of the pod.
func (r *bindingREST) PreserveRequestObjectMetaSystemFieldsOnSubresourceCreate() bool { return true }

// New implements rest.Storage.
func (r *bindingREST) New() runtime.Object { return &corev1.Binding{} }

// Destroy implements rest.Storage: the store is that of pods.
func (r *bindingREST) Destroy() {}

// Create implements rest.NamedCreater.
func (r *bindingREST) Create(ctx context.Context, name string, obj runtime.Object, validate rest.ValidateObjectFunc, options *metav1.CreateOptions) (runtime.Object, error) {
	b, ok := obj.(*corev1.Binding)
	if !ok {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("not a Binding object: %#v", obj))
	}
	if b.Name != name {
		return nil, apierrors.NewBadRequest("name in URL does not match name in Binding object")
	}
	if errs := validateTarget(b); len(errs) > 0 {
		return nil, errs.ToAggregate() // as kube-apiserver: a 500 without a reason
	}
	if validate != nil {
		if err := validate(ctx, b.DeepCopyObject()); err != nil {
			return nil, err
		}
	}
	if err := r.assign(ctx, b, dryrun.IsDryRun(options.DryRun)); err != nil {
		return nil, err
	}
	return &metav1.Status{Status: metav1.StatusSuccess}, nil
}

func validateTarget(b *corev1.Binding) field.ErrorList {
	var errs field.ErrorList
	if kind := b.Target.Kind; kind != "" && kind != "Node" {
		errs = append(errs, field.NotSupported(field.NewPath("target", "kind"), kind, []string{"Node", "<empty>"}))
	}
	if b.Target.Name == "" {
		errs = append(errs, field.Required(field.NewPath("target", "name"), ""))
	}
	return errs
}

// assign writes the node into the pod. The metadata of a Binding may have the UID and the
// resource version of the pod that the scheduler saw, and what to add to the pod.
func (r *bindingREST) assign(ctx context.Context, b *corev1.Binding, dryRun bool) error {
	key, err := r.pods.KeyFunc(ctx, b.Name)
	if err != nil {
		return err
	}
	conditions := &storage.Preconditions{}
	if b.UID != "" {
		conditions.UID = &b.UID
	}
	if b.ResourceVersion != "" {
		conditions.ResourceVersion = &b.ResourceVersion
	}
	var refused error
	err = r.pods.Storage.GuaranteedUpdate(ctx, key, &corev1.Pod{}, false, conditions, storage.SimpleUpdate(func(obj runtime.Object) (runtime.Object, error) {
		p, ok := obj.(*corev1.Pod)
		if !ok {
			return nil, fmt.Errorf("unexpected object: %#v", obj)
		}
		if refused = bindable(p); refused != nil {
			return nil, refused
		}
		p.Spec.NodeName = b.Target.Name
		p.Annotations = merged(p.Annotations, b.Annotations)
		p.Labels = merged(p.Labels, b.Labels)
		setPodCondition(p, corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionTrue})
		return p, nil
	}), dryRun, nil)
	pods := r.pods.DefaultQualifiedResource
	switch {
	case err == nil:
		return nil
	case refused != nil && errors.Is(err, refused):
		pods.Resource += "/binding"
		return apierrors.NewConflict(pods, b.Name, refused)
	}
	err = storageerr.InterpretGetError(err, pods, b.Name)
	return storageerr.InterpretUpdateError(err, pods, b.Name)
}

// bindable returns why a pod cannot be assigned to a node.
func bindable(p *corev1.Pod) error {
	switch {
	case p.DeletionTimestamp != nil:
		return fmt.Errorf("pod %s is being deleted, cannot be assigned to a host", p.Name)
	case p.Spec.NodeName != "":
		return fmt.Errorf("pod %v is already assigned to node %q", p.Name, p.Spec.NodeName)
	case len(p.Spec.SchedulingGates) > 0:
		return fmt.Errorf("pod %v has non-empty .spec.schedulingGates", p.Name)
	}
	return nil
}

func merged(to, from map[string]string) map[string]string {
	if len(from) > 0 && to == nil {
		to = map[string]string{}
	}
	for name, value := range from {
		to[name] = value
	}
	return to
}

// bindings are the older resource by which a pod is assigned to a node. Pods returns the
// store of pods.
func bindings(pods func() *genericregistry.Store) Resource {
	return Resource{
		Version: "v1", Plural: "bindings", Singular: "binding", Kind: "Binding", Namespaced: true,
		New: empty[corev1.Binding], Virtual: legacyBindingREST{pods},
	}
}

// legacyBindingREST creates bindings by their own name.
type legacyBindingREST struct{ pods func() *genericregistry.Store }

var (
	_ rest.Creater              = legacyBindingREST{}
	_ rest.Scoper               = legacyBindingREST{}
	_ rest.SingularNameProvider = legacyBindingREST{}
)

// New implements rest.Storage.
func (legacyBindingREST) New() runtime.Object { return &corev1.Binding{} }

// Destroy implements rest.Storage.
func (legacyBindingREST) Destroy() {}

// NamespaceScoped implements rest.Scoper.
func (legacyBindingREST) NamespaceScoped() bool { return true }

// GetSingularName implements rest.SingularNameProvider.
func (legacyBindingREST) GetSingularName() string { return "binding" }

// Create implements rest.Creater.
func (r legacyBindingREST) Create(ctx context.Context, obj runtime.Object, validate rest.ValidateObjectFunc, options *metav1.CreateOptions) (runtime.Object, error) {
	return (&bindingREST{r.pods()}).Create(ctx, kinds.Metadata(obj).GetName(), obj, validate, options)
}
