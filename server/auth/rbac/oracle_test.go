package rbac

import (
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// oracle decides in the simplest way: it goes through all bindings each time. Tests
// compare its decisions and its time with those of the index.
type oracle struct {
	roles           map[string]*rbacv1.Role // by namespace/name
	clusterRoles    map[string]*rbacv1.ClusterRole
	bindings        map[string]*rbacv1.RoleBinding // by namespace/name
	clusterBindings map[string]*rbacv1.ClusterRoleBinding
}

func newOracle() *oracle {
	return &oracle{
		roles:           map[string]*rbacv1.Role{},
		clusterRoles:    map[string]*rbacv1.ClusterRole{},
		bindings:        map[string]*rbacv1.RoleBinding{},
		clusterBindings: map[string]*rbacv1.ClusterRoleBinding{},
	}
}

// source is a binding that applies to a user: where its rules come from.
type source struct {
	reason string
	rules  []rbacv1.PolicyRule
	err    string
}

// sources returns what applies to a user in the cluster, and in a namespace.
func (o *oracle) sources(u user.Info, namespace string) (cluster, local []source) {
	for _, b := range o.clusterBindings {
		if i := applies(u, b.Subjects, ""); i >= 0 {
			reason := fmt.Sprintf("RBAC: allowed by ClusterRoleBinding %q of %s %q to %s", b.Name, b.RoleRef.Kind, b.RoleRef.Name, plainSubject(b.Subjects[i], ""))
			cluster = append(cluster, o.source(b.RoleRef, "", reason))
		}
	}
	if namespace == "" {
		return cluster, nil
	}
	for _, b := range o.bindings {
		if b.Namespace != namespace {
			continue
		}
		if i := applies(u, b.Subjects, namespace); i >= 0 {
			reason := fmt.Sprintf("RBAC: allowed by RoleBinding %q of %s %q to %s", b.Name+"/"+b.Namespace, b.RoleRef.Kind, b.RoleRef.Name, plainSubject(b.Subjects[i], namespace))
			local = append(local, o.source(b.RoleRef, namespace, reason))
		}
	}
	return cluster, local
}

func (o *oracle) source(ref rbacv1.RoleRef, namespace, reason string) source {
	switch ref.Kind {
	case "Role":
		if r, ok := o.roles[namespace+"/"+ref.Name]; ok {
			return source{reason: reason, rules: r.Rules}
		}
		return source{err: fmt.Sprintf("role.rbac.authorization.k8s.io %q not found", ref.Name)}
	case "ClusterRole":
		if r, ok := o.clusterRoles[ref.Name]; ok {
			return source{reason: reason, rules: r.Rules}
		}
		return source{err: fmt.Sprintf("clusterrole.rbac.authorization.k8s.io %q not found", ref.Name)}
	}
	return source{err: fmt.Sprintf("unsupported role reference kind: %q", ref.Kind)}
}

// decide returns whether a request is allowed, and the reasons there could be: of
// an allowed one any, of others all.
func (o *oracle) decide(a authorizer.Attributes) (bool, []string) {
	cluster, local := o.sources(a.GetUser(), a.GetNamespace())
	for _, sources := range [][]source{cluster, local} {
		var reasons []string
		for _, s := range sources {
			if slices.ContainsFunc(s.rules, func(r rbacv1.PolicyRule) bool { return plainAllows(a, r) }) {
				reasons = append(reasons, s.reason)
			}
		}
		if len(reasons) > 0 {
			return true, reasons
		}
	}
	var missing []string
	for _, s := range append(cluster, local...) {
		if s.err != "" {
			missing = append(missing, s.err)
		}
	}
	slices.Sort(missing)
	return false, slices.Compact(missing)
}

// allowed is decide without the reasons, for measuring: it stops at the first
// rule that allows.
func (o *oracle) allowed(a authorizer.Attributes) bool {
	u, namespace := a.GetUser(), a.GetNamespace()
	for _, b := range o.clusterBindings {
		if applies(u, b.Subjects, "") >= 0 && o.allowedBy(b.RoleRef, "", a) {
			return true
		}
	}
	for _, b := range o.bindings {
		if b.Namespace == namespace && applies(u, b.Subjects, namespace) >= 0 && o.allowedBy(b.RoleRef, namespace, a) {
			return true
		}
	}
	return false
}

func (o *oracle) allowedBy(ref rbacv1.RoleRef, namespace string, a authorizer.Attributes) bool {
	return slices.ContainsFunc(o.source(ref, namespace, "").rules, func(r rbacv1.PolicyRule) bool { return plainAllows(a, r) })
}

func (o *oracle) rules(u user.Info, namespace string) []string {
	var rules []string
	cluster, local := o.sources(u, namespace)
	for _, s := range append(cluster, local...) {
		for _, r := range s.rules {
			rules = append(rules, fmt.Sprintf("%q", r))
		}
	}
	slices.Sort(rules)
	return slices.Compact(rules)
}

func applies(u user.Info, subjects []rbacv1.Subject, namespace string) int {
	return slices.IndexFunc(subjects, func(s rbacv1.Subject) bool {
		switch s.Kind {
		case "User":
			return s.Name == u.GetName()
		case "Group":
			return slices.Contains(u.GetGroups(), s.Name)
		case "ServiceAccount":
			in := s.Namespace
			if in == "" {
				in = namespace
			}
			return in != "" && u.GetName() == "system:serviceaccount:"+in+":"+s.Name
		}
		return false
	})
}

func plainSubject(s rbacv1.Subject, namespace string) string {
	if s.Kind != "ServiceAccount" {
		return fmt.Sprintf("%s %q", s.Kind, s.Name)
	}
	if s.Namespace != "" {
		namespace = s.Namespace
	}
	return fmt.Sprintf("ServiceAccount %q", s.Name+"/"+namespace)
}

func plainAllows(a authorizer.Attributes, r rbacv1.PolicyRule) bool {
	has := func(list []string, s string) bool { return slices.Contains(list, s) || slices.Contains(list, "*") }
	if !has(r.Verbs, a.GetVerb()) {
		return false
	}
	if !a.IsResourceRequest() {
		return slices.ContainsFunc(r.NonResourceURLs, func(pattern string) bool {
			if strings.HasSuffix(pattern, "*") && strings.HasPrefix(a.GetPath(), strings.TrimRight(pattern, "*")) {
				return true
			}
			return pattern == a.GetPath()
		})
	}
	resource := a.GetResource()
	if a.GetSubresource() != "" {
		resource += "/" + a.GetSubresource()
	}
	return has(r.APIGroups, a.GetAPIGroup()) &&
		(has(r.Resources, resource) || a.GetSubresource() != "" && slices.Contains(r.Resources, "*/"+a.GetSubresource())) &&
		(len(r.ResourceNames) == 0 || slices.Contains(r.ResourceNames, a.GetName()))
}
