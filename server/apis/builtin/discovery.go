package builtin

import (
	"cmp"
	"maps"
	"slices"

	endpoints "k8s.io/apiserver/pkg/endpoints/discovery"

	"github.com/espalier-dev/espalier/server/endpoints/discovery"
)

// priorities are those that groups have in Kubernetes; clients look for a short
// name in this order.
var priorities = map[string]int{
	"apiregistration.k8s.io":       20000,
	"":                             18000,
	"apps":                         17800,
	"autoscaling":                  17500,
	"batch":                        17400,
	"networking.k8s.io":            17200,
	"policy":                       17100,
	"storage.k8s.io":               16800,
	"scheduling.k8s.io":            16600,
	"node.k8s.io":                  16300,
	"discovery.k8s.io":             16200,
	"resource.k8s.io":              16200,
	"storagemigration.k8s.io":      15800,
	"events.k8s.io":                17750,
	"authentication.k8s.io":        17700,
	"authorization.k8s.io":         17600,
	"rbac.authorization.k8s.io":    17000,
	"certificates.k8s.io":          17300,
	"admissionregistration.k8s.io": 16700,
	"coordination.k8s.io":          16500,
	"flowcontrol.apiserver.k8s.io": 16100,
}

// defaultPriority is that of other groups: before custom resources.
const defaultPriority = 15000

// Discovery returns the groups of the resources, which must not be changed.
func (r *Resources) Discovery() []discovery.Group {
	if r.options.Like != nil {
		return r.options.Like.Discovery()
	}
	return r.groups()
}

// describe makes the groups.
func (r *Resources) describe() []discovery.Group {
	var groups []discovery.Group
	for i := range r.all {
		one := &r.all[i]
		g := slices.IndexFunc(groups, func(g discovery.Group) bool { return g.Name == one.Group })
		if g < 0 {
			priority, ok := priorities[one.Group]
			if !ok {
				priority = defaultPriority
			}
			g = len(groups)
			groups = append(groups, discovery.Group{Name: one.Group, Priority: priority})
		}
		group := &groups[g]
		v := slices.IndexFunc(group.Versions, func(v discovery.Version) bool { return v.Name == one.Version })
		if v < 0 {
			v = len(group.Versions)
			group.Versions = append(group.Versions, discovery.Version{Name: one.Version})
		}
		group.Versions[v].Resources = append(group.Versions[v].Resources, r.described(one))
	}
	for _, g := range groups {
		for _, v := range g.Versions {
			slices.SortFunc(v.Resources, func(a, b discovery.Resource) int { return cmp.Compare(a.Name, b.Name) })
		}
	}
	return slices.Clip(groups) // what callers append is theirs
}

// described is what clients are told about a resource.
func (r *Resources) described(one *Resource) discovery.Resource {
	out := discovery.Resource{
		Name: one.Plural, Singular: one.Singular, Kind: one.Kind, Namespaced: one.Namespaced,
		Verbs:      r.endpoints[endpointKey{one.version().WithResource(one.Plural), ""}].verbs(),
		ShortNames: one.ShortNames, Categories: one.Categories,
	}
	of := one
	if !one.Alias.Empty() {
		of = find(r.all, one.Alias)
	}
	if of.stored() {
		out.StorageVersionHash = endpoints.StorageVersionHash(of.Group, of.Version, of.Kind)
	}
	parts := r.subresources(one)
	for _, name := range slices.Sorted(maps.Keys(parts)) {
		s := discovery.Subresource{Name: name, Verbs: parts[name].verbs()}
		if kind := parts[name].Scope.Kind; kind != one.version().WithKind(one.Kind) {
			s.Group, s.Version, s.Kind = kind.Group, kind.Version, kind.Kind
		}
		out.Subresources = append(out.Subresources, s)
	}
	return out
}
