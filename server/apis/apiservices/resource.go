package apiservices

import (
	"context"
	"fmt"
	"slices"

	metatable "k8s.io/apimachinery/pkg/api/meta/table"
	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/espalier-dev/espalier/server/apis/builtin"
)

// Resource is the resource apiservices.
func Resource() builtin.Resource {
	version, docs := GroupVersion.String(), metav1.ObjectMeta{}.SwaggerDoc()
	return builtin.Resource{
		Group: GroupVersion.Group, Version: GroupVersion.Version, Plural: "apiservices", Singular: "apiservice", Kind: "APIService",
		Categories: []string{"api-extensions"}, Prefix: "/" + GroupVersion.Group + "/apiservices",
		New:     func() runtime.Object { return &APIService{} },
		NewList: func() runtime.Object { return &List{} },
		Strategy: builtin.Strategy{
			Name:    func(name string, _ bool) []string { return content.IsPathSegmentName(name) },
			Default: func(obj runtime.Object) { fill(obj.(*APIService)) },
			Create:  func(_ context.Context, obj runtime.Object) { report(obj.(*APIService), nil) },
			Update: func(_ context.Context, obj, old runtime.Object) {
				obj.(*APIService).Status = old.(*APIService).Status
				report(obj.(*APIService), old.(*APIService))
			},
			Validate:       func(_ context.Context, obj runtime.Object) field.ErrorList { return validate(obj.(*APIService)) },
			ValidateUpdate: func(_ context.Context, obj, _ runtime.Object) field.ErrorList { return validate(obj.(*APIService)) },
			Reset:          builtin.ResetFields(version, "status"), GenerateNameOnUpdate: true,
		},
		Columns: []metav1.TableColumnDefinition{
			{Name: "Name", Type: "string", Format: "name", Description: docs["name"]},
			{Name: "Service", Type: "string", Description: "The reference to the service that hosts this API endpoint."},
			{Name: "Available", Type: "string", Description: "Whether this service is available."},
			{Name: "Age", Type: "string", Description: docs["creationTimestamp"]},
		},
		Row: row,
		Subresources: map[string]func(*genericregistry.Store) rest.Storage{"status": builtin.Part(builtin.Strategy{
			Update: func(_ context.Context, obj, old runtime.Object) {
				a, was := obj.(*APIService), old.(*APIService)
				a.Spec = was.Spec
				a.Labels, a.Annotations, a.Finalizers, a.OwnerReferences = was.Labels, was.Annotations, was.Finalizers, was.OwnerReferences
			},
			ValidateUpdate: func(_ context.Context, obj, _ runtime.Object) field.ErrorList {
				return validateStatus(&obj.(*APIService).Status)
			},
			Reset: builtin.ResetFields(version, "metadata", "spec"),
		})},
	}
}

// defaultPort is where a service is reached.
const defaultPort = 443

func fill(a *APIService) {
	if s := a.Spec.Service; s != nil && s.Port == nil {
		port := int32(defaultPort)
		s.Port = &port
	}
}

// report sets the condition of an object whose service is new.
func report(a, old *APIService) {
	if old != nil && (a.Spec.Service == nil) == (old.Spec.Service == nil) {
		return
	}
	c := Condition{Type: "Available", Status: metav1.ConditionTrue, LastTransitionTime: metav1.Now(), Reason: "Local", Message: "Local APIServices are always available"}
	if a.Spec.Service != nil {
		c.Status, c.Reason = metav1.ConditionFalse, "NotAggregated"
		c.Message = "this server passes no requests on to other API servers"
	}
	a.Status = Status{Conditions: []Condition{c}}
}

