package quota

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/quota/v1/generic"
)

// StorageBytes is the name of the bytes that the objects of a namespace take in
// etcd.
const StorageBytes corev1.ResourceName = "espalier.dev/storage-bytes"

// countPrefix begins the names of numbers of objects.
const countPrefix = "count/"

// short are the names that resources of the core group have besides count/….
var short = map[schema.GroupResource]corev1.ResourceName{
	{Resource: "configmaps"}:             corev1.ResourceConfigMaps,
	{Resource: "persistentvolumeclaims"}: corev1.ResourcePersistentVolumeClaims,
	{Resource: "replicationcontrollers"}: corev1.ResourceReplicationControllers,
	{Resource: "resourcequotas"}:         corev1.ResourceQuotas,
	{Resource: "secrets"}:                corev1.ResourceSecrets,
	{Resource: "services"}:               corev1.ResourceServices,
}

var quotas = schema.GroupResource{Resource: "resourcequotas"}

// uncounted are the resources that have no count/… name, as in Kubernetes: events
// go by themselves. Their bytes count.
var uncounted = map[schema.GroupResource]bool{
	{Resource: "events"}: true, {Group: "events.k8s.io", Resource: "events"}: true,
}

// countNames are the names that an object of a resource counts for.
func countNames(resource schema.GroupResource) []corev1.ResourceName {
	if uncounted[resource] {
		return nil
	}
	names := []corev1.ResourceName{generic.ObjectCountQuotaResourceNameFor(resource)}
	if name, ok := short[resource]; ok {
		names = append(names, name)
	}
	return names
}

// counted returns the resource whose objects a name counts.
func counted(name corev1.ResourceName) (schema.GroupResource, bool) {
	for resource, s := range short {
		if s == name {
			return resource, true
		}
	}
	text, ok := strings.CutPrefix(string(name), countPrefix)
	resource := schema.ParseGroupResource(text)
	return resource, ok && !uncounted[resource]
}
