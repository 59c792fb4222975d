package scenarios

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The words that rights are made of. Many begin like others, and some name nothing that exists.
var (
	rightsNamespaces = []string{"red", "red-1", "red-10", "re", "default"}
	rightsNames      = []string{"one", "one-more", "on"}
	rightsVerbs      = []string{"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"}
	rightsOddVerbs   = []string{"impersonate", "bind", "escalate", "ge", "GET", "*"}
	rightsPaths      = []string{"/metrics", "/metrics/slis", "/version", "/openapi/v3", "/openapi/v2", "/apis", "/api", "/logs", "/logs/a", "/livez", "/livez/ping", "/healthz", "/custom/", "/custom"}
	rightsPathRules  = []string{"/metrics", "/metrics/*", "/openapi/*", "/openapi*", "/logs", "/logs/*", "/livez/*", "/custom", "/custom/", "/cust*", "/metrics*"}
	rightsGroups     = []string{"devs", "devs-2", "ops", "system:serviceaccounts", "system:serviceaccounts:red", "system:serviceaccounts:red-1"}
)

// A rightsResource is a kind of thing that rules and questions name.
type rightsResource struct {
	group, version, plural, kind string
	namespaced                   bool
	subresources                 []string
	body                         string // further fields of an object, in JSON
}

var rightsResources = []rightsResource{
	{"", "v1", "configmaps", "ConfigMap", true, nil, `"data":{"k":"v"}`},
	{"", "v1", "secrets", "Secret", true, nil, `"stringData":{"k":"v"}`},
	{"", "v1", "serviceaccounts", "ServiceAccount", true, []string{"token"}, `"automountServiceAccountToken":false`},
	{"", "v1", "namespaces", "Namespace", false, []string{"status", "finalize"}, `"spec":{}`},
	{"coordination.k8s.io", "v1", "leases", "Lease", true, nil, `"spec":{"holderIdentity":"x"}`},
	{"hazards.example.com", "v1", "pots", "Pot", true, []string{"status", "scale"}, `"spec":{"replicas":1}`},
	{"hazards.example.com", "v1", "potsherds", "Potsherd", true, []string{"status", "scale"}, `"spec":{"replicas":1}`},
	{"hazards.example.com", "v1", "kilns", "Kiln", false, []string{"status", "scale"}, `"spec":{"replicas":1}`},
	{"", "v1", "pods", "", true, []string{"log", "exec"}, ""},              // not served
	{"apps", "v1", "deployments", "", true, []string{"scale"}, ""},         // not served
	{"hazards.example.co", "v1", "pots", "", true, []string{"status"}, ""}, // not served
}

// A rightsUser is a user and their groups.
type rightsUser struct {
	name   string
	groups []string
}

func rightsAccount(namespace, name string) rightsUser {
	return rightsUser{"system:serviceaccount:" + namespace + ":" + name, []string{"system:serviceaccounts", "system:serviceaccounts:" + namespace, "system:authenticated"}}
}

var rightsUsers = []rightsUser{
	{"ada", []string{"devs", "system:authenticated"}},
	{"ada2", []string{"system:authenticated"}},
	{"bob", []string{"devs-2", "ops", "system:authenticated"}},
	{"carol@example.com", []string{"ops", "system:authenticated"}},
	{"devs", []string{"system:authenticated"}}, // called like a group
	{"robot", []string{"system:authenticated"}},
	{"nobody", []string{"system:authenticated"}},
	rightsAccount("red", "robot"),
	rightsAccount("red-1", "robot"),
	rightsAccount("red-10", "robot"),
	rightsAccount("red", "robo"),
}

// rightsDice makes everything that is random, from one seed.
type rightsDice struct{ *rand.Rand }

func rightsPick[T any](d rightsDice, list []T) T { return list[d.IntN(len(list))] }

func (d rightsDice) oneIn(n int) bool { return d.IntN(n) == 0 }

// some picks up to n of a list, and sometimes the star.
func (d rightsDice) some(n int, list []string) []string {
	if d.oneIn(10) {
		return []string{"*"}
	}
	var picked []string
	for range 1 + d.IntN(n) {
		picked = append(picked, rightsPick(d, list))
	}
	slices.Sort(picked)
	return slices.Compact(picked)
}

