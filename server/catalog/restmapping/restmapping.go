package restmapping

import (
	"iter"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"

	"github.com/espalier-dev/espalier/server/catalog"
)

// Kind is a resource whose objects are stored.
type Kind struct {
	// Resource is what requests are made to. Its version is empty if none is served.
	Resource   schema.GroupVersionResource
	Kind       string
	Namespaced bool
	// Prefix is between the backend's prefix and the rest of a key: "/configmaps",
	// "/example.com/widgets".
	Prefix string
}

// APIVersion returns what objects have as apiVersion in requests.
func (k Kind) APIVersion() string { return k.Resource.GroupVersion().String() }

// Served reports whether requests can be made.
func (k Kind) Served() bool { return k.Resource.Version != "" }

// String returns the name of the resource with its group: widgets.example.com.
func (k Kind) String() string { return k.Resource.GroupResource().String() }

// CustomResourceDefinitions is the resource of the CRDs themselves.
var CustomResourceDefinitions = Kind{
	Resource: schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"},
	Kind:     "CustomResourceDefinition",
	Prefix:   catalog.Key,
}

// Kinds are all resources: those given when it is made, and those of the catalog.
// It is safe for concurrent use.
type Kinds struct {
	catalog  *catalog.Catalog
	builtin  []Kind
	byPrefix map[string]int
	byKind   map[schema.GroupKind]int
	further  map[schema.GroupVersionKind]bool // versions that are served besides the stored one
}

// New returns the resources of a catalog and those that are built in. A resource
// without a prefix has "/" and its name. Of one that is given in several versions, the
// first is stored.
func New(c *catalog.Catalog, builtin ...Kind) *Kinds {
	k := &Kinds{catalog: c, byPrefix: map[string]int{}, byKind: map[schema.GroupKind]int{}, further: map[schema.GroupVersionKind]bool{}}
	for _, b := range builtin {
		if _, known := k.byKind[schema.GroupKind{Group: b.Resource.Group, Kind: b.Kind}]; known {
			k.further[b.Resource.GroupVersion().WithKind(b.Kind)] = true
			continue
		}
		k.builtin = append(k.builtin, b)
		k.byKind[schema.GroupKind{Group: b.Resource.Group, Kind: b.Kind}] = len(k.builtin) - 1
	}
	for i := range k.builtin {
		b := &k.builtin[i]
		if b.Prefix == "" {
			b.Prefix = "/" + b.Resource.Resource
		}
		if _, taken := k.byPrefix[b.Prefix]; !taken {
			k.byPrefix[b.Prefix] = i
		}
	}
	return k
}

// ObjectKey identifies an object: its resource, namespace and name.
type ObjectKey struct {
	Kind
	Namespace, Name string
}

// ByKey returns which object has a key, given without the backend's prefix. It
// finds none if the key has not the form of its resource, or no such resource is
// known at the moment.
func (k *Kinds) ByKey(key string) (ObjectKey, bool) {
	kind, rest, ok := k.split(key)
	if !ok {
		return ObjectKey{}, false
	}
	p := ObjectKey{Kind: kind, Name: rest}
	if kind.Namespaced {
		p.Namespace, p.Name, ok = strings.Cut(rest, "/")
		if !ok || p.Namespace == "" {
			return ObjectKey{}, false
		}
	}
	if p.Name == "" || strings.Contains(p.Name, "/") {
		return ObjectKey{}, false
	}
	return p, true
}

func (k *Kinds) split(key string) (kind Kind, rest string, ok bool) {
	if !strings.HasPrefix(key, "/") {
		return Kind{}, "", false
	}
	if b, prefix := k.builtIn(key); b != nil {
		return *b, trimPrefix(key, prefix), true
	}
	prefix := firstSegments(key, 2)
	group, plural, ok := strings.Cut(strings.TrimPrefix(prefix, "/"), "/")
	if !ok {
		return Kind{}, "", false
	}
	e := k.catalog.Resource(group, plural)
	if e == nil || e.Accepted.Plural != plural {
		return Kind{}, "", false
	}
	return ofEntry(e), trimPrefix(key, prefix), true
}

// builtIn returns the built-in resource of a key, nil if there is none, and its prefix. Of
// two prefixes the longer one counts.
func (k *Kinds) builtIn(key string) (kind *Kind, prefix string) {
	for _, prefix := range []string{firstSegments(key, 2), firstSegments(key, 1)} {
		if i, ok := k.byPrefix[prefix]; ok {
			return &k.builtin[i], prefix
		}
	}
	return nil, ""
}

func trimPrefix(key, prefix string) string {
	return strings.TrimPrefix(strings.TrimPrefix(key, prefix), "/")
}

// firstSegments returns the beginning of a key, up to the slash after n segments.
func firstSegments(key string, n int) string {
	for i := 1; i < len(key); i++ {
		if key[i] == '/' {
			if n--; n == 0 {
				return key[:i]
			}
		}
	}
	return key
}

