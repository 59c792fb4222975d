package offline

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// offByDefault are the kinds that kube-apiserver v1.37.1 serves only if their version is
// turned on, by version.
var offByDefault = map[string][]string{
	"admissionregistration.k8s.io/v1alpha1": {"MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding"},
	"admissionregistration.k8s.io/v1beta1":  {"MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding"},
	"certificates.k8s.io/v1beta1":           {"ClusterTrustBundle", "PodCertificateRequest"},
	"coordination.k8s.io/v1alpha2":          {"LeaseCandidate"},
	"coordination.k8s.io/v1beta1":           {"LeaseCandidate"},
	"internal.apiserver.k8s.io/v1alpha1":    {"StorageVersion"},
	"lifecycle.k8s.io/v1alpha1":             {"Eviction", "EvictionRequest"},
	"resource.k8s.io/v1alpha3":              {"DeviceTaintRule", "ResourcePoolStatusRequest"},
	"resource.k8s.io/v1beta1":               {"DeviceClass", "ResourceClaim", "ResourceClaimTemplate", "ResourceSlice"},
	"resource.k8s.io/v1beta2":               {"DeviceClass", "DeviceTaintRule", "ResourceClaim", "ResourceClaimTemplate", "ResourceSlice"},
	"scheduling.k8s.io/v1alpha3":            {"CompositePodGroup", "PodGroup", "Workload"},
	"scheduling.k8s.io/v1beta1":             {"PodGroup", "Workload"},
	"storagemigration.k8s.io/v1beta1":       {"StorageVersionMigration"},
}

// OffByDefault reports whether servers have a kind only if its version is turned on. Of
// versions of Kubernetes before the latest, it reports this for every alpha and beta
// version: which of them they have is not known.
func OffByDefault(kind schema.GroupVersionKind, version Version) bool {
	if version < Latest && (strings.Contains(kind.Version, "alpha") || strings.Contains(kind.Version, "beta")) {
		return true
	}
	return slices.Contains(offByDefault[kind.GroupVersion().String()], kind.Kind)
}
