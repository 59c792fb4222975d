package discovery

import (
	"cmp"
	"slices"

	apidiscovery "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/apiserver/pkg/endpoints/discovery"

	"github.com/espalier-dev/espalier/server/catalog"
)

// customPriority is the priority of groups of custom resources.
const customPriority = 1000

// Group is a built-in group, which does not depend on the catalog.
type Group struct {
	Name     string
	Priority int // groups with a higher one come first
	Versions []Version
}

// version returns the version called name, or nil.
func (g *Group) version(name string) *Version {
	for i := range g.Versions {
		if g.Versions[i].Name == name {
			return &g.Versions[i]
		}
	}
	return nil
}

// Version is the resources of a version of a group.
type Version struct {
	Name      string
	Resources []Resource
}

// Resource is what clients are told about a resource.
type Resource struct {
	Name, Singular, Kind   string
	Namespaced             bool
	Verbs                  []string
	ShortNames, Categories []string
	StorageVersionHash     string
	Subresources           []Subresource
}

// Subresource is what clients are told about a subresource. Group, Version and
// Kind are empty if its objects are those of the resource.
type Subresource struct {
	Name                 string
	Group, Version, Kind string
	Verbs                []string
}

// APIExtensions is the group of the CRDs themselves.
func APIExtensions() Group {
	const name, kind = "apiextensions.k8s.io", "CustomResourceDefinition"
	g := Group{Name: name, Priority: 16700}
	for _, v := range []string{"v1", "v1beta1"} {
		g.Versions = append(g.Versions, Version{Name: v, Resources: []Resource{{
			Name: "customresourcedefinitions", Singular: "customresourcedefinition", Kind: kind,
			Verbs:              []string{"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"},
			ShortNames:         []string{"crd", "crds"},
			Categories:         []string{"api-extensions"},
			StorageVersionHash: discovery.StorageVersionHash(name, "v1", kind),
			Subresources: []Subresource{
				{Name: "plan", Group: "plan.espalier.dev", Version: "v1alpha1", Kind: "Plan", Verbs: []string{"create"}},
				{Name: "status", Verbs: partVerbs},
			},
		}}})
	}
	return g
}

var (
	customVerbs      = []string{"delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"}
	terminatingVerbs = []string{"delete", "deletecollection", "get", "list", "watch"}
	partVerbs        = []string{"get", "patch", "update"}
)

// customVersions returns what is served of the CRDs of a group, the
// preferred version first, without the built-in versions.
func customVersions(entries []*catalog.Entry, builtIn []Version) []Version {
	var versions []Version
	at := map[string]int{}
	for _, e := range entries {
		if !e.Established || e.Accepted.Plural == "" || e.Accepted.Kind == "" {
			continue
		}
		for i := range e.Versions {
			v := &e.Versions[i]
			if !v.Served || slices.ContainsFunc(builtIn, func(b Version) bool { return b.Name == v.Name }) {
				continue
			}
			k, ok := at[v.Name]
			if !ok {
				k = len(versions)
				at[v.Name] = k
				versions = append(versions, Version{Name: v.Name})
			}
			versions[k].Resources = append(versions[k].Resources, customResource(e, v))
		}
	}
	for _, v := range versions {
		slices.SortFunc(v.Resources, func(a, b Resource) int { return cmp.Compare(a.Name, b.Name) })
	}
	slices.SortFunc(versions, func(a, b Version) int { return version.CompareKubeAwareVersionStrings(b.Name, a.Name) })
	return versions
}

