package customresourcedefinition

import (
	"fmt"
	"sync"

	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1beta1"
	"k8s.io/apiextensions-apiserver/pkg/generated/openapi"
	"k8s.io/apimachinery/pkg/util/managedfields"
	apiopenapi "k8s.io/apiserver/pkg/endpoints/openapi"
	"k8s.io/kube-openapi/pkg/builder3"
	"k8s.io/kube-openapi/pkg/common"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// openAPI returns the OpenAPI v3 schemas of CRDs and their lists, in both
// versions, and of all that they refer to, by name.
var openAPI = sync.OnceValues(func() (map[string]*spec.Schema, error) {
	config := &common.OpenAPIV3Config{
		Info:              &spec.Info{},
		GetDefinitions:    openapi.GetOpenAPIDefinitions,
		GetDefinitionName: apiopenapi.NewDefinitionNamer(scheme).GetDefinitionName,
	}
	all, err := builder3.BuildOpenAPIDefinitionsForResources(config,
		v1.CustomResourceDefinition{}.OpenAPIModelName(), v1.CustomResourceDefinitionList{}.OpenAPIModelName(),
		v1beta1.CustomResourceDefinition{}.OpenAPIModelName(), v1beta1.CustomResourceDefinitionList{}.OpenAPIModelName())
	if err != nil {
		return nil, err
	}
	for _, name := range []string{v1.JSONSchemaProps{}.OpenAPIModelName(), v1beta1.JSONSchemaProps{}.OpenAPIModelName()} {
		props := all[name]
		if props == nil {
			return nil, fmt.Errorf("there is no OpenAPI schema called %s", name)
		}
		addKeywords(props)
	}
	return all, nil
})

// converters are those of managed fields. All servers of a process share them.
var converters = sync.OnceValues(func() (managedfields.TypeConverter, error) {
	schemas, err := openAPI()
	if err != nil {
		return nil, err
	}
	return managedfields.NewTypeConverter(schemas, false)
})

// addKeywords makes the keywords known that upstream's types do not have:
// otherwise server-side apply would refuse them.
func addKeywords(props *spec.Schema) {
	readOnly := spec.BooleanProperty().WithDescription("readOnly says that clients do not set the field.")
	fields := spec.MapProperty(spec.StringProperty()).WithDescription("fields are the members of the union, with the value of the discriminator that stands for each.")
	union := &spec.Schema{SchemaProps: spec.SchemaProps{Type: []string{"object"}, Properties: map[string]spec.Schema{
		"discriminator": *spec.StringProperty().WithDescription("discriminator is the name of the field that says which member is set."),
		"fields":        *fields,
	}}}
	unions := spec.ArrayProperty(union).WithDescription("x-kubernetes-unions are groups of fields; an object may set at most one field of a group.")
	unions.AddExtension("x-kubernetes-list-type", "atomic")
	props.Properties["readOnly"] = *readOnly
	props.Properties["x-kubernetes-unions"] = *unions
}
