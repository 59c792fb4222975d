package builtin

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage"
	storageerr "k8s.io/apiserver/pkg/storage/errors"
	"k8s.io/apiserver/pkg/util/dryrun"

	"github.com/espalier-dev/espalier/crd/rules"
)

// namespaces are the namespaces. A delete marks a namespace; it is removed when
// spec.finalizers is empty. The namespace controller empties the namespace and removes
// the finalizer through the subresource finalize.
func namespaces() Resource {
	return Resource{
		Version: "v1", Plural: "namespaces", Singular: "namespace", Kind: "Namespace", ShortNames: []string{"ns"},
		New:      empty[corev1.Namespace],
		NewList:  empty[corev1.NamespaceList],
		Strategy: Ruled(&rules.Namespace, Strategy{Unconditional: true, Reset: ResetFields("v1", "status")}),
		Columns: []metav1.TableColumnDefinition{
			nameColumn,
			{Name: "Status", Type: "string", Description: "The status of the namespace"},
			ageColumn,
		},
		Row: row(func(o *corev1.Namespace) []any {
			return []any{o.Name, string(o.Status.Phase), created(o)}
		}),
		Fields: func(obj runtime.Object) fields.Set {
			o := obj.(*corev1.Namespace)
			return fields.Set{"status.phase": string(o.Status.Phase), "name": o.Name}
		},
		Wrap: newNamespaceStorage,
		Subresources: map[string]func(*genericregistry.Store) rest.Storage{
			"status": Part(PartRuled(rules.Namespace.Status, Strategy{Unconditional: true, Reset: ResetFields("v1", "spec")})),
			"finalize": Replaced(Strategy{
				Update: func(_ context.Context, obj, old runtime.Object) {
					obj.(*corev1.Namespace).Status = old.(*corev1.Namespace).Status
					rules.KeepMetadata(obj.(*corev1.Namespace), old.(*corev1.Namespace))
				},
				ValidateUpdate: func(_ context.Context, obj, _ runtime.Object) field.ErrorList {
					return rules.ValidateNamespaceFinalizers(obj.(*corev1.Namespace))
				},
				Unconditional: true,
				Reset:         ResetFields("v1", "status"),
			}),
		},
	}
}

// namespaceStorage is the resource itself. It has no deletecollection, as it has
// none in Kubernetes.
type namespaceStorage struct {
	namespaceVerbs // of store
	store          *genericregistry.Store
}

// namespaceVerbs are what namespaces have of a store as it is. A namespace that cannot be
// decoded is deleted by the store alone: what is in it stays.
type namespaceVerbs interface {
	rest.Storage
	rest.Lister
	rest.Watcher
	rest.CreaterUpdater
	rest.Patcher
	rest.ResetFieldsStrategy
	rest.CorruptObjectDeleterProvider
}

var _ rest.GracefulDeleter = namespaceStorage{}

// newNamespaceStorage keeps a namespace marked for deletion while it has finalizers in
// its spec or metadata. Any endpoint may remove the last one.
func newNamespaceStorage(s *genericregistry.Store) rest.Storage {
	s.ShouldDeleteDuringUpdate = func(ctx context.Context, key string, obj, existing runtime.Object) bool {
		return len(obj.(*corev1.Namespace).Spec.Finalizers) == 0 && genericregistry.ShouldDeleteDuringUpdate(ctx, key, obj, existing)
	}
	return namespaceStorage{s, s}
}

// Delete marks a namespace for deletion. If it is already marked, Delete removes it
// once it has no finalizers, and otherwise returns it unchanged.
func (s namespaceStorage) Delete(ctx context.Context, name string, admit rest.ValidateObjectFunc, options *metav1.DeleteOptions) (runtime.Object, bool, error) {
	obj, err := s.store.Get(ctx, name, &metav1.GetOptions{})
	if err != nil {
		return nil, false, err
	}
	o := obj.(*corev1.Namespace)
	if options == nil {
		options = metav1.NewDeleteOptions(0)
	}
	if err := s.precondition(options, o); err != nil {
		return nil, false, err
	}
	switch {
	case o.DeletionTimestamp.IsZero():
		marked, err := s.mark(ctx, name, admit, options)
		return marked, false, err
	case len(o.Spec.Finalizers) > 0:
		return o, false, nil
	}
	return s.store.Delete(ctx, name, admit, options)
}

