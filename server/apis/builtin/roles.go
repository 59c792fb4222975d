package builtin

import (
	"strings"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	rbacv1beta1 "k8s.io/api/rbac/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/espalier-dev/espalier/crd/rules"
)

// Roles returns the resources of rbac.authorization.k8s.io. They do not check for
// privilege escalation. Package rbac wraps them with that check.
func Roles() []Resource {
	return []Resource{roles(), roleBindings(), clusterRoles(), clusterRoleBindings()}
}

func roles() Resource {
	r := rbacResource("roles", "role", &rules.Role)
	r.New, r.NewList = empty[rbacv1.Role], empty[rbacv1.RoleList]
	r.Columns, r.Row = roleColumns, row(func(o *rbacv1.Role) []any { return roleRow(&o.ObjectMeta) })
	return r
}

func clusterRoles() Resource {
	r := rbacResource("clusterroles", "clusterrole", &rules.ClusterRole)
	r.New, r.NewList = empty[rbacv1.ClusterRole], empty[rbacv1.ClusterRoleList]
	r.Columns, r.Row = roleColumns, row(func(o *rbacv1.ClusterRole) []any { return roleRow(&o.ObjectMeta) })
	return r
}

func roleBindings() Resource {
	r := rbacResource("rolebindings", "rolebinding", &rules.RoleBinding)
	r.New, r.NewList = empty[rbacv1.RoleBinding], empty[rbacv1.RoleBindingList]
	r.Columns = bindingColumns("roleBinding", rbacv1beta1.RoleBinding{}.SwaggerDoc()["roleRef"])
	r.Row = row(func(b *rbacv1.RoleBinding) []any { return bindingRow(&b.ObjectMeta, b.RoleRef, b.Subjects) })
	return r
}

func clusterRoleBindings() Resource {
	r := rbacResource("clusterrolebindings", "clusterrolebinding", &rules.ClusterRoleBinding)
	r.New, r.NewList = empty[rbacv1.ClusterRoleBinding], empty[rbacv1.ClusterRoleBindingList]
	r.Columns = bindingColumns("clusterRoleBinding", rbacv1beta1.ClusterRoleBinding{}.SwaggerDoc()["roleRef"])
	r.Row = row(func(b *rbacv1.ClusterRoleBinding) []any { return bindingRow(&b.ObjectMeta, b.RoleRef, b.Subjects) })
	return r
}

// rbacResource is what all four have. `kubectl auth reconcile` and old clients
// create by PUT, and write without a resourceVersion.
func rbacResource(plural, singular string, r *rules.Rules) Resource {
	return Resource{
		Group: rbacv1.GroupName, Version: "v1", Plural: plural, Singular: singular, Kind: r.Kind, Namespaced: r.Namespaced,
		Strategy: Ruled(r, Strategy{CreateOnUpdate: true, Unconditional: true}),
	}
}

var roleColumns = []metav1.TableColumnDefinition{
	nameColumn,
	{Name: "Created At", Type: "date", Description: metadataDocs["creationTimestamp"]},
}

func roleRow(meta *metav1.ObjectMeta) []any {
	return []any{meta.Name, meta.CreationTimestamp.UTC().Format(time.RFC3339)}
}

// bindingColumns get the descriptions of v1beta1, as in kube-apiserver.
func bindingColumns(kind, roleRef string) []metav1.TableColumnDefinition {
	return []metav1.TableColumnDefinition{
		nameColumn,
		{Name: "Role", Type: "string", Description: roleRef},
		ageColumn,
		{Name: "Users", Type: "string", Description: "Users in the " + kind, Priority: 1},
		{Name: "Groups", Type: "string", Description: "Groups in the " + kind, Priority: 1},
		{Name: "ServiceAccounts", Type: "string", Description: "ServiceAccounts in the " + kind, Priority: 1},
	}
}

func bindingRow(meta *metav1.ObjectMeta, ref rbacv1.RoleRef, subjects []rbacv1.Subject) []any {
	var users, groups, accounts []string
	for _, s := range subjects {
		switch s.Kind {
		case rbacv1.UserKind:
			users = append(users, s.Name)
		case rbacv1.GroupKind:
			groups = append(groups, s.Name)
		case rbacv1.ServiceAccountKind:
			accounts = append(accounts, s.Namespace+"/"+s.Name)
		}
	}
	return []any{
		meta.Name, ref.Kind + "/" + ref.Name, created(meta),
		strings.Join(users, ", "), strings.Join(groups, ", "), strings.Join(accounts, ", "),
	}
}
