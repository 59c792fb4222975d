package rbac

import (
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authentication/user"
)

// The default roles are kube-apiserver's, as far as they are about something that
// is served here. Names, labels and rules are what people know and manifests
// refer to.

const (
	bootstrapLabel = "kubernetes.io/bootstrapping"
	bootstrapValue = "rbac-defaults"

	// monitoringGroup is whom metrics and health are for.
	monitoringGroup = "system:monitoring"
)

var (
	read      = []string{"get", "list", "watch"}
	modify    = []string{"create", "delete", "deletecollection", "patch", "update"}
	readWrite = []string{"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"}
	create    = []string{"create"}
	get       = []string{"get"}
	all       = []string{"*"}
)

// defaultRoles returns new objects, which may be changed.
func defaultRoles() []rbacv1.ClusterRole {
	return append(systemRoles(), userRoles()...)
}

func systemRoles() []rbacv1.ClusterRole {
	return []rbacv1.ClusterRole{
		clusterRole("cluster-admin", on("*", all, "*"), paths(all, "*")),
		clusterRole("system:discovery", paths(get,
			"/livez", "/readyz", "/healthz", "/version", "/version/",
			"/openapi", "/openapi/*", "/api", "/api/*", "/apis", "/apis/*")),
		clusterRole("system:public-info-viewer", paths(get,
			"/livez", "/readyz", "/healthz", "/version", "/version/")),
		clusterRole("system:basic-user",
			on("authorization.k8s.io", create, "selfsubjectaccessreviews", "selfsubjectrulesreviews"),
			on("authentication.k8s.io", create, "selfsubjectreviews")),
		clusterRole("system:auth-delegator",
			on("authentication.k8s.io", create, "tokenreviews"),
			on("authorization.k8s.io", create, "subjectaccessreviews")),
		clusterRole("system:certificates.k8s.io:kube-apiserver-client-approver", rbacv1.PolicyRule{
			Verbs: []string{"approve"}, APIGroups: []string{"certificates.k8s.io"}, Resources: []string{"signers"}, ResourceNames: []string{"kubernetes.io/kube-apiserver-client"},
		}),
		clusterRole("system:service-account-issuer-discovery", paths(get,
			"/.well-known/openid-configuration", "/.well-known/openid-configuration/",
			"/openid/v1/jwks", "/openid/v1/jwks/")),
		clusterRole("system:monitoring", paths(get,
			"/metrics", "/metrics/slis",
			"/livez", "/readyz", "/healthz", "/livez/*", "/readyz/*", "/healthz/*")),
	}
}

// userRoles are the roles for people in a namespace. Each is the union of those
// with its label, so that authors of CRDs can add to them.
func userRoles() []rbacv1.ClusterRole {
	return []rbacv1.ClusterRole{
		aggregated("admin", "admin"),
		aggregated("edit", "edit", "admin"),
		aggregated("view", "view", "edit"),
		labelled("admin", clusterRole("system:aggregate-to-admin",
			on("authorization.k8s.io", create, "localsubjectaccessreviews"),
			on(rbacv1.GroupName, readWrite, "rolebindings", "roles"))),
		labelled("edit", clusterRole("system:aggregate-to-edit",
			on("", read, "secrets"),
			on("", []string{"impersonate"}, "serviceaccounts"),
			on("", modify, "configmaps", "events", "secrets", "serviceaccounts"),
			on("", create, "serviceaccounts/token"),
			on("coordination.k8s.io", readWrite, "leases"))),
		labelled("view", clusterRole("system:aggregate-to-view",
			on("", read, "configmaps", "serviceaccounts"),
			on("", read, "events", "namespaces/status", "resourcequotas", "resourcequotas/status"),
			on("", read, "namespaces"))),
	}
}

// defaultBindings returns new objects, which may be changed.
func defaultBindings() []rbacv1.ClusterRoleBinding {
	return []rbacv1.ClusterRoleBinding{
		bind("cluster-admin", user.SystemPrivilegedGroup),
		bind("system:monitoring", monitoringGroup),
		bind("system:discovery", user.AllAuthenticated),
		bind("system:basic-user", user.AllAuthenticated),
		bind("system:public-info-viewer", user.AllAuthenticated, user.AllUnauthenticated),
		bind("system:service-account-issuer-discovery", serviceaccount.AllServiceAccountsGroup),
	}
}

func on(group string, verbs []string, resources ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{Verbs: verbs, APIGroups: []string{group}, Resources: resources}
}

func paths(verbs []string, urls ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{Verbs: verbs, NonResourceURLs: urls}
}

func bootstrapMeta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name:        name,
		Labels:      map[string]string{bootstrapLabel: bootstrapValue},
		Annotations: map[string]string{rbacv1.AutoUpdateAnnotationKey: "true"},
	}
}

func clusterRole(name string, rules ...rbacv1.PolicyRule) rbacv1.ClusterRole {
	r := rbacv1.ClusterRole{ObjectMeta: bootstrapMeta(name), Rules: rules}
	return *r.DeepCopy() // all roles share the lists of verbs
}

// labelled makes a role part of another one.
func labelled(of string, r rbacv1.ClusterRole) rbacv1.ClusterRole {
	r.Labels[aggregationLabel(of)] = "true"
	return r
}

func aggregationLabel(of string) string {
	return rbacv1.GroupName + "/aggregate-to-" + of
}

// aggregated returns a role that is made of those with its label, and that is part
// of others itself.
func aggregated(name, label string, partOf ...string) rbacv1.ClusterRole {
	r := clusterRole(name)
	r.AggregationRule = &rbacv1.AggregationRule{ClusterRoleSelectors: []metav1.LabelSelector{
		{MatchLabels: map[string]string{aggregationLabel(label): "true"}},
	}}
	for _, of := range partOf {
		r = labelled(of, r)
	}
	return r
}

// bind binds a role to groups, in a binding of the same name.
func bind(role string, groups ...string) rbacv1.ClusterRoleBinding {
	b := rbacv1.ClusterRoleBinding{
		ObjectMeta: bootstrapMeta(role),
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kindClusterRole, Name: role},
	}
	for _, group := range groups {
		b.Subjects = append(b.Subjects, rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: group})
	}
	return b
}
