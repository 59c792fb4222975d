package offline

import (
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	eventsv1 "k8s.io/api/events/v1"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	networkingv1 "k8s.io/api/networking/v1"
	nodev1 "k8s.io/api/node/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	storagemigrationv1 "k8s.io/api/storagemigration/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	apiregistrationv1 "github.com/espalier-dev/espalier/crd/apiregistration/v1"
)

// packages register the Go types of the stable versions.
var packages = map[schema.GroupVersion]func(*runtime.Scheme) error{
	admissionregistrationv1.SchemeGroupVersion: admissionregistrationv1.AddToScheme,
	apiregistrationv1.SchemeGroupVersion:       apiregistrationv1.AddToScheme,
	appsv1.SchemeGroupVersion:                  appsv1.AddToScheme,
	autoscalingv1.SchemeGroupVersion:           autoscalingv1.AddToScheme,
	autoscalingv2.SchemeGroupVersion:           autoscalingv2.AddToScheme,
	batchv1.SchemeGroupVersion:                 batchv1.AddToScheme,
	certificatesv1.SchemeGroupVersion:          certificatesv1.AddToScheme,
	coordinationv1.SchemeGroupVersion:          coordinationv1.AddToScheme,
	corev1.SchemeGroupVersion:                  corev1.AddToScheme,
	discoveryv1.SchemeGroupVersion:             discoveryv1.AddToScheme,
	eventsv1.SchemeGroupVersion:                eventsv1.AddToScheme,
	flowcontrolv1.SchemeGroupVersion:           flowcontrolv1.AddToScheme,
	networkingv1.SchemeGroupVersion:            networkingv1.AddToScheme,
	nodev1.SchemeGroupVersion:                  nodev1.AddToScheme,
	policyv1.SchemeGroupVersion:                policyv1.AddToScheme,
	rbacv1.SchemeGroupVersion:                  rbacv1.AddToScheme,
	resourcev1.SchemeGroupVersion:              resourcev1.AddToScheme,
	schedulingv1.SchemeGroupVersion:            schedulingv1.AddToScheme,
	storagev1.SchemeGroupVersion:               storagev1.AddToScheme,
	storagemigrationv1.SchemeGroupVersion:      storagemigrationv1.AddToScheme,
}

// fieldsOnly are the kinds whose rules only a server has: it compiles their expressions.
// Their fields are known by their Go types.
var fieldsOnly = []Kind{
	{GroupVersionKind: admissionregistrationv1.SchemeGroupVersion.WithKind("MutatingAdmissionPolicy"), name: apivalidation.NameIsDNSSubdomain},
	{GroupVersionKind: admissionregistrationv1.SchemeGroupVersion.WithKind("MutatingAdmissionPolicyBinding"), name: apivalidation.NameIsDNSSubdomain},
	{GroupVersionKind: admissionregistrationv1.SchemeGroupVersion.WithKind("MutatingWebhookConfiguration"), name: apivalidation.NameIsDNSSubdomain},
	{GroupVersionKind: admissionregistrationv1.SchemeGroupVersion.WithKind("ValidatingAdmissionPolicy"), Status: true, name: apivalidation.NameIsDNSSubdomain},
	{GroupVersionKind: admissionregistrationv1.SchemeGroupVersion.WithKind("ValidatingAdmissionPolicyBinding"), name: apivalidation.NameIsDNSSubdomain},
	{GroupVersionKind: admissionregistrationv1.SchemeGroupVersion.WithKind("ValidatingWebhookConfiguration"), name: apivalidation.NameIsDNSSubdomain},
}
