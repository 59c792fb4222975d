package customresourcedefinition

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage"
	storageerr "k8s.io/apiserver/pkg/storage/errors"
	"k8s.io/apiserver/pkg/util/dryrun"

	"github.com/espalier-dev/espalier/internal/object"
	"github.com/espalier-dev/espalier/server/controllers/crdcontroller"
	"github.com/espalier-dev/espalier/server/endpoints"
)

// main is the resource itself.
type main struct {
	*genericregistry.Store
	guard   *guard // nil if CRDs with instances may be deleted
	others  func(context.Context, schema.GroupResource) error
	changes *changeGuard // nil if changes are not checked against stored objects
}

var (
	_ rest.StandardStorage     = main{}
	_ rest.ResetFieldsStrategy = main{}
)

// New implements rest.Storage.
func (main) New() runtime.Object { return blankObject() }

// Update implements rest.Updater.
func (m main) Update(ctx context.Context, name string, change rest.UpdatedObjectInfo, create rest.ValidateObjectFunc, update rest.ValidateObjectUpdateFunc, forceCreate bool, options *metav1.UpdateOptions) (runtime.Object, bool, error) {
	return m.Store.Update(ctx, name, reporting(change, options), create, m.changes.checking(update, options), forceCreate, options)
}

// deletable returns the error if something else forbids to delete a CRD.
func (m main) deletable(ctx context.Context, name string) error {
	if m.others == nil {
		return nil
	}
	plural, group, _ := strings.Cut(name, ".")
	if err := m.others(ctx, schema.GroupResource{Group: group, Resource: plural}); err != nil {
		return apierrors.NewConflict(groupResource, name, err)
	}
	return nil
}

// Delete marks a CRD for deletion, with the finalizer that keeps it until its objects
// are deleted. If it is already marked, Delete removes it once it has no finalizers.
func (m main) Delete(ctx context.Context, name string, admit rest.ValidateObjectFunc, options *metav1.DeleteOptions) (runtime.Object, bool, error) {
	obj, err := m.Get(ctx, name, &metav1.GetOptions{})
	if err != nil {
		return nil, false, err
	}
	o := obj.(*object.Object)
	if err := m.deletable(ctx, name); err != nil {
		return nil, false, err
	}
	if options == nil {
		options = metav1.NewDeleteOptions(0)
	}
	if err := precondition(options, o); err != nil {
		return nil, false, err
	}
	if o.GetDeletionTimestamp() != nil {
		return m.Store.Delete(ctx, name, admit, options)
	}
	key, err := m.KeyFunc(ctx, name)
	if err != nil {
		return nil, false, err
	}
	out := m.NewFunc()
	conditions := storage.Preconditions{UID: options.Preconditions.UID, ResourceVersion: options.Preconditions.ResourceVersion}
	err = m.Storage.GuaranteedUpdate(ctx, key, out, false, &conditions, storage.SimpleUpdate(func(existing runtime.Object) (runtime.Object, error) {
		if err := admit(ctx, existing); err != nil {
			return nil, err
		}
		if err := m.guard.allows(ctx, existing.(*object.Object)); err != nil {
			return nil, err
		}
		return terminating(existing.(*object.Object).DeepCopy())
	}), dryrun.IsDryRun(options.DryRun), nil)
	if err != nil {
		err = storageerr.InterpretGetError(err, groupResource, name)
		err = storageerr.InterpretUpdateError(err, groupResource, name)
		if _, ok := err.(apierrors.APIStatus); !ok {
			err = apierrors.NewInternalError(err)
		}
		return nil, false, err
	}
	return out, false, nil
}

// precondition checks the preconditions of a delete request, and adds the UID, so that
// no other CRD of the same name is deleted.
func precondition(options *metav1.DeleteOptions, o *object.Object) error {
	if options.Preconditions == nil {
		options.Preconditions = &metav1.Preconditions{}
	}
	p := options.Preconditions
	if p.UID == nil {
		uid := o.GetUID()
		p.UID = &uid
	} else if *p.UID != o.GetUID() {
		return apierrors.NewConflict(groupResource, o.GetName(),
			fmt.Errorf("precondition failed: UID in precondition: %v, UID in object meta: %v", *p.UID, o.GetUID()))
	}
	if p.ResourceVersion != nil && *p.ResourceVersion != o.GetResourceVersion() {
		return apierrors.NewConflict(groupResource, o.GetName(),
			fmt.Errorf("precondition failed: ResourceVersion in precondition: %v, ResourceVersion in object meta: %v", *p.ResourceVersion, o.GetResourceVersion()))
	}
	return nil
}

// terminating marks a CRD for deletion.
func terminating(o *object.Object) (runtime.Object, error) {
	if o.GetDeletionTimestamp() == nil {
		now := metav1.Now()
		o.SetDeletionTimestamp(&now)
	}
	if !hasFinalizer(o) {
		o.SetFinalizers(append(slices.Clip(o.GetFinalizers()), Finalizer))
	}
	status, err := crdcontroller.StatusOf(o)
	if err != nil {
		return nil, err
	}
	crdcontroller.SetCondition(status, v1.CustomResourceDefinitionCondition{
		Type: v1.Terminating, Status: v1.ConditionTrue, Reason: "InstanceDeletionPending",
		Message: "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon",
	}, o.GetGeneration(), time.Now())
	crdcontroller.SetStatus(o, status)
	return o, nil
}

func hasFinalizer(o *object.Object) bool { return slices.Contains(o.GetFinalizers(), Finalizer) }

// page is how many CRDs are deleted between two lists.
const page = 500

// DeleteCollection deletes CRDs like Delete. That of the store would not add the
// finalizer, and so would leave the objects in etcd.
func (m main) DeleteCollection(ctx context.Context, admit rest.ValidateObjectFunc, options *metav1.DeleteOptions, list *internalversion.ListOptions) (runtime.Object, error) {
	if list == nil {
		list = &internalversion.ListOptions{}
	}
	list = list.DeepCopy()
	limited := list.Limit > 0
	if !limited {
		list.Limit = page
	}
	if options == nil {
		options = metav1.NewDeleteOptions(0)
	}
	var all *object.List
	for {
		obj, err := m.List(ctx, list)
		if err != nil {
			return nil, err
		}
		found := obj.(*object.List)
		for i := range found.Items {
			if _, _, err := m.Delete(ctx, found.Items[i].GetName(), admit, options.DeepCopy()); err != nil && !apierrors.IsNotFound(err) {
				return nil, err
			}
		}
		if all == nil {
			all = found
		} else {
			all.Items = append(all.Items, found.Items...)
		}
		if limited || found.Continue == "" {
			if !limited {
				all.Continue, all.RemainingItemCount = "", nil
			}
			return all, nil
		}
		list.Continue = found.Continue
		list.ResourceVersion, list.ResourceVersionMatch = "", ""
	}
}

// statusStorage is the subresource status.
type statusStorage struct{ endpoints.Part }

// New implements rest.Storage.
func (s statusStorage) New() runtime.Object { return blankObject() }

// Update implements rest.Updater.
func (s statusStorage) Update(ctx context.Context, name string, change rest.UpdatedObjectInfo, create rest.ValidateObjectFunc, update rest.ValidateObjectUpdateFunc, forceCreate bool, options *metav1.UpdateOptions) (runtime.Object, bool, error) {
	return s.Part.Update(ctx, name, reporting(change, options), create, update, forceCreate, options)
}
