package rbac

import (
	"fmt"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
)

// Start returns an authorizer that follows the roles and bindings of informers.
// It has to be called before the informers are started, which is the caller's
// to do, with a client that needs no roles: their lists would wait for themselves.
func Start(factory informers.SharedInformerFactory) (*Authorizer, error) {
	a := &Authorizer{index: newIndex()}
	from := factory.Rbac().V1()
	for _, feed := range []struct {
		informer cache.SharedIndexInformer
		delete   func(obj any)
	}{
		{from.ClusterRoles().Informer(), a.index.deleteClusterRoleObject},
		{from.Roles().Informer(), a.index.deleteRoleObject},
		{from.ClusterRoleBindings().Informer(), a.index.deleteBindingObject},
		{from.RoleBindings().Informer(), a.index.deleteBindingObject},
	} {
		registration, err := feed.informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc:    a.index.setObject,
			UpdateFunc: func(_, obj any) { a.index.setObject(obj) },
			DeleteFunc: feed.delete,
		})
		if err != nil {
			return nil, fmt.Errorf("follow roles and bindings: %w", err)
		}
		a.loads = append(a.loads, registration.HasSyncedChecker())
	}
	return a, nil
}

// setObject takes no RoleBinding without a namespace: it would be one of the cluster.
func (x *index) setObject(obj any) {
	switch o := obj.(type) {
	case *rbacv1.ClusterRole:
		x.setRole(roleKey{kind: kindClusterRole, name: o.Name}, o.Rules)
	case *rbacv1.Role:
		x.setRole(roleKey{kind: kindRole, namespace: o.Namespace, name: o.Name}, o.Rules)
	case *rbacv1.ClusterRoleBinding:
		x.setBinding(bindingKey{name: o.Name}, o.RoleRef, o.Subjects)
	case *rbacv1.RoleBinding:
		if o.Namespace != "" {
			x.setBinding(bindingKey{namespace: o.Namespace, name: o.Name}, o.RoleRef, o.Subjects)
		}
	}
}

func (x *index) deleteClusterRoleObject(obj any) {
	if name, err := cache.DeletionHandlingObjectToName(obj); err == nil {
		x.deleteRole(roleKey{kind: kindClusterRole, name: name.Name})
	}
}

func (x *index) deleteRoleObject(obj any) {
	if name, err := cache.DeletionHandlingObjectToName(obj); err == nil {
		x.deleteRole(roleKey{kind: kindRole, namespace: name.Namespace, name: name.Name})
	}
}

// deleteBindingObject is for both kinds: those of the cluster have no namespace.
func (x *index) deleteBindingObject(obj any) {
	if name, err := cache.DeletionHandlingObjectToName(obj); err == nil {
		x.deleteBinding(bindingKey{namespace: name.Namespace, name: name.Name})
	}
}
