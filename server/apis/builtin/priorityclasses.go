package builtin

import (
	"context"
	"errors"
	"slices"

	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
)

// systemPriorityClasses are those that the server creates. Pods that a cluster needs to
// work name them.
var systemPriorityClasses = []string{"system-cluster-critical", "system-node-critical"}

// addPriorityClasses adds to priority classes what no file says: a client cannot delete
// those of the system.
func addPriorityClasses(r *Resource) {
	r.Wrap = func(s *genericregistry.Store) rest.Storage { return priorityClasses{s} }
}

type priorityClasses struct{ *genericregistry.Store }

// Delete implements rest.GracefulDeleter.
func (s priorityClasses) Delete(ctx context.Context, name string, admit rest.ValidateObjectFunc, options *metav1.DeleteOptions) (runtime.Object, bool, error) {
	if slices.Contains(systemPriorityClasses, name) {
		return nil, false, apierrors.NewForbidden(schedulingv1.Resource("priorityclasses"), name, errors.New("this is a system priority class and cannot be deleted"))
	}
	return s.Store.Delete(ctx, name, admit, options)
}
