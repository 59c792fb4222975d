package builtin

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
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
		if k.Plural == migrations {
			continue // in [Standard]
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
	"pods":                     addPods,
	"jobs":                     addJobs,
	"priorityclasses":          addPriorityClasses,
	"controllerrevisions":      addRevisions,
	"resourceclaims":           addClaims,
	"resourceclaimtemplates":   addClaims,
	"horizontalpodautoscalers": addAutoscalers,
	"deployments":              addScale, "replicasets": addScale, "statefulsets": addScale, "replicationcontrollers": addScale,
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
			Name:     k.NameFormat(),
			Create:   d.create,
			Update:   d.update,
			Validate: func(ctx context.Context, obj runtime.Object) field.ErrorList { return d.validate(ctx, obj, nil, "") },
			ValidateUpdate: func(ctx context.Context, obj, old runtime.Object) field.ErrorList {
				return d.validate(ctx, obj, old, "")
			},
			CreateOnUpdate: k.CreateOnUpdate, Unconditional: k.Unconditional, Orphans: k.Orphans,
			GenerationFirst: k.GenerationFirst, MetadataLast: k.MetadataLast,
			QualifiedFinalizers: !k.AnyFinalizer, GenerateNameOnUpdate: k.GenerateName == "always",
		},
	}
	r.Strategy.fill = d.fill
	r.Strategy.Warn = func(ctx context.Context, obj runtime.Object) []string { return d.warn(ctx, obj, nil) }
	r.Strategy.WarnUpdate = d.warn
	if len(k.Generation) > 0 {
		r.Strategy.Generation = func(obj, old runtime.Object) bool { return differ(obj, old, k.Generation, k.GenerationExact) }
	}
	if len(k.Columns) > 0 {
		r.columns = sync.OnceValue(d.columns)
		r.Row = func(obj runtime.Object) []any { return k.Row(kinds.Tree(obj)) }
	}
	if len(k.Selectors) > 0 {
		paths := k.SelectorPaths()
		r.Fields = func(obj runtime.Object) fields.Set { return k.Fields(partial(obj, paths)) }
	}
	if k.ReturnDeleted {
		r.Wrap = returnDeleted
	}
	if k.Status {
		r.Strategy.Reset = resetFields(k, "status")
		r.status = &Strategy{
			Update: d.updateStatus,
			ValidateUpdate: func(ctx context.Context, obj, old runtime.Object) field.ErrorList {
				return d.validate(ctx, obj, old, "status")
			},
			Unconditional: k.Unconditional, QualifiedFinalizers: !k.AnyFinalizer,
			Reset: resetFields(k, append([]string{"spec"}, k.StatusKeeps...)...),
		}
		status := r.status
		r.Subresources = map[string]func(*genericregistry.Store) rest.Storage{
			"status": func(s *genericregistry.Store) rest.Storage { return Part(*status)(s) },
		}
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

// fill sets defaults, and reports whether there were any.
func (d data) fill(obj runtime.Object) (changed bool) {
	m := kinds.Tree(obj)
	changed, err := d.kind.Default(m)
	if err != nil {
		panic(fmt.Sprintf("builtin: %v", err)) // a test evaluates every default
	}
	if changed {
		kinds.Assign(m, obj)
	}
	return changed
}

func (d data) validate(ctx context.Context, obj, old runtime.Object, subresource string) field.ErrorList {
	w := trees(ctx, obj, old)
	return d.kind.Validate(w.tree, w.before, subresource)
}

func (d data) warn(ctx context.Context, obj, old runtime.Object) []string {
	w := trees(ctx, obj, old)
	return d.kind.Warnings(w.tree, w.before)
}

func (d data) create(ctx context.Context, obj runtime.Object) {
	prepare(ctx, newWrite(obj, nil), d.kind.Prepare)
}

func (d data) update(ctx context.Context, obj, old runtime.Object) {
	prepare(ctx, newWrite(obj, old), d.kind.Prepare)
}

func (d data) updateStatus(ctx context.Context, obj, old runtime.Object) {
	prepare(ctx, newWrite(obj, old), d.kind.PrepareStatus)
}

// prepare takes the steps of a kind before validation, and sets the object to the tree if
// it has changed.
func prepare(ctx context.Context, w *write, steps func(tree, old map[string]any) (bool, error)) {
	changed, err := steps(w.tree, w.before)
	if err != nil {
		panic(fmt.Sprintf("builtin: %v", err)) // a test evaluates every step
	}
	if changed {
		kinds.Assign(w.tree, w.obj)
	}
	remember(ctx, w)
}

// resetFields is a value for Strategy.Reset: paths in all versions of a kind. Versions
// share a store, and so the endpoints that drop fields.
func resetFields(k *kinds.Kind, paths ...string) map[string]*fieldpath.Set {
	reset := map[string]*fieldpath.Set{}
	for _, other := range append(slices.Clip(kinds.All()), k) {
		if other.Group == k.Group && other.Plural == k.Plural {
			reset[schema.GroupVersion{Group: other.Group, Version: other.Version}.String()] = pathSet(paths)
		}
	}
	return reset
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

// columns are those of tables. Most of their descriptions are documentation of Go types,
// which takes time to find.
func (d data) columns() []metav1.TableColumnDefinition {
	var list []metav1.TableColumnDefinition
	for i := range d.kind.Columns {
		if c := &d.kind.Columns[i]; !c.Hidden {
			list = append(list, d.column(c))
		}
	}
	return list
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
