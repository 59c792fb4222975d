package quota

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func TestNames(t *testing.T) {
	for name, want := range map[corev1.ResourceName]string{
		"configmaps": "configmaps", "secrets": "secrets", "resourcequotas": "resourcequotas", "services": "services",
		"replicationcontrollers": "replicationcontrollers", "persistentvolumeclaims": "persistentvolumeclaims",
		"count/deployments.apps": "deployments.apps", "count/services": "services",
	} {
		resource, ok := counted(name)
		if !ok || resource.String() != want {
			t.Errorf("%s counts %v, not %s", name, resource, want)
		}
		if !slices.Contains(countNames(resource), name) {
			t.Errorf("an object of %s does not count for %s", want, name)
		}
	}
	for _, name := range []corev1.ResourceName{"count/events", "cpu", "requests.storage", "services.nodeports"} {
		if resource, ok := counted(name); ok {
			t.Errorf("%s counts %v", name, resource)
		}
	}
}
