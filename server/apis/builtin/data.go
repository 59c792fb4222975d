package builtin

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	known "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/espalier-dev/espalier/crd/kinds"
)

// Data returns the resources of crd/kinds: those that controllers make, such as pods
// and deployments. What their files cannot say is added by functions of this package.
func Data() []Resource {
	var list []Resource
	for _, k := range kinds.All() {
		if k.Group == "autoscaling" && k.Version == "v1" {
			continue // the same objects as those of v2, which are converted: not yet served
		}
		r := FromData(k)
		if add := additions[k.Plural]; add != nil {
			add(&r)
		}
		list = append(list, r)
	}
	return connected(list)
}

// additions are what the files of kinds cannot say, by plural name.
var additions = map[string]func(*Resource){
	"pods":        addPods,
	"deployments": addScale, "replicasets": addScale, "statefulsets": addScale, "replicationcontrollers": addScale,
}

// FromData returns the resource of a kind that files describe.
func FromData(k *kinds.Kind) Resource {
	d := data{k}
	r := Resource{
		Group: k.Group, Version: k.Version, Plural: k.Plural, Singular: k.Singular, Kind: k.Kind, Namespaced: k.Namespaced,
		ShortNames: k.ShortNames, Categories: k.Categories, Deprecated: k.Deprecated,
		New:     d.empty(k.Kind),
		NewList: d.empty(k.Kind + "List"),
		Strategy: Strategy{
			Name:           k.NameFormat(),
			Create:         d.create,
			Update:         d.update,
			Validate:       func(_ context.Context, obj runtime.Object) field.ErrorList { return d.validate(obj, nil, "") },
			ValidateUpdate: func(_ context.Context, obj, old runtime.Object) field.ErrorList { return d.validate(obj, old, "") },
			CreateOnUpdate: k.CreateOnUpdate, Unconditional: k.Unconditional,
		},
	}
	r.Strategy.Default = d.fill
	r.Strategy.Warn = func(_ context.Context, obj runtime.Object) []string { return k.Warnings(tree(obj), nil) }
	r.Strategy.WarnUpdate = func(_ context.Context, obj, old runtime.Object) []string { return k.Warnings(tree(obj), tree(old)) }
	if len(k.Generation) > 0 {
		r.Strategy.Generation = func(obj, old runtime.Object) bool { return k.Changed(tree(obj), tree(old), k.Generation) }
	}
	if len(k.Columns) > 0 {
		for i := range k.Columns {
			if !k.Columns[i].Hidden {
				r.Columns = append(r.Columns, d.column(&k.Columns[i]))
			}
		}
		r.Row = func(obj runtime.Object) []any { return k.Row(tree(obj)) }
	}
	if len(k.Selectors) > 0 {
		r.Fields = func(obj runtime.Object) fields.Set { return k.Fields(tree(obj)) }
	}
	if k.ReturnDeleted {
		r.Wrap = returnDeleted
	}
	if k.Status {
		r.Strategy.Reset = ResetFields(r.version().String(), "status")
		r.Subresources = map[string]func(*genericregistry.Store) rest.Storage{"status": Part(Strategy{
			Update: d.keepForStatus,
			ValidateUpdate: func(_ context.Context, obj, old runtime.Object) field.ErrorList {
				return d.validate(obj, old, "status")
			},
			Unconditional: k.Unconditional,
			Reset:         map[string]*fieldpath.Set{r.version().String(): pathSet(k.StatusKeeps)},
		})}
	}
	return r
}

// data adapts a kind to the functions of a [Strategy].
type data struct{ kind *kinds.Kind }

// empty returns a function that makes empty objects of a kind of the group.
func (d data) empty(kind string) func() runtime.Object {
	gvk := (&Resource{Group: d.kind.Group, Version: d.kind.Version}).version().WithKind(kind)
	return func() runtime.Object {
		obj, err := known.Scheme.New(gvk)
		if err != nil {
			panic(fmt.Sprintf("builtin: client-go has no kind %s: %v", gvk, err)) // a test makes one of each
		}
		return obj
	}
}

// tree is an object as crd/kinds has it.
func tree(obj runtime.Object) map[string]any {
	m, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		panic(fmt.Sprintf("builtin: a %T cannot be converted to a tree: %v", obj, err)) // all types of k8s.io/api can
	}
	return m
}