func validate(a *APIService) field.ErrorList {
	var errs field.ErrorList
	spec, at := &a.Spec, field.NewPath("spec")
	want := spec.Version + "." + spec.Group
	errs = append(errs, validateName("generateName", a.GenerateName, want)...)
	errs = append(errs, validateName("name", a.Name, want)...)
	if spec.Group != "" {
		for _, text := range validation.IsDNS1123Subdomain(spec.Group) {
			errs = append(errs, field.Invalid(at.Child("group"), spec.Group, text))
		}
	} else if spec.Version != "v1" {
		errs = append(errs, field.Required(at.Child("group"), "only v1 may have an empty group and it better be legacy kube"))
	}
	for _, text := range validation.IsDNS1035Label(spec.Version) {
		errs = append(errs, field.Invalid(at.Child("version"), spec.Version, text))
	}
	if spec.GroupPriorityMinimum <= 0 || spec.GroupPriorityMinimum > 20000 {
		errs = append(errs, field.Invalid(at.Child("groupPriorityMinimum"), spec.GroupPriorityMinimum, "must be positive and less than 20000"))
	}
	if spec.VersionPriority <= 0 || spec.VersionPriority > 1000 {
		errs = append(errs, field.Invalid(at.Child("versionPriority"), spec.VersionPriority, "must be positive and less than 1000"))
	}
	if spec.Service == nil {
		return append(errs, validateLocal(at, spec)...)
	}
	if spec.Service.Namespace == "" {
		errs = append(errs, field.Required(at.Child("service", "namespace"), ""))
	}
	if spec.Service.Name == "" {
		errs = append(errs, field.Required(at.Child("service", "name"), ""))
	}
	if port := spec.Service.Port; port != nil {
		for _, text := range validation.IsValidPortNum(int(*port)) {
			errs = append(errs, field.Invalid(at.Child("service", "port"), *port, "port is not valid: "+text))
		}
	}
	if spec.InsecureSkipTLSVerify && len(spec.CABundle) > 0 {
		errs = append(errs, field.Invalid(at.Child("insecureSkipTLSVerify"), true, "may not be true if caBundle is present"))
	}
	return errs
}

// validateName validates a name, or the prefix of one, that fits into a URL.
func validateName(at, name, want string) field.ErrorList {
	if name == "" || name == want || len(content.IsPathSegmentName(name)) > 0 {
		return nil
	}
	return field.ErrorList{field.Invalid(field.NewPath("metadata", at), name, fmt.Sprintf("must be `spec.version+\".\"+spec.group`: %q", want))}
}

func validateLocal(at *field.Path, spec *Spec) field.ErrorList {
	var errs field.ErrorList
	if n := len(spec.CABundle); n > 0 {
		errs = append(errs, field.Invalid(at.Child("caBundle"), fmt.Sprintf("%d bytes", n), "local APIServices may not have a caBundle"))
	}
	if spec.InsecureSkipTLSVerify {
		errs = append(errs, field.Invalid(at.Child("insecureSkipTLSVerify"), true, "local APIServices may not have insecureSkipTLSVerify"))
	}
	return errs
}

func validateStatus(s *Status) field.ErrorList {
	var errs field.ErrorList
	known := []metav1.ConditionStatus{metav1.ConditionTrue, metav1.ConditionFalse, metav1.ConditionUnknown}
	for i, c := range s.Conditions {
		if at := field.NewPath("status", "conditions").Index(i).Child("status"); !slices.Contains(known, c.Status) {
			errs = append(errs, field.NotSupported(at, c.Status, known))
		}
	}
	return errs
}

func row(obj runtime.Object) []any {
	a := obj.(*APIService)
	service, available := "Local", "Unknown"
	if s := a.Spec.Service; s != nil {
		service = s.Namespace + "/" + s.Name
	}
	for _, c := range a.Status.Conditions {
		if c.Type != "Available" {
			continue
		}
		available = string(c.Status)
		if c.Status != metav1.ConditionTrue {
			available = fmt.Sprintf("%s (%s)", c.Status, c.Reason)
		}
	}
	return []any{a.Name, service, available, metatable.ConvertToHumanReadableDateType(a.CreationTimestamp)}
}
