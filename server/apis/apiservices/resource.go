package apiservices

import (
	"fmt"

	metatable "k8s.io/apimachinery/pkg/api/meta/table"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"

	apiregistrationv1 "github.com/espalier-dev/espalier/crd/apiregistration/v1"
	"github.com/espalier-dev/espalier/crd/rules"
	"github.com/espalier-dev/espalier/server/apis/builtin"
)

// Resource is the resource apiservices.
func Resource() builtin.Resource {
	version, docs := apiregistrationv1.SchemeGroupVersion.String(), metav1.ObjectMeta{}.SwaggerDoc()
	return builtin.Resource{
		Group: apiregistrationv1.SchemeGroupVersion.Group, Version: apiregistrationv1.SchemeGroupVersion.Version, Plural: "apiservices", Singular: "apiservice", Kind: "APIService",
		Categories: []string{"api-extensions"}, Prefix: "/" + apiregistrationv1.SchemeGroupVersion.Group + "/apiservices",
		New:      func() runtime.Object { return &apiregistrationv1.APIService{} },
		NewList:  func() runtime.Object { return &apiregistrationv1.APIServiceList{} },
		Strategy: builtin.Ruled(&rules.APIService, builtin.Strategy{Reset: builtin.ResetFields(version, "status")}),
		Columns: []metav1.TableColumnDefinition{
			{Name: "Name", Type: "string", Format: "name", Description: docs["name"]},
			{Name: "Service", Type: "string", Description: "The reference to the service that hosts this API endpoint."},
			{Name: "Available", Type: "string", Description: "Whether this service is available."},
			{Name: "Age", Type: "string", Description: docs["creationTimestamp"]},
		},
		Row: row,
		Subresources: map[string]func(*genericregistry.Store) rest.Storage{
			"status": builtin.Part(builtin.PartRuled(rules.APIService.Status, builtin.Strategy{Reset: builtin.ResetFields(version, "metadata", "spec")})),
		},
	}
}

func row(obj runtime.Object) []any {
	a := obj.(*apiregistrationv1.APIService)
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
