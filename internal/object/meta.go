package object

import (
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Getters read what they need from the bytes and remember nothing, so that
// objects may be shared without locks. The first setter decodes the metadata;
// from then on it is what counts. Setters that change nothing do nothing: the
// library clears fields of every object, also empty ones.

// GetObjectMeta implements metav1.ObjectMetaAccessor.
func (o *Object) GetObjectMeta() metav1.Object { return o }

// decodedMeta returns the metadata, which the caller must not change. Its
// resourceVersion is not to be relied on.
func (o *Object) decodedMeta() *metav1.ObjectMeta {
	if o.meta != nil {
		return o.meta
	}
	return decodeMeta(o.raw, int(o.at[atMetadata]))
}

// change returns the metadata, to be changed.
func (o *Object) change() *metav1.ObjectMeta {
	o.meta = o.decodedMeta()
	return o.meta
}

// metaMember returns the JSON of a field of the metadata as it is in raw.
func (o *Object) metaMember(name string) []byte {
	at := int(o.at[atMetadata])
	if at <= 0 || o.raw[at] != '{' {
		return nil
	}
	c := within(o.raw, at)
	if from := int(o.at[atName]); from > 0 && name > "name" {
		// The managed fields, longer than all others together, come before.
		c.next, c.begun = valueEnd(o.raw, from), true
	}
	return find(c, name)
}

// GetNamespace implements metav1.Object.
func (o *Object) GetNamespace() string {
	if o.meta != nil {
		return o.meta.Namespace
	}
	return o.text(atNamespace)
}

// SetNamespace implements metav1.Object.
func (o *Object) SetNamespace(namespace string) {
	if namespace != o.GetNamespace() {
		o.change().Namespace = namespace
	}
}

// GetName implements metav1.Object.
func (o *Object) GetName() string {
	if o.meta != nil {
		return o.meta.Name
	}
	return o.text(atName)
}

// SetName implements metav1.Object.
func (o *Object) SetName(name string) {
	if name != o.GetName() {
		o.change().Name = name
	}
}

// GetGenerateName implements metav1.Object.
func (o *Object) GetGenerateName() string {
	if o.meta != nil {
		return o.meta.GenerateName
	}
	return textOf(o.metaMember("generateName"))
}

// SetGenerateName implements metav1.Object.
func (o *Object) SetGenerateName(name string) {
	if name != o.GetGenerateName() {
		o.change().GenerateName = name
	}
}

// GetUID implements metav1.Object.
func (o *Object) GetUID() types.UID {
	if o.meta != nil {
		return o.meta.UID
	}
	return types.UID(o.text(atUID))
}

// SetUID implements metav1.Object.
func (o *Object) SetUID(uid types.UID) {
	if uid != o.GetUID() {
		o.change().UID = uid
	}
}

// GetResourceVersion implements metav1.Object.
func (o *Object) GetResourceVersion() string {
	if o.versioned {
		return o.resourceVersion
	}
	return o.text(atResourceVersion)
}

// SetResourceVersion implements metav1.Object. It neither decodes nor copies.
func (o *Object) SetResourceVersion(version string) {
	o.resourceVersion, o.versioned = version, true
	if version == o.text(atResourceVersion) {
		o.resourceVersion, o.versioned = "", false
	}
}

// GetGeneration implements metav1.Object.
func (o *Object) GetGeneration() int64 {
	if o.meta != nil {
		return o.meta.Generation
	}
	at := int(o.at[atGeneration])
	if at <= 0 {
		return 0
	}
	n, _ := numberOf(o.raw[at:valueEnd(o.raw, at)])
	return n
}

// SetGeneration implements metav1.Object.
func (o *Object) SetGeneration(generation int64) {
	if generation != o.GetGeneration() {
		o.change().Generation = generation
	}
}

// GetSelfLink implements metav1.Object.
func (o *Object) GetSelfLink() string {
	if o.meta != nil {
		return o.meta.SelfLink
	}
	return textOf(o.metaMember("selfLink"))
}

// SetSelfLink implements metav1.Object.
func (o *Object) SetSelfLink(selfLink string) {
	if selfLink != o.GetSelfLink() {
		o.change().SelfLink = selfLink
	}
}

// GetCreationTimestamp implements metav1.Object.
func (o *Object) GetCreationTimestamp() metav1.Time {
	if o.meta != nil {
		return o.meta.CreationTimestamp
	}
	if t := timeOf(o.metaMember("creationTimestamp")); t != nil {
		return *t
	}
	return metav1.Time{}
}

// SetCreationTimestamp implements metav1.Object.
func (o *Object) SetCreationTimestamp(timestamp metav1.Time) {
	if current := o.GetCreationTimestamp(); !timestamp.Equal(&current) {
		o.change().CreationTimestamp = timestamp
	}
}

// GetDeletionTimestamp implements metav1.Object.
func (o *Object) GetDeletionTimestamp() *metav1.Time {
	if o.meta != nil {
		return o.meta.DeletionTimestamp
	}
	at := int(o.at[atDeletion])
	if at <= 0 {
		return nil
	}
	return timeOf(o.raw[at:valueEnd(o.raw, at)])
}

// SetDeletionTimestamp implements metav1.Object.
func (o *Object) SetDeletionTimestamp(timestamp *metav1.Time) {
	if timestamp != nil || o.GetDeletionTimestamp() != nil {
		o.change().DeletionTimestamp = timestamp
	}
}

// GetDeletionGracePeriodSeconds implements metav1.Object.
func (o *Object) GetDeletionGracePeriodSeconds() *int64 {
	if o.meta != nil {
		return o.meta.DeletionGracePeriodSeconds
	}
	if n, ok := numberOf(o.metaMember("deletionGracePeriodSeconds")); ok {
		return &n
	}
	return nil
}

// SetDeletionGracePeriodSeconds implements metav1.Object.
func (o *Object) SetDeletionGracePeriodSeconds(seconds *int64) {
	if seconds != nil || o.GetDeletionGracePeriodSeconds() != nil {
		o.change().DeletionGracePeriodSeconds = seconds
	}
}

// GetLabels implements metav1.Object. To change a label, change the map and
// set it.
func (o *Object) GetLabels() map[string]string {
	if o.meta != nil {
		return o.meta.Labels
	}
	at := int(o.at[atLabels])
	if at <= 0 {
		return nil
	}
	return stringsByName(o.raw[at:valueEnd(o.raw, at)])
}

// SetLabels implements metav1.Object.
func (o *Object) SetLabels(labels map[string]string) {
	if len(labels) > 0 || len(o.GetLabels()) > 0 {
		o.change().Labels = labels
	}
}

// GetAnnotations implements metav1.Object. To change an annotation, change the
// map and set it.
func (o *Object) GetAnnotations() map[string]string {
	if o.meta != nil {
		return o.meta.Annotations
	}
	return stringsByName(o.metaMember("annotations"))
}

// SetAnnotations implements metav1.Object.
func (o *Object) SetAnnotations(annotations map[string]string) {
	if len(annotations) > 0 || len(o.GetAnnotations()) > 0 {
		o.change().Annotations = annotations
	}
}

// GetFinalizers implements metav1.Object.
func (o *Object) GetFinalizers() []string {
	if o.meta != nil {
		return o.meta.Finalizers
	}
	return stringsOf(o.metaMember("finalizers"))
}

// SetFinalizers implements metav1.Object.
func (o *Object) SetFinalizers(finalizers []string) {
	if len(finalizers) > 0 || len(o.GetFinalizers()) > 0 {
		o.change().Finalizers = finalizers
	}
}

// GetOwnerReferences implements metav1.Object.
func (o *Object) GetOwnerReferences() []metav1.OwnerReference {
	if o.meta != nil {
		return o.meta.OwnerReferences
	}
	return ownersOf(o.metaMember("ownerReferences"))
}

// SetOwnerReferences implements metav1.Object.
func (o *Object) SetOwnerReferences(references []metav1.OwnerReference) {
	if len(references) > 0 || len(o.GetOwnerReferences()) > 0 {
		o.change().OwnerReferences = references
	}
}

// GetManagedFields implements metav1.Object.
func (o *Object) GetManagedFields() []metav1.ManagedFieldsEntry {
	if o.withheld {
		return nil
	}
	if o.meta != nil {
		return o.meta.ManagedFields
	}
	return managedFieldsOf(o.metaMember("managedFields"))
}

// SetManagedFields implements metav1.Object.
func (o *Object) SetManagedFields(entries []metav1.ManagedFieldsEntry) {
	if len(entries) > 0 || o.meta != nil || o.metaMember("managedFields") != nil {
		o.change().ManagedFields = entries
	}
}

// WithoutManagedFields returns a copy whose GetManagedFields is empty. Its JSON
// has them.
func (o *Object) WithoutManagedFields() *Object {
	c := *o
	c.withheld = true
	return &c
}

// Metadata returns the JSON of an object that has the metadata alone, without managed fields.
func (o *Object) Metadata() []byte {
	m := *o.decodedMeta()
	m.ManagedFields = nil
	b := append(make([]byte, 0, 512), '{')
	b = append(b, keyMetadata...)
	return append(appendMeta(b, &m, o.GetResourceVersion()), '}')
}

// ReadMetadata returns the JSON of a field of metadata as it was read, whatever
// has been set since; nil if there was none.
func (o *Object) ReadMetadata(name string) []byte { return o.metaMember(name) }

// RestoreManagedFields sets the managed fields to what was read.
func (o *Object) RestoreManagedFields() {
	o.SetManagedFields(managedFieldsOf(o.metaMember("managedFields")))
}

// numberOf returns the integer that is written.
func numberOf(value []byte) (int64, bool) {
	n, err := strconv.ParseInt(string(value), 10, 64)
	return n, err == nil
}