func customResource(e *catalog.Entry, v *catalog.Version) Resource {
	r := Resource{
		Name: e.Accepted.Plural, Singular: e.Accepted.Singular, Kind: e.Accepted.Kind, Namespaced: e.Namespaced,
		Verbs: customVerbs, ShortNames: e.Accepted.ShortNames, Categories: e.Accepted.Categories,
	}
	if e.Terminating {
		r.Verbs = terminatingVerbs
	}
	if s := e.Version(e.StorageVersion); s != nil && s.Served {
		r.StorageVersionHash = discovery.StorageVersionHash(e.Group, s.Name, e.Names.Kind)
	}
	if v.Status {
		r.Subresources = append(r.Subresources, Subresource{Name: "status", Verbs: partVerbs})
	}
	if v.Scale {
		r.Subresources = append(r.Subresources, Subresource{Name: "scale", Group: "autoscaling", Version: "v1", Kind: "Scale", Verbs: partVerbs})
	}
	return r
}

// names are the names of the versions.
func (g *Group) names() []string {
	names := make([]string, len(g.Versions))
	for i := range g.Versions {
		names[i] = g.Versions[i].Name
	}
	return names
}

// apiGroup is what /apis and /apis/G say of a group with versions.
func apiGroup(name string, versions []string) *metav1.APIGroup {
	out := &metav1.APIGroup{Name: name}
	for _, v := range versions {
		gv := metav1.GroupVersion{Group: name, Version: v}
		out.Versions = append(out.Versions, metav1.GroupVersionForDiscovery{GroupVersion: gv.String(), Version: v})
	}
	out.PreferredVersion = out.Versions[0]
	return out
}

// list is what /apis/G/V says of a version.
func (v *Version) list(group string) *metav1.APIResourceList {
	gv := metav1.GroupVersion{Group: group, Version: v.Name}
	out := &metav1.APIResourceList{
		TypeMeta:     metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"},
		GroupVersion: gv.String(), APIResources: []metav1.APIResource{},
	}
	for _, r := range v.Resources {
		out.APIResources = append(out.APIResources, metav1.APIResource{
			Name: r.Name, SingularName: r.Singular, Namespaced: r.Namespaced, Kind: r.Kind, Verbs: r.Verbs,
			ShortNames: r.ShortNames, Categories: r.Categories, StorageVersionHash: r.StorageVersionHash,
		})
		for _, s := range r.Subresources {
			out.APIResources = append(out.APIResources, metav1.APIResource{
				Name: r.Name + "/" + s.Name, Namespaced: r.Namespaced, Group: s.Group, Version: s.Version, Kind: cmp.Or(s.Kind, r.Kind), Verbs: s.Verbs,
			})
		}
	}
	return out
}

// aggregated is what the aggregated document says of a group.
func (g *Group) aggregated() *apidiscovery.APIGroupDiscovery {
	out := &apidiscovery.APIGroupDiscovery{ObjectMeta: metav1.ObjectMeta{Name: g.Name}}
	for _, v := range g.Versions {
		d := apidiscovery.APIVersionDiscovery{Version: v.Name, Freshness: apidiscovery.DiscoveryFreshnessCurrent}
		for _, r := range v.Resources {
			d.Resources = append(d.Resources, r.aggregated(g.Name, v.Name))
		}
		out.Versions = append(out.Versions, d)
	}
	return out
}

func (r *Resource) aggregated(group, version string) apidiscovery.APIResourceDiscovery {
	own := &metav1.GroupVersionKind{Group: group, Version: version, Kind: r.Kind}
	out := apidiscovery.APIResourceDiscovery{
		Resource: r.Name, SingularResource: r.Singular, ResponseKind: own, Scope: apidiscovery.ScopeCluster,
		Verbs: r.Verbs, ShortNames: r.ShortNames, Categories: r.Categories,
	}
	if r.Namespaced {
		out.Scope = apidiscovery.ScopeNamespace
	}
	for _, s := range r.Subresources {
		kind := own
		if s.Kind != "" {
			kind = &metav1.GroupVersionKind{Group: s.Group, Version: s.Version, Kind: s.Kind}
		}
		out.Subresources = append(out.Subresources, apidiscovery.APISubresourceDiscovery{Subresource: s.Name, ResponseKind: kind, Verbs: s.Verbs})
	}
	return out
}