// assign sets an object to a tree that was made of one like it.
func assign(m map[string]any, obj runtime.Object) {
	fresh := reflect.New(reflect.TypeOf(obj).Elem())
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(m, fresh.Interface()); err != nil {
		panic(fmt.Sprintf("builtin: a tree cannot be converted to a %T: %v", obj, err))
	}
	reflect.ValueOf(obj).Elem().Set(fresh.Elem())
}

func (d data) fill(obj runtime.Object) {
	m := tree(obj)
	changed, err := d.kind.Default(m)
	if err != nil {
		panic(fmt.Sprintf("builtin: %v", err)) // a test evaluates every default
	}
	if changed {
		assign(m, obj)
	}
}

func (d data) validate(obj, old runtime.Object, subresource string) field.ErrorList {
	var before map[string]any
	if old != nil {
		before = tree(old)
	}
	return append(d.kind.Validate(tree(obj), before, subresource), qualifiedFinalizers(obj)...)
}

func (d data) create(_ context.Context, obj runtime.Object) {
	m := tree(obj)
	if d.kind.Status && !d.kind.StatusOnCreate {
		delete(m, "status")
	}
	d.prepare(m, nil, obj)
}

func (d data) update(_ context.Context, obj, old runtime.Object) {
	m, before := tree(obj), tree(old)
	if d.kind.Status {
		restore(m, before, "status")
	}
	d.prepare(m, before, obj)
}

func (d data) prepare(m, before map[string]any, obj runtime.Object) {
	if err := d.kind.Prepare(m, before); err != nil {
		panic(fmt.Sprintf("builtin: %v", err)) // a test evaluates every step
	}
	assign(m, obj)
}

// keepForStatus restores what a write of the status may not change.
func (d data) keepForStatus(_ context.Context, obj, old runtime.Object) {
	m, before := tree(obj), tree(old)
	for name := range m {
		if name != "status" && name != "metadata" && name != "kind" && name != "apiVersion" {
			restore(m, before, name)
		}
	}
	for _, path := range d.kind.StatusKeeps {
		if path != "metadata" {
			restore(m, before, path)
		}
	}
	if err := d.kind.PrepareStatus(m, before); err != nil {
		panic(fmt.Sprintf("builtin: %v", err)) // a test evaluates every step
	}
	assign(m, obj)
	if slices.Contains(d.kind.StatusKeeps, "metadata") {
		metav1.ResetObjectMetaForStatus(metaOf(obj), metaOf(old))
	}
}

// restore sets a field, as metadata.labels, to what it was.
func restore(m, before map[string]any, path string) {
	name, rest, below := strings.Cut(path, ".")
	if !below {
		if value, ok := before[name]; ok {
			m[name] = value
		} else {
			delete(m, name)
		}
		return
	}
	inner, ok := m[name].(map[string]any)
	if !ok {
		inner = map[string]any{}
		m[name] = inner
	}
	innerBefore, _ := before[name].(map[string]any)
	restore(inner, innerBefore, rest)
}

// pathSet is a set of paths as managed fields have them.
func pathSet(paths []string) *fieldpath.Set {
	set := fieldpath.NewSet()
	for _, path := range paths {
		var parts []any
		for part := range strings.SplitSeq(path, ".") {
			parts = append(parts, part)
		}
		set.Insert(fieldpath.MakePathOrDie(parts...))
	}
	return set
}

// column is a column of a table.
func (d data) column(c *kinds.Column) metav1.TableColumnDefinition {
	out := metav1.TableColumnDefinition{Name: c.Name, Type: c.Type, Format: c.Format, Priority: c.Priority, Description: c.Doc}
	if name, of, ok := c.DocumentedField(); ok {
		out.Description = documentation(d.empty(d.kind.Kind)(), name, of)
	}
	return out
}

// documentation is what k8s.io/api says about a field of a type that is part of an
// object.
func documentation(obj runtime.Object, typeName, of string) string {
	if typeName == "meta/v1.ObjectMeta" {
		return metadataDocs[of]
	}
	found := ""
	seen := map[reflect.Type]bool{}
	var look func(t reflect.Type)
	look = func(t reflect.Type) {
		for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Map {
			t = t.Elem()
		}
		if t.Kind() != reflect.Struct || seen[t] || found != "" {
			return
		}
		seen[t] = true
		if strings.HasSuffix(t.PkgPath()+"."+t.Name(), typeName) {
			if documented, ok := reflect.Zero(t).Interface().(interface{ SwaggerDoc() map[string]string }); ok {
				found = documented.SwaggerDoc()[of]
			}
			return
		}
		for i := range t.NumField() {
			look(t.Field(i).Type)
		}
	}
	look(reflect.TypeOf(obj))
	return found
}
