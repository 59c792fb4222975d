package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var (
	// GroupVersion is that of the types in this package.
	GroupVersion = schema.GroupVersion{Group: "orchard.example.com", Version: "v1beta1"}

	// SchemeBuilder collects what makes the types known to a scheme.
	SchemeBuilder = runtime.NewSchemeBuilder(addKnownTypes)

	// AddToScheme makes the types known to a scheme.
	AddToScheme = SchemeBuilder.AddToScheme
)

func addKnownTypes(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion, &Tree{}, &TreeList{})
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}
