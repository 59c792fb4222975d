package builtin

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
)

// storedElsewhere are the prefixes of resources that kube-apiserver does not store by
// their plural name, by the plural name.
var storedElsewhere = map[string]string{
	"services": "/services/specs", "endpoints": "/services/endpoints", "nodes": "/minions", "replicationcontrollers": "/controllers",
	"ingresses": "/ingress",
}

// connected adds to resources what needs several of them: eviction, which asks the
// budgets of pods, and bindings, which write pods.
func connected(list []Resource) []Resource {
	list = slices.Clip(list)
	for i := range list {
		if prefix := storedElsewhere[list[i].Plural]; prefix != "" && list[i].Prefix == "" {
			list[i].Prefix = prefix
		}
	}
	pods, budgets := find(list, corev1.Resource("pods")), find(list, policyv1.Resource("poddisruptionbudgets"))
	if pods == nil {
		return list
	}
	if budgets != nil {
		addEviction(pods, budgets)
	}
	if nodes, services := find(list, corev1.Resource("nodes")), find(list, corev1.Resource("services")); nodes != nil && services != nil {
		addConnections(pods, nodes, services)
	}
	var store *genericregistry.Store
	wrap := pods.Wrap
	pods.Wrap = func(s *genericregistry.Store) rest.Storage {
		store = s
		if wrap != nil {
			return wrap(s)
		}
		return s
	}
	if find(list, corev1.Resource("bindings")) != nil {
		return list
	}
	return append(list, bindings(func() *genericregistry.Store { return store }))
}