// Resource returns the resource of a key, also if no such resource is known:
// encryption at rest is configured by this name, and applies to keys whose CRD is
// already deleted.
func (k *Kinds) Resource(key string) schema.GroupResource {
	if b, _ := k.builtIn(key); b != nil {
		return b.Resource.GroupResource()
	}
	group, plural, _ := strings.Cut(strings.TrimPrefix(firstSegments(key, 2), "/"), "/")
	return schema.GroupResource{Group: group, Resource: plural}
}

// ByOwner returns the resource of a reference. The version does not matter: an
// object is the same in all versions, also in those that are no longer served.
func (k *Kinds) ByOwner(apiVersion, kind string) (Kind, bool) {
	gv, err := schema.ParseGroupVersion(apiVersion)
	if err != nil {
		return Kind{}, false
	}
	if i, ok := k.byKind[schema.GroupKind{Group: gv.Group, Kind: kind}]; ok {
		return k.builtin[i], true
	}
	return k.custom(gv.Group, kind, func(*catalog.Entry) bool { return true })
}

// custom returns the resource of a kind of the catalog whose CRD fits.
func (k *Kinds) custom(group, kind string, fits func(*catalog.Entry) bool) (found Kind, ok bool) {
	k.catalog.View(group, func(claims catalog.Claims) {
		for _, e := range claims.On(catalog.Kinds, kind) {
			if e.Accepted.Kind == kind && fits(e) {
				found, ok = ofEntry(e), true
			}
		}
	})
	return found, ok
}

// Key returns the key of an object, without the backend's prefix.
func (k Kind) Key(namespace, name string) string {
	if k.Namespaced {
		return k.Prefix + "/" + namespace + "/" + name
	}
	return k.Prefix + "/" + name
}

// Namespaced ranges over all resources whose objects have namespaces. Of those that
// share their objects with another there is one.
func (k *Kinds) Namespaced() iter.Seq[Kind] {
	return func(yield func(Kind) bool) {
		for i, b := range k.builtin {
			if b.Namespaced && k.byPrefix[b.Prefix] == i && !yield(b) {
				return
			}
		}
		for e := range k.catalog.All() {
			if e.Namespaced && e.Accepted.Plural != "" && !yield(ofEntry(e)) {
				return
			}
		}
	}
}

// Unknown returns the CRDs that cannot be decoded, so that only their names are known.
// Namespaced does not include their resources.
func (k *Kinds) Unknown() []*catalog.Unreadable { return k.catalog.Unknown() }

func ofEntry(e *catalog.Entry) Kind {
	return Kind{
		Resource:   schema.GroupVersionResource{Group: e.Group, Version: requestVersion(e), Resource: e.Accepted.Plural},
		Kind:       e.Accepted.Kind,
		Namespaced: e.Namespaced,
		Prefix:     "/" + e.Group + "/" + e.Accepted.Plural,
	}
}

// requestVersion returns the version that requests are made in, "" if none is
// served.
func requestVersion(e *catalog.Entry) string {
	first := ""
	for i := range e.Versions {
		v := &e.Versions[i]
		switch {
		case !v.Served:
		case v.Storage:
			return v.Name
		case first == "" || version.CompareKubeAwareVersionStrings(v.Name, first) > 0:
			first = v.Name
		}
	}
	return first
}

// Prefix returns what is between the backend's prefix and the rest of a key for the
// objects of a resource, whether it is known or not; "" for an unknown one of the
// core group.
func (k *Kinds) Prefix(resource schema.GroupResource) string {
	for i := range k.builtin {
		if k.builtin[i].Resource.GroupResource() == resource {
			return k.builtin[i].Prefix
		}
	}
	if resource.Group == "" {
		return ""
	}
	return "/" + resource.Group + "/" + resource.Resource
}

// Namespace returns the resource and the namespace of a key, given without the
// backend's prefix. It does not ask the catalog, so that it knows objects before
// their CRD is heard of and after it has gone. ok is false for what has no namespace.
func (k *Kinds) Namespace(key string) (resource schema.GroupResource, namespace string, ok bool) {
	if b, prefix := k.builtIn(key); b != nil {
		namespace, name, ok := strings.Cut(trimPrefix(key, prefix), "/")
		return b.Resource.GroupResource(), namespace, ok && b.Namespaced && name != "" && !strings.Contains(name, "/")
	}
	two := firstSegments(key, 2)
	group, plural, _ := strings.Cut(strings.TrimPrefix(two, "/"), "/")
	namespace, name, ok := strings.Cut(trimPrefix(key, two), "/")
	return schema.GroupResource{Group: group, Resource: plural}, namespace, ok && namespace != "" && name != "" && !strings.Contains(name, "/")
}
