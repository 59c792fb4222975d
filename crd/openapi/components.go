package openapi

import (
	"reflect"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// metaModel begins the names of the components about metadata.
const metaModel = "io.k8s.apimachinery.pkg.apis.meta.v1."

// documented is a type of the API with the texts that are published for it.
type documented interface{ SwaggerDoc() map[string]string }

// metaTypes are the types that the schemas of objects and lists refer to.
var metaTypes = []documented{
	metav1.FieldsV1{}, metav1.ListMeta{}, metav1.ManagedFieldsEntry{}, metav1.ObjectMeta{}, metav1.OwnerReference{}, metav1.ShardInfo{},
}

// metaLists say what API servers publish about lists in metadata.
var metaLists = map[string]string{"finalizers": "set", "managedFields": "atomic", "ownerReferences": "map"}

const timeText = "Time is a wrapper around time.Time which supports correct marshaling to YAML and JSON.  Wrappers are provided for many of the factory methods that the time package offers."

// metaComponents writes the schemas of metadata.
func (p *publisher) metaComponents() {
	for _, t := range metaTypes {
		p.key(metaModel + reflect.TypeOf(t).Name())
		p.object(func() { p.goType(t) })
	}
	p.key(metaModel + "Time")
	p.object(func() {
		p.text("description", timeText)
		p.text("type", "string")
		p.text("format", "date-time")
	})
}

// goType writes the schema of a struct of the API.
func (p *publisher) goType(value documented) {
	t, texts := reflect.TypeOf(value), value.SwaggerDoc()
	p.optional("description", texts[""])
	p.text("type", "object")
	var fields []reflect.StructField
	var required []string
	for i := range t.NumField() {
		f := t.Field(i)
		name, rest, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" || name == "-" {
			continue
		}
		fields = append(fields, f)
		if !strings.Contains(rest, "omit") {
			required = append(required, name)
		}
	}
	if len(required) > 0 {
		p.texts("required", required)
	}
	if len(fields) > 0 {
		p.key("properties")
		p.object(func() {
			for _, f := range fields {
				name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
				p.goField(f, name, texts[name], slices.Contains(required, name))
			}
		})
	}
	if t == reflect.TypeFor[metav1.OwnerReference]() {
		p.text("x-kubernetes-map-type", "atomic")
	}
}

func (p *publisher) goField(f reflect.StructField, name, description string, required bool) {
	t := f.Type
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Kind() == reflect.Struct {
		p.referring(name, metaModel+t.Name(), description)
		return
	}
	p.key(name)
	p.object(func() {
		p.optional("description", description)
		switch t.Kind() {
		case reflect.Bool:
			p.text("type", "boolean")
		case reflect.Int64:
			p.text("type", "integer")
			p.text("format", "int64")
		case reflect.Map:
			p.text("type", "object")
			p.key("additionalProperties")
			p.object(func() { p.text("type", "string") })
		case reflect.Slice:
			p.text("type", "array")
			p.key("items")
			p.object(func() {
				if item := t.Elem(); item.Kind() == reflect.Struct {
					p.text("$ref", p.format.ref(metaModel+item.Name()))
				} else {
					p.text("type", "string")
				}
			})
			p.goList(f, name)
		default:
			p.text("type", "string")
			if required {
				p.text("default", "")
			}
		}
	})
}

// goList writes how lists are merged.
func (p *publisher) goList(f reflect.StructField, name string) {
	p.text("x-kubernetes-list-type", metaLists[name])
	if key := f.Tag.Get("patchMergeKey"); key != "" {
		p.texts("x-kubernetes-list-map-keys", []string{key})
		p.text("x-kubernetes-patch-merge-key", key)
	}
	if strategy := f.Tag.Get("patchStrategy"); strategy != "" {
		p.text("x-kubernetes-patch-strategy", strategy)
	}
}
