package request

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/espalier-dev/espalier/internal/object"
)

const (
	// maxGenerated is how many bytes of generateName API servers use.
	maxGenerated = 58
	// suffix stands for the random end of a generated name.
	suffix = "x2b4d"
	// placeholder stands for a uid and a resourceVersion that a server would set.
	placeholder = "1"
)

// Create sets the metadata that API servers set on a new object, and prepares it. Namespace is
// the one that the request names.
func (r *Resource) Create(o *object.Object, namespace string) {
	r.setNamespace(o, namespace)
	if o.GetName() == "" && o.GetGenerateName() != "" {
		base := o.GetGenerateName()
		o.SetName(base[:min(len(base), maxGenerated)] + suffix)
	}
	o.SetDeletionTimestamp(nil)
	o.SetDeletionGracePeriodSeconds(nil)
	o.SetCreationTimestamp(metav1.Now())
	o.SetUID(types.UID(placeholder))
	r.PrepareCreate(o)
}

// Update sets the metadata that API servers keep when an object is updated, and prepares it.
// Manifests rarely have a resourceVersion: kubectl sends them as patches, and the server
// completes them.
func (r *Resource) Update(o, old *object.Object, target Target, namespace string) {
	r.setNamespace(o, namespace)
	r.setNamespace(old, namespace)
	if old.GetResourceVersion() == "" {
		old.SetResourceVersion(placeholder)
	}
	if o.GetResourceVersion() == "" {
		o.SetResourceVersion(old.GetResourceVersion())
	}
	o.SetGeneration(old.GetGeneration())
	r.PrepareUpdate(o, old, target)
	if o.GetUID() == "" {
		o.SetUID(old.GetUID())
	}
	if created := old.GetCreationTimestamp(); !created.IsZero() {
		o.SetCreationTimestamp(created)
	}
	if deleted := old.GetDeletionTimestamp(); !deleted.IsZero() {
		o.SetDeletionTimestamp(deleted)
	}
	if grace := old.GetDeletionGracePeriodSeconds(); grace != nil && o.GetDeletionGracePeriodSeconds() == nil {
		o.SetDeletionGracePeriodSeconds(grace)
	}
}

// setNamespace fills in the namespace of a request, or removes that of an object of cluster
// scope.
func (r *Resource) setNamespace(o *object.Object, namespace string) {
	if !r.Namespaced {
		namespace = ""
	} else if o.GetNamespace() != "" {
		return
	}
	if o.GetNamespace() != namespace {
		o.SetNamespace(namespace)
	}
}
