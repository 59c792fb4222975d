package offline

import (
	"cmp"
	"fmt"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/espalier-dev/espalier/crd/kinds"
	"github.com/espalier-dev/espalier/crd/rules"
)

// Kind is a built-in kind in a stable version.
type Kind struct {
	schema.GroupVersionKind
	Namespaced bool
	// Status is whether spec and status are written through different endpoints.
	Status bool

	data *kinds.Kind  // nil if crd/kinds does not describe it
	code *rules.Rules // nil if crd/rules does not have it
	name func(name string, prefix bool) []string
}

// Complete reports whether all rules of the kind are known. Of other kinds the fields,
// their types and metadata are checked.
func (k *Kind) Complete() bool { return k.data != nil || k.code != nil }

// Deprecated is the warning that every request for the kind gets, mostly none.
func (k *Kind) Deprecated() string {
	if k.data == nil {
		return ""
	}
	return k.data.Deprecated
}

// All returns all kinds, ordered by group, kind and version.
var All = sync.OnceValue(func() []*Kind {
	var all []*Kind
	for _, d := range kinds.All() {
		k := &Kind{
			GroupVersionKind: schema.GroupVersionKind{Group: d.Group, Version: d.Version, Kind: d.Kind},
			Namespaced:       d.Namespaced, Status: d.Status, data: d, name: d.NameFormat(),
		}
		all = append(all, k)
	}
	for _, c := range rules.All() {
		all = append(all, &Kind{GroupVersionKind: c.GroupVersionKind, Namespaced: c.Namespaced, Status: c.Status != nil, code: c, name: c.Name})
	}
	for i := range fieldsOnly {
		all = append(all, &fieldsOnly[i])
	}
	slices.SortFunc(all, func(a, b *Kind) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Version, b.Version))
	})
	return all
})

// index finds kinds.
var index = sync.OnceValue(func() map[schema.GroupVersionKind]*Kind {
	m := map[schema.GroupVersionKind]*Kind{}
	for _, k := range All() {
		m[k.GroupVersionKind] = k
	}
	return m
})

// Find returns a kind, nil if there is none.
func Find(kind schema.GroupVersionKind) *Kind { return index()[kind] }

// scheme has the Go types of one group and version: the others are not registered.
func scheme(version schema.GroupVersion) *runtime.Scheme {
	if s, ok := schemes.Load(version); ok {
		return s.(*runtime.Scheme)
	}
	s := runtime.NewScheme()
	if add := packages[version]; add != nil {
		if err := add(s); err != nil {
			panic(fmt.Sprintf("offline: registering the types of %s failed: %v", version, err))
		}
	}
	kept, _ := schemes.LoadOrStore(version, s)
	return kept.(*runtime.Scheme)
}

var schemes sync.Map // by schema.GroupVersion

// New returns an empty object of the kind.
func (k *Kind) New() runtime.Object {
	obj, err := scheme(k.GroupVersion()).New(k.GroupVersionKind)
	if err != nil {
		panic(fmt.Sprintf("offline: %v", err)) // a test makes one of each
	}
	return obj
}