// resource is as rules write it.
func (d rightsDice) resource(r rightsResource) string {
	switch {
	case d.oneIn(12):
		return "*"
	case len(r.subresources) == 0 || d.oneIn(2):
		return r.plural
	case d.oneIn(3):
		return "*/" + rightsPick(d, r.subresources)
	default:
		return r.plural + "/" + rightsPick(d, r.subresources)
	}
}

func (d rightsDice) rule(paths bool) rbacv1.PolicyRule {
	if paths && d.oneIn(4) {
		return rbacv1.PolicyRule{Verbs: d.some(2, []string{"get", "post", "put"}), NonResourceURLs: d.some(2, rightsPathRules)}
	}
	r := rbacv1.PolicyRule{Verbs: d.some(4, rightsVerbs)}
	if d.oneIn(8) {
		r.Verbs = d.some(2, rightsOddVerbs)
	}
	for range 1 + d.IntN(2) {
		of := rightsPick(d, rightsResources)
		r.Resources = append(r.Resources, d.resource(of))
		r.APIGroups = append(r.APIGroups, of.group)
	}
	if d.oneIn(10) {
		r.APIGroups = []string{"*"}
	}
	if d.oneIn(4) {
		r.ResourceNames = d.some(2, rightsNames) // a star among names is no star
	}
	return r
}

func (d rightsDice) rules(paths bool) []rbacv1.PolicyRule {
	var rules []rbacv1.PolicyRule
	for range 1 + d.IntN(3) {
		rules = append(rules, d.rule(paths))
	}
	return rules
}

func (d rightsDice) subjects() []rbacv1.Subject {
	var all []rbacv1.Subject
	for range 1 + d.IntN(3) {
		u := rightsPick(d, rightsUsers)
		parts := strings.Split(u.name, ":")
		switch {
		case d.oneIn(4):
			all = append(all, rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: "Group", Name: rightsPick(d, rightsGroups)})
		case len(parts) == 4 && !d.oneIn(5):
			all = append(all, rbacv1.Subject{Kind: "ServiceAccount", Namespace: parts[2], Name: parts[3]})
		default: // service accounts can be bound by their user names, too
			all = append(all, rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: "User", Name: u.name})
		}
	}
	return all
}

const aggregateLabel = "rights.example.com/into"

func (d rightsDice) role(i int) *rbacv1.Role {
	return &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: rightsPick(d, rightsNamespaces), Name: fmt.Sprintf("rights-%d", i)}, Rules: d.rules(false)}
}

// clusterRole has the name that a role may have, too. The first ones aggregate others, each of them possibly also the next.
func (d rightsDice) clusterRole(i int) *rbacv1.ClusterRole {
	r := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("rights-%d", i)}, Rules: d.rules(true)}
	const aggregating = 4
	if i < aggregating {
		into := fmt.Sprintf("set-%d", i)
		r.AggregationRule = &rbacv1.AggregationRule{ClusterRoleSelectors: []metav1.LabelSelector{{MatchLabels: map[string]string{aggregateLabel: into}}}}
		if d.oneIn(2) {
			r.AggregationRule.ClusterRoleSelectors = append(r.AggregationRule.ClusterRoleSelectors, metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
				{Key: aggregateLabel, Operator: metav1.LabelSelectorOpIn, Values: []string{into + "-too", "set-none"}},
			}})
		}
		if i > 0 {
			r.Labels = map[string]string{aggregateLabel: fmt.Sprintf("set-%d", i-1)} // never round in a circle
		}
	} else if d.oneIn(2) {
		r.Labels = map[string]string{aggregateLabel: fmt.Sprintf("set-%d", d.IntN(aggregating)) + rightsPick(d, []string{"", "-too"})}
	}
	return r
}

func (d rightsDice) binding(i, roles int) *rbacv1.RoleBinding {
	b := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: rightsPick(d, rightsNamespaces), Name: fmt.Sprintf("rights-%d", i)}, Subjects: d.subjects()}
	b.RoleRef = rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: rightsPick(d, []string{"Role", "ClusterRole"}), Name: fmt.Sprintf("rights-%d", d.IntN(roles))}
	return b
}

