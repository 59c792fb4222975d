package builtin

import (
	"context"
	"reflect"
	"strings"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/espalier-dev/espalier/crd/kinds"
)

// Rules are about trees, and everything else is about Go objects. Making a tree takes
// about a tenth of the time of a write, so each of the two objects of a write is made
// one tree of:
//
//	decode ──▶ Default ──▶ admission ──▶ Create or Update ──▶ Validate ──▶ Warn
//	           (a tree of its own:       writes a tree ─────▶ reads it ──▶ reads it
//	           admission may change
//	           the object)
//
// k8s.io/apiserver calls the last three in this order. In between it changes nothing but
// the identity and the times in metadata of an update, which no rule of updates reads.
// It calls them again, from the start, if the stored object has changed. What changes an
// object after Update says so to its tree (see [write.set]).

// write is what the last Create or Update of a request has made trees of. It is valid
// for these two objects and no others.
type write struct {
	obj, old     runtime.Object // old is nil for new objects
	tree, before map[string]any
}

type writeKey struct{}

// withWrite returns the context of a request that may write.
func withWrite(ctx context.Context) context.Context {
	return context.WithValue(ctx, writeKey{}, &atomic.Pointer[write]{})
}

// remember keeps the trees of a write for later steps of the request. Without a request
// there are none to keep them for.
func remember(ctx context.Context, w *write) {
	if slot, ok := ctx.Value(writeKey{}).(*atomic.Pointer[write]); ok {
		slot.Store(w)
	}
}

// trees are the trees of an object and of the one that it replaces, which may be nil. They
// must not be changed.
func trees(ctx context.Context, obj, old runtime.Object) *write {
	if slot, ok := ctx.Value(writeKey{}).(*atomic.Pointer[write]); ok {
		if w := slot.Load(); w != nil && w.obj == obj && w.old == old {
			return w
		}
	}
	w := newWrite(obj, old)
	remember(ctx, w)
	return w
}

// newWrite makes the trees of an object and of the one that it replaces.
func newWrite(obj, old runtime.Object) *write {
	w := &write{obj: obj, old: old, tree: kinds.Tree(obj)}
	if old != nil {
		w.before = kinds.Tree(old)
	}
	return w
}

// set says that a field of the object is now part, a pointer to a struct.
func (w *write) set(name string, part any) { w.tree[name] = kinds.Part(part) }

// at is the field of an object at a path such as spec.replicas, the zero Value if there
// is none: a pointer on the way is nil.
func at(obj runtime.Object, path string) reflect.Value {
	v := reflect.ValueOf(obj).Elem()
	for name := range strings.SplitSeq(path, ".") {
		if v.Kind() == reflect.Pointer {
			v = v.Elem()
		}
		if v.Kind() != reflect.Struct {
			return reflect.Value{}
		}
		v = fieldNamed(v, name)
	}
	return v
}

// fieldNamed is the field of a struct that JSON calls name.
func fieldNamed(v reflect.Value, name string) reflect.Value {
	for i := range v.NumField() {
		f := v.Type().Field(i)
		written, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if written == name {
			return v.Field(i)
		}
		if f.Anonymous && written == "" && f.Type.Kind() == reflect.Struct {
			if found := fieldNamed(v.Field(i), name); found.IsValid() {
				return found
			}
		}
	}
	return reflect.Value{}
}

// differ reports whether fields of two objects of a type differ.
func differ(obj, old runtime.Object, paths []string, exact bool) bool {
	equal := equality.Semantic.DeepEqual
	if exact {
		equal = reflect.DeepEqual // what is empty differs from what is absent
	}
	for _, path := range paths {
		a, b := at(obj, path), at(old, path)
		if a.IsValid() != b.IsValid() || a.IsValid() && !equal(a.Interface(), b.Interface()) {
			return true
		}
	}
	return false
}

// partial is a tree of nothing but the scalars at some paths.
func partial(obj runtime.Object, paths []string) map[string]any {
	m := map[string]any{}
	for _, path := range paths {
		v := at(obj, path)
		if v.Kind() == reflect.Pointer {
			v = v.Elem()
		}
		var value any
		switch v.Kind() {
		case reflect.String:
			value = v.String()
		case reflect.Bool:
			value = v.Bool()
		case reflect.Int, reflect.Int32, reflect.Int64:
			value = v.Int()
		default:
			continue // absent
		}
		names, to := strings.Split(path, "."), m
		for _, name := range names[:len(names)-1] {
			below, ok := to[name].(map[string]any)
			if !ok {
				below = map[string]any{}
				to[name] = below
			}
			to = below
		}
		to[names[len(names)-1]] = value
	}
	return m
}
