package builtin

import (
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/espalier-dev/espalier/crd/kinds"
)

// TestDescribedTypes converts kinds that client-go does not apply. In managed fields, each
// owner has an entry of its own.
func TestDescribedTypes(t *testing.T) {
	for version, objects := range map[schema.GroupVersion]map[string]runtime.Object{
		authenticationv1.SchemeGroupVersion: {"TokenReview": &authenticationv1.TokenReview{}, "SelfSubjectReview": &authenticationv1.SelfSubjectReview{}},
		authorizationv1.SchemeGroupVersion: {
			"SubjectAccessReview": &authorizationv1.SubjectAccessReview{}, "SelfSubjectAccessReview": &authorizationv1.SelfSubjectAccessReview{},
			"LocalSubjectAccessReview": &authorizationv1.LocalSubjectAccessReview{}, "SelfSubjectRulesReview": &authorizationv1.SelfSubjectRulesReview{},
		},
		corev1.SchemeGroupVersion: {"ComponentStatus": &corev1.ComponentStatus{}},
	} {
		for kind, obj := range objects {
			gvk := version.WithKind(kind)
			obj.GetObjectKind().SetGroupVersionKind(gvk)
			kinds.Metadata(obj).SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "a", UID: "u"}})
			typed, err := describedTypes(gvk, obj).ObjectToTyped(obj)
			if err != nil {
				t.Errorf("%s: %v", kind, err)
				continue
			}
			set, err := typed.ToFieldSet()
			if err != nil || !strings.Contains(set.String(), `.metadata.ownerReferences[uid="u"]`) {
				t.Errorf("%s: fields %v, %v", kind, set, err)
			}
		}
	}
}
