package rbac

import (
	"context"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/component-helpers/auth/rbac/reconciliation"
)

const (
	kindClusterRoleBinding = "ClusterRoleBinding"
	kindRoleBinding        = "RoleBinding"
)

// present are the default roles and bindings that there are, by kind and name. Four lists
// replace hundreds of reads at every start. One that has lost its label is missing here:
// creating it fails, and it is read then.
type present struct {
	roles    map[string]reconciliation.RuleOwner
	bindings map[string]reconciliation.RoleBinding
}

func findPresent(ctx context.Context, client kubernetes.Interface) (*present, error) {
	found := &present{map[string]reconciliation.RuleOwner{}, map[string]reconciliation.RoleBinding{}}
	api, labelled := client.RbacV1(), metav1.ListOptions{LabelSelector: bootstrapLabel + "=" + bootstrapValue}
	clusterRoles, err := api.ClusterRoles().List(ctx, labelled)
	if err != nil {
		return nil, err
	}
	for i := range clusterRoles.Items {
		r := &clusterRoles.Items[i]
		found.roles[kindClusterRole+" "+r.Name] = reconciliation.ClusterRoleRuleOwner{ClusterRole: r}
	}
	clusterBindings, err := api.ClusterRoleBindings().List(ctx, labelled)
	if err != nil {
		return nil, err
	}
	for i := range clusterBindings.Items {
		b := &clusterBindings.Items[i]
		found.bindings[kindClusterRoleBinding+" "+b.Name] = reconciliation.ClusterRoleBindingAdapter{ClusterRoleBinding: b}
	}
	roles, err := api.Roles("").List(ctx, labelled)
	if err != nil {
		return nil, err
	}
	for i := range roles.Items {
		r := &roles.Items[i]
		found.roles[kindRole+" "+r.Namespace+"/"+r.Name] = reconciliation.RoleRuleOwner{Role: r}
	}
	bindings, err := api.RoleBindings("").List(ctx, labelled)
	if err != nil {
		return nil, err
	}
	for i := range bindings.Items {
		b := &bindings.Items[i]
		found.bindings[kindRoleBinding+" "+b.Namespace+"/"+b.Name] = reconciliation.RoleBindingAdapter{RoleBinding: b}
	}
	return found, nil
}

// listedRole answers the first question for a role with what the list had. Later ones,
// after a conflict, go to the server.
type listedRole struct {
	reconciliation.RuleOwnerModifier
	found reconciliation.RuleOwner // nil if there is none
	asked bool
}

// Get implements reconciliation.RuleOwnerModifier.
func (r *listedRole) Get(namespace, name string) (reconciliation.RuleOwner, error) {
	if r.asked {
		return r.RuleOwnerModifier.Get(namespace, name)
	}
	if r.asked = true; r.found == nil {
		return nil, apierrors.NewNotFound(rbacv1.Resource("roles"), name)
	}
	return r.found, nil
}

// listedBinding does so for a binding.
type listedBinding struct {
	reconciliation.RoleBindingModifier
	found reconciliation.RoleBinding
	asked bool
}

// Get implements reconciliation.RoleBindingModifier.
func (b *listedBinding) Get(namespace, name string) (reconciliation.RoleBinding, error) {
	if b.asked {
		return b.RoleBindingModifier.Get(namespace, name)
	}
	if b.asked = true; b.found == nil {
		return nil, apierrors.NewNotFound(rbacv1.Resource("rolebindings"), name)
	}
	return b.found, nil
}