func (d rightsDice) clusterBinding(i, roles int) *rbacv1.ClusterRoleBinding {
	b := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("rights-%d", i)}, Subjects: d.subjects()}
	b.RoleRef = rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: fmt.Sprintf("rights-%d", d.IntN(roles))}
	return b
}

// question asks something on behalf of a user: half of the time what a rule that they have is about, and then often with one thing changed.
func (d rightsDice) question(w *rightsModel, u rightsUser) rightsQuestion {
	q := d.anything()
	if grants := w.grantsTo(u.name, u.groups); len(grants) > 0 && !d.oneIn(3) {
		if g := rightsPick(d, grants); len(g.rules) > 0 {
			q = d.within(g, rightsPick(d, g.rules))
			if d.oneIn(2) {
				d.change(&q)
			}
		}
	}
	q.user, q.groups = u.name, u.groups
	return q
}

func (d rightsDice) anything() rightsQuestion {
	if d.oneIn(12) {
		return rightsQuestion{verb: rightsPick(d, []string{"get", "post", "put"}), path: rightsPick(d, rightsPaths)}
	}
	r := rightsPick(d, rightsResources)
	q := rightsQuestion{verb: rightsPick(d, rightsVerbs), group: r.group, resource: r.plural, name: rightsPick(d, append(rightsNames, "")), namespace: rightsPick(d, append(rightsNamespaces, ""))}
	if len(r.subresources) > 0 && d.oneIn(2) {
		q.subresource = rightsPick(d, r.subresources)
	}
	return q
}

// within asks for what a rule grants.
func (d rightsDice) within(g rightsGrant, r rbacv1.PolicyRule) rightsQuestion {
	q := d.anything()
	if len(r.Verbs) > 0 && !slices.Contains(r.Verbs, "*") {
		q.verb = rightsPick(d, r.Verbs)
	}
	if len(r.NonResourceURLs) > 0 {
		url := rightsPick(d, r.NonResourceURLs)
		if start, open := strings.CutSuffix(url, "*"); open {
			url = "/" + strings.TrimPrefix(start+rightsPick(d, []string{"", "a", "a/b"}), "/")
		}
		return rightsQuestion{verb: q.verb, path: url}
	}
	if q.path != "" {
		q = rightsQuestion{verb: q.verb, name: rightsPick(d, rightsNames), namespace: rightsPick(d, rightsNamespaces)}
	}
	if group := rightsPick(d, r.APIGroups); group != "*" {
		q.group = group
	}
	if what := rightsPick(d, r.Resources); what != "*" {
		resource, subresource, _ := strings.Cut(what, "/")
		q.subresource = subresource
		if resource != "*" {
			q.resource = resource
		}
	}
	if len(r.ResourceNames) > 0 {
		q.name = rightsPick(d, r.ResourceNames)
	}
	if g.namespace != "" {
		q.namespace = g.namespace
	}
	return q
}

// change changes one thing in a question.
func (d rightsDice) change(q *rightsQuestion) {
	other := d.anything()
	switch d.IntN(6) {
	case 0:
		q.verb = rightsPick(d, append(rightsVerbs, rightsOddVerbs...))
	case 1:
		if q.path != "" {
			q.path += rightsPick(d, []string{"/", "x", "/x"})
		} else {
			q.namespace = rightsPick(d, append(rightsNamespaces, "", "elsewhere"))
		}
	case 2:
		q.name = rightsPick(d, append(rightsNames, "", "*"))
	case 3:
		q.subresource = rightsPick(d, []string{"", "status", "scale", "token", "*"})
	case 4:
		q.group = rightsPick(d, []string{"", "apps", "hazards.example.com", "hazards.example.co", "*"})
	default:
		if other.path == "" && q.path == "" {
			q.resource = other.resource
		}
	}
	if q.path != "" {
		*q = rightsQuestion{verb: q.verb, path: q.path}
	}
}

// anyKey picks a key of a map, the same one for the same seed.
func anyKey[T any](d rightsDice, m map[string]T) string {
	return rightsPick(d, slices.Sorted(maps.Keys(m)))
}
