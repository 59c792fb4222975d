package rbac

import (
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// rule is a rbacv1.PolicyRule, prepared for being asked often. Its strings are
// those of the object that it comes from.
type rule struct {
	verbs       verbs
	otherVerbs  []string // those that verbs has no bit for
	anyGroup    bool
	anyResource bool
	groups      []string
	resources   []string
	names       []string
	urls        []url
}

// url is a path, or what paths begin with.
type url struct {
	text   string
	prefix bool
}

// request is what rules look at of a request.
type request struct {
	resourceRequest bool
	verb            string
	bit             verbs
	group           string
	resource        string
	subresource     string
	name            string
	path            string
}

// verbs is a set of the verbs that most rules are made of.
type verbs uint16

const anyVerb verbs = 1 << 15

// bitOf returns the bit of a verb, or 0.
func bitOf(verb string) verbs {
	switch verb {
	case "get":
		return 1 << 0
	case "list":
		return 1 << 1
	case "watch":
		return 1 << 2
	case "create":
		return 1 << 3
	case "update":
		return 1 << 4
	case "patch":
		return 1 << 5
	case "delete":
		return 1 << 6
	case "deletecollection":
		return 1 << 7
	}
	return 0
}

func requestOf(a authorizer.Attributes) request {
	r := request{resourceRequest: a.IsResourceRequest(), verb: a.GetVerb()}
	r.bit = bitOf(r.verb)
	if !r.resourceRequest {
		r.path = a.GetPath()
		return r
	}
	r.group, r.resource, r.subresource, r.name = a.GetAPIGroup(), a.GetResource(), a.GetSubresource(), a.GetName()
	return r
}

func compile(sources []rbacv1.PolicyRule) []rule {
	if len(sources) == 0 {
		return nil
	}
	rules := make([]rule, len(sources))
	for i := range sources {
		rules[i] = compileRule(&sources[i])
	}
	return rules
}

func compileRule(source *rbacv1.PolicyRule) rule {
	r := rule{
		anyGroup:    slices.Contains(source.APIGroups, rbacv1.APIGroupAll),
		anyResource: slices.Contains(source.Resources, rbacv1.ResourceAll),
		groups:      source.APIGroups,
		resources:   source.Resources,
		names:       source.ResourceNames,
	}
	for _, verb := range source.Verbs {
		switch bit := bitOf(verb); {
		case verb == rbacv1.VerbAll:
			r.verbs |= anyVerb
		case bit != 0:
			r.verbs |= bit
		default:
			r.otherVerbs = append(r.otherVerbs, verb)
		}
	}
	for _, text := range source.NonResourceURLs {
		u := url{text: text, prefix: strings.HasSuffix(text, "*")}
		if u.prefix {
			u.text = strings.TrimRight(text, "*")
		}
		r.urls = append(r.urls, u)
	}
	return r
}

func (r *rule) allows(q *request) bool {
	if r.verbs&(q.bit|anyVerb) == 0 && !slices.Contains(r.otherVerbs, q.verb) {
		return false
	}
	if !q.resourceRequest {
		return r.hasPath(q.path)
	}
	return (r.anyGroup || slices.Contains(r.groups, q.group)) &&
		(r.anyResource || r.hasResource(q)) &&
		(len(r.names) == 0 || slices.Contains(r.names, q.name))
}

func (r *rule) hasPath(path string) bool {
	for _, u := range r.urls {
		if u.text == path && !u.prefix || u.prefix && strings.HasPrefix(path, u.text) {
			return true
		}
	}
	return false
}

func (r *rule) hasResource(q *request) bool {
	if q.subresource == "" {
		return slices.Contains(r.resources, q.resource)
	}
	for _, resource := range r.resources {
		if isPair(resource, q.resource, q.subresource) || isPair(resource, "*", q.subresource) {
			return true
		}
	}
	return false
}

// isPair reports whether s is resource/subresource, without making a string of
// them.
func isPair(s, resource, subresource string) bool {
	return len(s) == len(resource)+1+len(subresource) &&
		s[len(resource)] == '/' &&
		strings.HasPrefix(s, resource) &&
		strings.HasSuffix(s, subresource)
}
