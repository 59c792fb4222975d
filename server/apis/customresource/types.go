package customresource

import (
	"encoding/json"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/klog/v2"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"sigs.k8s.io/structured-merge-diff/v6/typed"

	"github.com/espalier-dev/espalier/crd/openapi"
	"github.com/espalier-dev/espalier/internal/object"
	"github.com/espalier-dev/espalier/server/storage/fieldmanager"
)

// types tells the field manager how the fields of a resource are merged, in all
// versions. What it knows of a version is made of the published schema when
// something is first written in that version: it is larger than the schema.
// It stays with the schemas of one crdInfo: values of two schemas are not compared.
type types struct{ schemas schemaSet }

// loadTypes reads the types of a version out of what is published of it.
func (s *versionSchema) loadTypes() managedfields.TypeConverter {
	inner, err := s.published()
	if err != nil {
		klog.ErrorS(err, "Failed to read the schema for server-side apply, merging fields without it", "crd", s.entry.Name, "version", s.name)
		inner = managedfields.NewDeducedTypeConverter()
	}
	return fieldmanager.Converter(inner)
}

func (s *versionSchema) published() (managedfields.TypeConverter, error) {
	d, v, err := s.crdVersion()
	if err != nil {
		return nil, err
	}
	document, err := openapi.Document(d, v)
	if err != nil {
		return nil, err
	}
	return typesOf(document, s.key.preserve)
}

// typesOf makes types of the schemas of an OpenAPI document.
func typesOf(document []byte, preserve bool) (managedfields.TypeConverter, error) {
	var models struct {
		Components struct {
			Schemas map[string]*spec.Schema `json:"schemas"`
		} `json:"components"`
	}
	if err := json.Unmarshal(document, &models); err != nil {
		return nil, err
	}
	return managedfields.NewTypeConverter(models.Components.Schemas, preserve)
}

// scaleDocument describes the fields of a scale that have managers.
const scaleDocument = `{"components":{"schemas":{"io.k8s.api.autoscaling.v1.Scale":{
	"type":"object",
	"properties":{
		"apiVersion":{"type":"string"},"kind":{"type":"string"},
		"metadata":{"type":"object","x-kubernetes-preserve-unknown-fields":true},
		"spec":{"type":"object","properties":{"replicas":{"type":"integer","format":"int32"}}},
		"status":{"type":"object","properties":{"replicas":{"type":"integer","format":"int32"},"selector":{"type":"string"}}}
	},
	"x-kubernetes-group-version-kind":[{"group":"autoscaling","kind":"Scale","version":"v1"}]
}}}}`

var scaleTypes = sync.OnceValue(func() managedfields.TypeConverter {
	inner, err := typesOf([]byte(scaleDocument), true)
	if err != nil {
		panic(err) // a constant that its test has read
	}
	return fieldmanager.Converter(inner)
})

var noTypes = sync.OnceValue(func() managedfields.TypeConverter {
	return fieldmanager.Converter(managedfields.NewDeducedTypeConverter())
})

// ObjectToTyped implements managedfields.TypeConverter. An object that was read
// with another schema is normalized again by the schema of the types.
func (t types) ObjectToTyped(obj runtime.Object, opts ...typed.ValidationOptions) (*typed.TypedValue, error) {
	kind := obj.GetObjectKind().GroupVersionKind()
	if kind == scaleKind {
		return scaleTypes().ObjectToTyped(obj, opts...)
	}
	s := t.schemas[kind.Version]
	if s == nil {
		return noTypes().ObjectToTyped(obj, opts...)
	}
	if o, ok := obj.(*object.Object); ok && schemaMarkerOf(o) != nil && schemaMarkerOf(o) != s {
		renormalized, err := renew(o, s)
		if err != nil {
			return nil, err
		}
		obj = renormalized
	}
	return s.types().ObjectToTyped(obj, opts...)
}

// TypedToObject implements managedfields.TypeConverter. A typed value says
// itself what it is.
func (t types) TypedToObject(value *typed.TypedValue) (runtime.Object, error) {
	return noTypes().TypedToObject(value)
}
