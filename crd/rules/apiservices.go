package rules

import (
	"fmt"
	"slices"

	segments "k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	content "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	apiregistrationv1 "github.com/espalier-dev/espalier/crd/apiregistration/v1"
)

// APIService are the rules of APIServices.
var APIService = Rules{
	GroupVersionKind: apiregistrationv1.SchemeGroupVersion.WithKind("APIService"),
	Name:             func(name string, _ bool) []string { return segments.IsPathSegmentName(name) },
	AnyFinalizer:     true, LooseGenerateName: true,
	Default: filled(defaultAPIService),
	Prepare: func(obj, old runtime.Object) {
		a := obj.(*apiregistrationv1.APIService)
		if old == nil {
			reportService(a, nil)
			return
		}
		a.Status = old.(*apiregistrationv1.APIService).Status
		reportService(a, old.(*apiregistrationv1.APIService))
	},
	Validate: validated(validateAPIService),
	Status: &StatusRules{
		Prepare: func(obj, old runtime.Object) {
			a, was := obj.(*apiregistrationv1.APIService), old.(*apiregistrationv1.APIService)
			a.Spec = was.Spec
			a.Labels, a.Annotations, a.Finalizers, a.OwnerReferences = was.Labels, was.Annotations, was.Finalizers, was.OwnerReferences
		},
		Validate: validated(func(a *apiregistrationv1.APIService) field.ErrorList { return validateAPIServiceStatus(&a.Status) }),
	},
}

func defaultAPIService(a *apiregistrationv1.APIService) {
	if s := a.Spec.Service; s != nil {
		DefaultPointer(&s.Port, 443)
	}
}

// reportService sets the condition of an object whose service is new.
func reportService(a, old *apiregistrationv1.APIService) {
	if old != nil && (a.Spec.Service == nil) == (old.Spec.Service == nil) {
		return
	}
	c := apiregistrationv1.APIServiceCondition{Type: "Available", Status: metav1.ConditionTrue, LastTransitionTime: metav1.Now(), Reason: "Local", Message: "Local APIServices are always available"}
	if a.Spec.Service != nil {
		c.Status, c.Reason = metav1.ConditionFalse, "NotAggregated"
		c.Message = "this server passes no requests on to other API servers"
	}
	a.Status = apiregistrationv1.APIServiceStatus{Conditions: []apiregistrationv1.APIServiceCondition{c}}
}

func validateAPIService(a *apiregistrationv1.APIService) field.ErrorList {
	var errs field.ErrorList
	spec, at := &a.Spec, field.NewPath("spec")
	if want := spec.Version + "." + spec.Group; a.Name != want {
		errs = append(errs, field.Invalid(field.NewPath("metadata", "name"), a.Name, fmt.Sprintf("must be `spec.version+\".\"+spec.group`: %q", want)))
	}
	if spec.Group != "" {
		for _, text := range content.IsDNS1123Subdomain(spec.Group) {
			errs = append(errs, field.Invalid(at.Child("group"), spec.Group, text))
		}
	} else if spec.Version != "v1" {
		errs = append(errs, field.Required(at.Child("group"), "only v1 may have an empty group and it better be legacy kube"))
	}
	for _, text := range content.IsDNS1035Label(spec.Version) {
		errs = append(errs, field.Invalid(at.Child("version"), spec.Version, text))
	}
	if spec.GroupPriorityMinimum <= 0 || spec.GroupPriorityMinimum > 20000 {
		errs = append(errs, field.Invalid(at.Child("groupPriorityMinimum"), spec.GroupPriorityMinimum, "must be positive and less than 20000"))
	}
	if spec.VersionPriority <= 0 || spec.VersionPriority > 1000 {
		errs = append(errs, field.Invalid(at.Child("versionPriority"), spec.VersionPriority, "must be positive and less than 1000"))
	}
	if spec.Service == nil {
		return append(errs, validateLocalService(at, spec)...)
	}
	if spec.Service.Namespace == "" {
		errs = append(errs, field.Required(at.Child("service", "namespace"), ""))
	}
	if spec.Service.Name == "" {
		errs = append(errs, field.Required(at.Child("service", "name"), ""))
	}
	if port := spec.Service.Port; port != nil {
		for _, text := range content.IsValidPortNum(int(*port)) {
			errs = append(errs, field.Invalid(at.Child("service", "port"), *port, "port is not valid: "+text))
		}
	}
	if spec.InsecureSkipTLSVerify && len(spec.CABundle) > 0 {
		errs = append(errs, field.Invalid(at.Child("insecureSkipTLSVerify"), true, "may not be true if caBundle is present"))
	}
	return errs
}

func validateLocalService(at *field.Path, spec *apiregistrationv1.APIServiceSpec) field.ErrorList {
	var errs field.ErrorList
	if n := len(spec.CABundle); n > 0 {
		errs = append(errs, field.Invalid(at.Child("caBundle"), fmt.Sprintf("%d bytes", n), "local APIServices may not have a caBundle"))
	}
	if spec.InsecureSkipTLSVerify {
		errs = append(errs, field.Invalid(at.Child("insecureSkipTLSVerify"), true, "local APIServices may not have insecureSkipTLSVerify"))
	}
	return errs
}

func validateAPIServiceStatus(s *apiregistrationv1.APIServiceStatus) field.ErrorList {
	var errs field.ErrorList
	known := []metav1.ConditionStatus{metav1.ConditionTrue, metav1.ConditionFalse, metav1.ConditionUnknown}
	for i, c := range s.Conditions {
		if at := field.NewPath("status", "conditions").Index(i).Child("status"); !slices.Contains(known, c.Status) {
			errs = append(errs, field.NotSupported(at, c.Status, known))
		}
	}
	return errs
}
