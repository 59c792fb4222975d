package v1

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// SchemeGroupVersion is that of APIServices.
var SchemeGroupVersion = schema.GroupVersion{Group: "apiregistration.k8s.io", Version: "v1"}

// AddToScheme registers the types.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(SchemeGroupVersion, &APIService{}, &APIServiceList{})
	metav1.AddToGroupVersion(s, SchemeGroupVersion)
	return nil
}

// APIService says who serves a version of a group. Its name is version.group.
type APIService struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              APIServiceSpec   `json:"spec,omitempty"`
	Status            APIServiceStatus `json:"status,omitempty"`
}

// APIServiceSpec is what clients write.
type APIServiceSpec struct {
	// Service is nil for what this server serves itself.
	Service               *ServiceReference `json:"service,omitempty"`
	Group                 string            `json:"group,omitempty"`
	Version               string            `json:"version,omitempty"`
	InsecureSkipTLSVerify bool              `json:"insecureSkipTLSVerify,omitempty"`
	CABundle              []byte            `json:"caBundle,omitempty"`
	GroupPriorityMinimum  int32             `json:"groupPriorityMinimum"`
	VersionPriority       int32             `json:"versionPriority"`
}

// ServiceReference names a Service.
type ServiceReference struct {
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name,omitempty"`
	Port      *int32 `json:"port,omitempty"`
}

// APIServiceStatus says whether requests are answered.
type APIServiceStatus struct {
	Conditions []APIServiceCondition `json:"conditions,omitempty" patchMergeKey:"type" patchStrategy:"merge"`
}

// APIServiceCondition is one of the status.
type APIServiceCondition struct {
	Type               string                 `json:"type"`
	Status             metav1.ConditionStatus `json:"status"`
	LastTransitionTime metav1.Time            `json:"lastTransitionTime,omitempty"`
	Reason             string                 `json:"reason,omitempty"`
	Message            string                 `json:"message,omitempty"`
}

// APIServiceList is a list of APIServices.
type APIServiceList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []APIService `json:"items"`
}

// The names of the types in OpenAPI, as kube-apiserver publishes them.
const models = "io.k8s.kube-aggregator.pkg.apis.apiregistration.v1."

// OpenAPIModelName is the name in OpenAPI.
func (APIService) OpenAPIModelName() string { return models + "APIService" }

// OpenAPIModelName is the name in OpenAPI.
func (APIServiceSpec) OpenAPIModelName() string { return models + "APIServiceSpec" }

// OpenAPIModelName is the name in OpenAPI.
func (ServiceReference) OpenAPIModelName() string { return models + "ServiceReference" }

// OpenAPIModelName is the name in OpenAPI.
func (APIServiceStatus) OpenAPIModelName() string { return models + "APIServiceStatus" }

// OpenAPIModelName is the name in OpenAPI.
func (APIServiceCondition) OpenAPIModelName() string { return models + "APIServiceCondition" }

// OpenAPIModelName is the name in OpenAPI.
func (APIServiceList) OpenAPIModelName() string { return models + "APIServiceList" }

// DeepCopyObject implements runtime.Object.
func (a *APIService) DeepCopyObject() runtime.Object { return a.deepCopy() }

func (a *APIService) deepCopy() *APIService {
	if a == nil {
		return nil
	}
	out := *a
	a.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	if s := a.Spec.Service; s != nil {
		service := *s
		if s.Port != nil {
			port := *s.Port
			service.Port = &port
		}
		out.Spec.Service = &service
	}
	out.Spec.CABundle = slices.Clone(a.Spec.CABundle)
	out.Status.Conditions = slices.Clone(a.Status.Conditions)
	return &out
}

// DeepCopyObject implements runtime.Object.
func (l *APIServiceList) DeepCopyObject() runtime.Object {
	if l == nil {
		return nil
	}
	out := &APIServiceList{TypeMeta: l.TypeMeta}
	l.ListMeta.DeepCopyInto(&out.ListMeta)
	for i := range l.Items {
		out.Items = append(out.Items, *l.Items[i].deepCopy())
	}
	return out
}
