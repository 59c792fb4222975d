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
		informer    cache.SharedIndexInformer
		set, delete func(obj any)
	}{
		{from.ClusterRoles().Informer(), a.index.setClusterRoleObject, a.index.deleteClusterRoleObject},
		{from.Roles().Informer(), a.index.setRoleObject, a.index.deleteRoleObject},
		{from.ClusterRoleBindings().Informer(), a.index.setClusterBindingObject, a.index.deleteBindingObject},
		{from.RoleBindings().Informer(), a.index.setBindingObject, a.index.deleteBindingObject},
	} {
		registration, err := feed.informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc:    feed.set,
			UpdateFunc: func(_, obj any) { feed.set(obj) },
			DeleteFunc: feed.delete,
		})
		if err != nil {
			return nil, fmt.Errorf("follow roles and bindings: %w", err)
		}
		a.loads = append(a.loads, registration.HasSyncedChecker())
	}
	return a, nil
}

func (x *index) setClusterRoleObject(obj any) {
	if r, ok := obj.(*rbacv1.ClusterRole); ok {
		x.setRole(roleKey{kind: kindClusterRole, name: r.Name}, r.Rules)
	}
}

func (x *index) deleteClusterRoleObject(obj any) {
	if name, err := cache.DeletionHandlingObjectToName(obj); err == nil {
		x.deleteRole(roleKey{kind: kindClusterRole, name: name.Name})
	}
}

func (x *index) setRoleObject(obj any) {
	if r, ok := obj.(*rbacv1.Role); ok {
		x.setRole(roleKey{kind: kindRole, namespace: r.Namespace, name: r.Name}, r.Rules)
	}
}

func (x *index) deleteRoleObject(obj any) {
	if name, err := cache.DeletionHandlingObjectToName(obj); err == nil {
		x.deleteRole(roleKey{kind: kindRole, namespace: name.Namespace, name: name.Name})
	}
}

func (x *index) setClusterBindingObject(obj any) {
	if b, ok := obj.(*rbacv1.ClusterRoleBinding); ok {
		x.setBinding(bindingKey{name: b.Name}, b.RoleRef, b.Subjects)
	}
}

// setBindingObject takes no binding without a namespace: it would be one of the
// cluster.
func (x *index) setBindingObject(obj any) {
	if b, ok := obj.(*rbacv1.RoleBinding); ok && b.Namespace != "" {
		x.setBinding(bindingKey{namespace: b.Namespace, name: b.Name}, b.RoleRef, b.Subjects)
	}
}

// deleteBindingObject is for both kinds: those of the cluster have no namespace.
func (x *index) deleteBindingObject(obj any) {
	if name, err := cache.DeletionHandlingObjectToName(obj); err == nil {
		x.deleteBinding(bindingKey{namespace: name.Namespace, name: name.Name})
	}
}
