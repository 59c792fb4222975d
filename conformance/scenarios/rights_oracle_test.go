package scenarios

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// A rightsQuestion is who asks and what they want to do: with a resource, or with a path.
type rightsQuestion struct {
	user   string
	groups []string
	verb   string

	group, resource, subresource, name string
	namespace                          string // empty: the cluster

	path string // not empty: no resource is asked for
}

func (q rightsQuestion) String() string {
	who := fmt.Sprintf("user %q of %q: %s ", q.user, q.groups, q.verb)
	if q.path != "" {
		return who + q.path
	}
	return who + fmt.Sprintf("%s of group %q, named %q, in namespace %q", q.what(), q.group, q.name, q.namespace)
}

// what is the resource as rules write it.
func (q rightsQuestion) what() string {
	if q.subresource == "" {
		return q.resource
	}
	return q.resource + "/" + q.subresource
}

// A rightsModel is a set of roles and bindings, by namespace and name, with the answers that Kubernetes documents for it. It is slow, and
// plain enough to be checked by reading: https://kubernetes.io/docs/reference/access-authn-authz/rbac/.
type rightsModel struct {
	roles           map[string]*rbacv1.Role
	clusterRoles    map[string]*rbacv1.ClusterRole
	bindings        map[string]*rbacv1.RoleBinding
	clusterBindings map[string]*rbacv1.ClusterRoleBinding

	known map[string][]rightsGrant // what grantsTo has found since the last change
}

func newRightsModel() *rightsModel {
	return &rightsModel{
		roles: map[string]*rbacv1.Role{}, clusterRoles: map[string]*rbacv1.ClusterRole{},
		bindings: map[string]*rbacv1.RoleBinding{}, clusterBindings: map[string]*rbacv1.ClusterRoleBinding{},
	}
}

// allows is the oracle. Permissions only add up; there are no rules that deny.
func (w *rightsModel) allows(q rightsQuestion) bool {
	if slices.Contains(q.groups, "system:masters") {
		return true // before all roles
	}
	if slices.Contains([]string{"get", "head"}, q.verb) && slices.Contains([]string{"/healthz", "/livez", "/readyz"}, q.path) {
		return true // open to all users
	}
	for _, g := range w.grantsTo(q.user, q.groups) {
		// A binding in a namespace grants nothing outside it, and no paths.
		if g.namespace != "" && (q.path != "" || g.namespace != q.namespace) {
			continue
		}
		if slices.ContainsFunc(g.rules, func(r rbacv1.PolicyRule) bool { return ruleCovers(r, q) }) {
			return true
		}
	}
	return false
}

// A rightsGrant is what one binding gives.
type rightsGrant struct {
	namespace string // empty: everywhere
	rules     []rbacv1.PolicyRule
}

// grantsTo returns what the bindings give that name a user, in the order of their names.
func (w *rightsModel) grantsTo(user string, groups []string) []rightsGrant {
	key := fmt.Sprintf("%q %q", user, groups)
	if w.known == nil {
		w.known = map[string][]rightsGrant{}
	}
	if _, ok := w.known[key]; !ok {
		w.known[key] = w.findGrants(user, groups)
	}
	return w.known[key]
}

func (w *rightsModel) findGrants(user string, groups []string) []rightsGrant {
	var grants []rightsGrant
	for _, key := range slices.Sorted(maps.Keys(w.clusterBindings)) {
		if b := w.clusterBindings[key]; namedIn(b.Subjects, user, groups) {
			grants = append(grants, rightsGrant{"", w.rulesOfClusterRole(b.RoleRef.Name)})
		}
	}
	for _, key := range slices.Sorted(maps.Keys(w.bindings)) {
		b := w.bindings[key]
		if !namedIn(b.Subjects, user, groups) {
			continue
		}
		if b.RoleRef.Kind == "ClusterRole" {
			grants = append(grants, rightsGrant{b.Namespace, w.rulesOfClusterRole(b.RoleRef.Name)})
		} else if role := w.roles[b.Namespace+"/"+b.RoleRef.Name]; role != nil {
			grants = append(grants, rightsGrant{b.Namespace, role.Rules})
		}
	}
	return grants
}

// rulesOfClusterRole returns the rules of a role. Those of an aggregated one are the rules of the roles that it selects, whatever it says
// itself. A role that does not exist has none.
func (w *rightsModel) rulesOfClusterRole(name string) []rbacv1.PolicyRule {
	role := w.clusterRoles[name]
	if role == nil {
		return nil
	}
	if role.AggregationRule == nil {
		return role.Rules
	}
	var rules []rbacv1.PolicyRule
	for _, other := range slices.Sorted(maps.Keys(w.clusterRoles)) {
		if other != name && selectsLabels(role.AggregationRule, w.clusterRoles[other].Labels) {
			rules = append(rules, w.rulesOfClusterRole(other)...)
		}
	}
	return rules
}

func selectsLabels(rule *rbacv1.AggregationRule, of map[string]string) bool {
	return slices.ContainsFunc(rule.ClusterRoleSelectors, func(s metav1.LabelSelector) bool {
		selector, err := metav1.LabelSelectorAsSelector(&s)
		return err == nil && selector.Matches(labels.Set(of))
	})
}

func namedIn(subjects []rbacv1.Subject, user string, groups []string) bool {
	return slices.ContainsFunc(subjects, func(s rbacv1.Subject) bool {
		switch s.Kind {
		case "User":
			return s.Name == user
		case "Group":
			return slices.Contains(groups, s.Name)
		default:
			return "system:serviceaccount:"+s.Namespace+":"+s.Name == user
		}
	})
}

func ruleCovers(r rbacv1.PolicyRule, q rightsQuestion) bool {
	if !hasOrAll(r.Verbs, q.verb) {
		return false
	}
	if q.path != "" {
		return slices.ContainsFunc(r.NonResourceURLs, func(url string) bool {
			start, open := strings.CutSuffix(url, "*")
			return url == q.path || open && strings.HasPrefix(q.path, start)
		})
	}
	resource := hasOrAll(r.Resources, q.what()) || q.subresource != "" && slices.Contains(r.Resources, "*/"+q.subresource)
	named := len(r.ResourceNames) == 0 || slices.Contains(r.ResourceNames, q.name)
	return resource && named && hasOrAll(r.APIGroups, q.group)
}

func hasOrAll(list []string, item string) bool {
	return slices.Contains(list, item) || slices.Contains(list, "*")
}

// sameRules compares rules as sets.
func sameRules(a, b []rbacv1.PolicyRule) bool {
	texts := func(rules []rbacv1.PolicyRule) []string {
		var all []string
		for _, r := range rules {
			all = append(all, fmt.Sprintf("%q %q %q %q %q", r.Verbs, r.APIGroups, r.Resources, r.ResourceNames, r.NonResourceURLs))
		}
		slices.SortFunc(all, cmp.Compare[string])
		return slices.Compact(all)
	}
	return slices.Equal(texts(a), texts(b))
}
