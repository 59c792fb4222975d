package request

import (
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/espalier-dev/espalier/internal/object"
)

const (
	// maxGenerated is how many bytes of generateName API servers use.
	maxGenerated = 58
	// suffix stands for the random end of a generated name.
	suffix = "x2b4d"
	// placeholder stands for a resourceVersion that a server would set.
	placeholder = "1"
)

// Create sets the metadata that API servers set on a new object, and prepares it. Namespace is
// the one that the request names. It returns warnings.
func (r *Resource) Create(o *object.Object, namespace string) []string {
	warnings := NewMetadata(o, r.Namespaced, namespace)
	r.PrepareCreate(o)
	return warnings
}

// NewMetadata sets the metadata that API servers set on a new object of any kind. It returns
// warnings.
func NewMetadata(o metav1.Object, namespaced bool, namespace string) []string {
	warnings := dedupOwners(o)
	o.SetManagedFields(nil) // the field manager writes them anew
	setNamespace(o, namespaced, namespace)
	if o.GetName() == "" && o.GetGenerateName() != "" {
		base := o.GetGenerateName()
		o.SetName(base[:min(len(base), maxGenerated)] + suffix)
	}
	o.SetDeletionTimestamp(nil)
	o.SetDeletionGracePeriodSeconds(nil)
	// Only the server knows uid and creationTimestamp; errors that show the object leave them out. A
	// timestamp that cannot be parsed reads as zero, and setting zero would not replace it.
	o.SetCreationTimestamp(metav1.Now())
	o.SetCreationTimestamp(metav1.Time{})
	o.SetUID("")
	return warnings
}

// Update sets the metadata that API servers keep when an object is updated, and prepares it.
// Manifests rarely have a resourceVersion: kubectl sends them as patches, and the server
// completes them. It returns warnings.
func (r *Resource) Update(o, old *object.Object, target Target, namespace string) []string {
	warnings := ChangedMetadata(o, old, r.Namespaced, namespace)
	r.PrepareUpdate(o, old, target)
	KeepMetadata(o, old)
	return warnings
}

// ChangedMetadata completes the metadata of an update before the object is prepared. It returns
// warnings.
func ChangedMetadata(o, old metav1.Object, namespaced bool, namespace string) []string {
	warnings := dedupOwners(o)
	o.SetManagedFields(nil)
	old.SetManagedFields(nil)
	setNamespace(o, namespaced, namespace)
	setNamespace(old, namespaced, namespace)
	if old.GetResourceVersion() == "" {
		old.SetResourceVersion(placeholder)
	}
	if o.GetResourceVersion() == "" {
		o.SetResourceVersion(old.GetResourceVersion())
	}
	if old.GetUID() == "" {
		old.SetUID(o.GetUID())
	}
	o.SetGeneration(old.GetGeneration())
	return warnings
}

// KeepMetadata restores the metadata that an update may leave out, after the object is prepared.
func KeepMetadata(o, old metav1.Object) {
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

// UpdateErrors returns the errors that the registry of an API server finds in updated metadata, before it
// calls a strategy. Validate returns many of them too.
func (r *Resource) UpdateErrors(o, old *object.Object) field.ErrorList {
	return UpdateErrors(o, old, r.Namespaced)
}

// UpdateErrors is the same for objects of any kind.
func UpdateErrors(o, old metav1.Object, namespaced bool) field.ErrorList {
	path := field.NewPath("metadata")
	errs := validation.ValidateObjectMetaAccessor(o, namespaced, pathSegment, path)
	return append(errs, validation.ValidateObjectMetaAccessorUpdate(o, old, path)...)
}

// GenerateNameErrors returns the errors of metadata.generateName. Servers validate it in
// changed objects of some built-in kinds, though it has no effect there.
func GenerateNameErrors(o metav1.Object, check func(name string, prefix bool) []string) field.ErrorList {
	prefix := o.GetGenerateName()
	if prefix == "" {
		return nil
	}
	var errs field.ErrorList
	for _, text := range check(prefix, true) {
		errs = append(errs, field.Invalid(field.NewPath("metadata", "generateName"), prefix, text))
	}
	return errs
}

func pathSegment(name string, prefix bool) []string {
	if prefix {
		return content.IsPathSegmentPrefix(name)
	}
	return content.IsPathSegmentName(name)
}

// SameUID reports whether an update is of the object that is stored: a uid is a precondition. Objects
// in files often have none.
func SameUID(o, old metav1.Object) bool {
	return o.GetUID() == "" || old.GetUID() == "" || o.GetUID() == old.GetUID()
}

// StoredResourceVersion reports whether an object has a resourceVersion that storage takes for
// one: it refuses to create such an object.
func StoredResourceVersion(o metav1.Object) bool {
	version, err := strconv.ParseUint(o.GetResourceVersion(), 10, 64)
	return err == nil && version != 0
}

// dedupOwners removes owner references that are there twice, and warns of them.
func dedupOwners(o metav1.Object) []string {
	refs := o.GetOwnerReferences()
	var kept []metav1.OwnerReference
	var twice []string
	seen := make(map[ownerKey]bool, len(refs))
	for _, ref := range refs {
		if key := keyOf(ref); !seen[key] {
			seen[key] = true
			kept = append(kept, ref)
			continue
		}
		twice = append(twice, string(ref.UID))
	}
	if twice == nil {
		return nil
	}
	o.SetOwnerReferences(kept)
	return []string{".metadata.ownerReferences contains duplicate entries; API server dedups owner references in 1.20+, and may reject such requests " +
		"as early as 1.24; please fix your requests; duplicate UID(s) observed: " + strings.Join(twice, ", ")}
}

// setNamespace fills in the namespace of a request, or removes that of an object of cluster
// scope.
func setNamespace(o metav1.Object, namespaced bool, namespace string) {
	if !namespaced {
		namespace = ""
	} else if o.GetNamespace() != "" {
		return
	}
	if o.GetNamespace() != namespace {
		o.SetNamespace(namespace)
	}
}

// ownerKey is equal for references that are.
type ownerKey struct {
	metav1.OwnerReference        // without pointers
	controller, blocks    string // true, false or neither
}

func keyOf(ref metav1.OwnerReference) ownerKey {
	key := ownerKey{ref, textOf(ref.Controller), textOf(ref.BlockOwnerDeletion)}
	key.Controller, key.BlockOwnerDeletion = nil, nil
	return key
}

func textOf(b *bool) string {
	if b == nil {
		return ""
	}
	return strconv.FormatBool(*b)
}
