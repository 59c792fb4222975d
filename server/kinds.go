package server

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/espalier-dev/espalier/server/apis/apiservices"
	"github.com/espalier-dev/espalier/server/apis/builtin"
	"github.com/espalier-dev/espalier/server/catalog/restmapping"
)

// Kinds says which built-in resources a server has, besides customresourcedefinitions.
type Kinds string

const (
	// KindsCustom has only what the server itself reads: namespaces, leases, roles and
	// bindings, webhook configurations, policies, flow schemas, priority levels,
	// resource quotas and storage version migrations; and reviews, which are not stored.
	KindsCustom Kinds = "custom"
	// KindsControlPlane has, besides, what controllers of custom resources use: config
	// maps, secrets, service accounts, events and certificate signing requests.
	KindsControlPlane Kinds = "control-plane"
	// KindsAll has, besides, the kinds that need a kubelet or a controller of Kubernetes
	// to do anything, as data: pods, deployments, services, jobs.
	KindsAll Kinds = "all"
)

// KindsHelp describes --kinds.
const KindsHelp = "Built-in resources that are served besides customresourcedefinitions. custom: only what the server itself reads, which is namespaces, roles and bindings (to authorize requests), " +
	"webhook configurations, policies and resource quotas (to admit them), flow schemas and priority levels (to share them out), leases (to elect the replica that runs controllers) and storage version migrations (to carry them out); and reviews, which are not stored. " +
	"control-plane: also config maps, secrets, service accounts, events and certificate signing requests. " +
	"all: also what needs a kubelet or a controller of Kubernetes to do anything, as data, for example pods, deployments, services and jobs. " +
	"All replicas must have the same kinds. Objects of kinds that are off stay in etcd; a namespace that has some is not deleted before they are on again. Example: --kinds=all."

// allKinds are the values of --kinds.
var allKinds = []Kinds{KindsCustom, KindsControlPlane, KindsAll}

// optional are the resources of the control plane that the server can work without.
var optional = []schema.GroupResource{
	{Resource: "configmaps"},
	{Resource: "secrets"},
	{Resource: "serviceaccounts"},
	{Resource: "events"},
	{Group: "events.k8s.io", Resource: "events"},
	{Group: "certificates.k8s.io", Resource: "certificatesigningrequests"},
}

// of returns those of the control plane's resources that a server has, and others.
func (k Kinds) of(controlPlane []builtin.Resource, etcd func(context.Context) error) []builtin.Resource {
	switch k {
	case KindsCustom:
		return slices.DeleteFunc(controlPlane, func(r builtin.Resource) bool {
			return slices.Contains(optional, schema.GroupResource{Group: r.Group, Resource: r.Plural})
		})
	case KindsAll:
		return append(append(controlPlane, builtin.Data()...), apiservices.Resource(), builtin.ComponentStatuses(etcd))
	}
	return controlPlane
}

// off are the namespaced resources that a server does not have. A server with other kinds
// may have stored objects of them in the same etcd.
func (k Kinds) off() []restmapping.Kind {
	if k == KindsAll {
		return nil
	}
	all := builtin.Data()
	if k == KindsCustom {
		for _, r := range append(builtin.Standard(), builtin.Events(0)...) {
			if slices.Contains(optional, schema.GroupResource{Group: r.Group, Resource: r.Plural}) {
				all = append(all, r)
			}
		}
	}
	var off []restmapping.Kind
	for i := range all {
		r := &all[i]
		if key, stored := r.Key(); stored && r.Namespaced {
			off = append(off, restmapping.Kind{Resource: schema.GroupVersionResource{Group: r.Group, Resource: r.Plural}, Kind: r.Kind, Namespaced: true, Prefix: key})
		}
	}
	return off
}

// namespaces are those that exist from the beginning.
func (k Kinds) namespaces() []string {
	if k == KindsAll {
		return append(slices.Clone(systemNamespaces), corev1.NamespaceNodeLease)
	}
	return systemNamespaces
}

// has reports whether a resource of the control plane is on.
func (k Kinds) has(resource schema.GroupResource) bool {
	return k != KindsCustom || !slices.Contains(optional, resource)
}

// Validate returns an error for an unknown value.
func (k Kinds) Validate() error {
	if slices.Contains(allKinds, k) {
		return nil
	}
	return fmt.Errorf("--kinds is custom, control-plane or all, not %q", string(k))
}

// noObjects finds nothing. It stands for a store that does not exist: tokens that name
// an object of it are rejected.
type noObjects struct{ resource schema.GroupResource }

// Get implements rest.Getter.
func (n noObjects) Get(_ context.Context, name string, _ *metav1.GetOptions) (runtime.Object, error) {
	return nil, apierrors.NewNotFound(n.resource, name)
}