// precondition checks the preconditions of a delete request, and adds the UID, so that
// no other namespace of the same name is deleted.
func (s namespaceStorage) precondition(options *metav1.DeleteOptions, o *corev1.Namespace) error {
	if options.Preconditions == nil {
		options.Preconditions = &metav1.Preconditions{}
	}
	p := options.Preconditions
	if p.UID == nil {
		p.UID = &o.UID
	} else if *p.UID != o.UID {
		return apierrors.NewConflict(s.store.DefaultQualifiedResource, o.Name,
			fmt.Errorf("Precondition failed: UID in precondition: %v, UID in object meta: %v", *p.UID, o.UID)) //nolint:revive,staticcheck // clients know the text
	}
	if p.ResourceVersion != nil && *p.ResourceVersion != o.ResourceVersion {
		return apierrors.NewConflict(s.store.DefaultQualifiedResource, o.Name,
			fmt.Errorf("Precondition failed: ResourceVersion in precondition: %v, ResourceVersion in object meta: %v", *p.ResourceVersion, o.ResourceVersion)) //nolint:revive,staticcheck // clients know the text
	}
	return nil
}

// mark marks a namespace for deletion.
func (s namespaceStorage) mark(ctx context.Context, name string, admit rest.ValidateObjectFunc, options *metav1.DeleteOptions) (runtime.Object, error) {
	key, err := s.store.KeyFunc(ctx, name)
	if err != nil {
		return nil, err
	}
	out := s.store.NewFunc()
	conditions := storage.Preconditions{UID: options.Preconditions.UID, ResourceVersion: options.Preconditions.ResourceVersion}
	err = s.store.Storage.GuaranteedUpdate(ctx, key, out, false, &conditions, storage.SimpleUpdate(func(existing runtime.Object) (runtime.Object, error) {
		o := existing.(*corev1.Namespace)
		if err := admit(ctx, o); err != nil {
			return nil, err
		}
		terminate(o, options)
		return o, nil
	}), dryrun.IsDryRun(options.DryRun), nil)
	if err == nil {
		return out, nil
	}
	err = storageerr.InterpretGetError(err, s.store.DefaultQualifiedResource, name)
	err = storageerr.InterpretUpdateError(err, s.store.DefaultQualifiedResource, name)
	if status := apierrors.APIStatus(nil); !errors.As(err, &status) {
		err = apierrors.NewInternalError(err)
	}
	return nil, err
}

// terminate marks a namespace for deletion, with the finalizers that the options
// ask for.
func terminate(o *corev1.Namespace, options *metav1.DeleteOptions) {
	if o.DeletionTimestamp.IsZero() {
		now := metav1.Now()
		o.DeletionTimestamp = &now
	}
	o.Status.Phase = corev1.NamespaceTerminating
	orphan, foreground := options.OrphanDependents, (*bool)(nil) //nolint:staticcheck // deprecated, and clients still send it
	switch {
	case orphan != nil:
		kept := !*orphan
		foreground = &kept
	case options.PropagationPolicy != nil:
		isOrphan, isForeground := *options.PropagationPolicy == metav1.DeletePropagationOrphan, *options.PropagationPolicy == metav1.DeletePropagationForeground
		orphan, foreground = &isOrphan, &isForeground
	}
	o.Finalizers = withFinalizer(o.Finalizers, metav1.FinalizerOrphanDependents, orphan)
	o.Finalizers = withFinalizer(o.Finalizers, metav1.FinalizerDeleteDependents, foreground)
}

// withFinalizer adds or removes a finalizer; it stays as it is if wanted is nil.
func withFinalizer(list []string, name string, wanted *bool) []string {
	if wanted == nil || *wanted == slices.Contains(list, name) {
		return list
	}
	if *wanted {
		return append(slices.Clip(list), name)
	}
	return slices.DeleteFunc(slices.Clone(list), func(f string) bool { return f == name })
}
